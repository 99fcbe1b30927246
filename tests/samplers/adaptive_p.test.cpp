// SPDX-License-Identifier: MIT
#include <decant/samplers/adaptive_p.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/min_p.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace adaptive_p_tests {

using namespace policies;
using decant::adaptive_p;
using decant::step_record;

static_assert(decant::LawSampler<adaptive_p>);
static_assert(decant::Stateful<adaptive_p>);

auto narrowing(adaptive_p policy) {
  return [policy](candidates& c, const step_context& context) { policy.narrow(c, context); };
}

token_id pick(adaptive_p policy, const row& logits, std::uint64_t seed) {
  candidates c;
  c.bind(std::span<const float>(logits));
  return policy(c, context_after({}, 0, draw_stream(seed)));
}

/// The record of a token of probability p; what it had after narrowing does not matter.
step_record of(double p) { return {std::log(p), -99}; }

law transformed(const law& p, double aim) {
  std::vector<double> logits;
  for (const double x : p) {
    const double d = std::abs(x - aim) / 0.3;
    logits.push_back(x > 0 ? 5 - 10 * d * d / (1 + d) : reference::minus_infinity);
  }
  return reference::exact_law(logits);
}

TEST_CASE("adaptive_p has the golden law of methods.md N at its first step", "[samplers]") {
  const law expected{0.026052698, 0.707972422, 0.174008720, 0.061024433, 0.019924496, 0.011017232};
  CHECK(adaptive_p(0.3).adapted_target() == Approx(0.3).epsilon(1e-14));
  CHECK(difference(law_after(narrowing(adaptive_p(0.3)), golden), expected) < of_float);
}

TEST_CASE("the logits of adaptive_p are those of the formula", "[samplers]") {
  const law expected{0.9549428843162628, 4.25722668006458,   2.853926950541509,
                     1.8060958566186258, 0.6867714648293974, 0.09428212301503258};
  const row logits = logits_after(narrowing(adaptive_p(0.3)), golden);
  for (std::size_t i = 0; i < 6; ++i) CHECK(static_cast<double>(logits[i]) == Approx(expected[i]).margin(1e-6));
  // A token at the target gets 5, one 0.3 away 0.
  const row two = logits_after(narrowing(adaptive_p(0.5)), {1, 1});
  CHECK(two == row{5, 5});
  const row far = logits_after(narrowing(adaptive_p(0.8)), {1, 1});
  CHECK(static_cast<double>(far[0]) == Approx(0).margin(1e-6));
}

TEST_CASE("the running mean of adaptive_p by hand", "[samplers]") {
  adaptive_p policy(0.3, 0.5);
  // W = 0.6, N = 2.
  policy.accept(0, of(0.8));  // W = 1.1, N = 2: mean 0.55
  CHECK(policy.adapted_target() == Approx(0.05).epsilon(1e-13));
  policy.accept(0, of(0.1));  // W = 0.65, N = 2: mean 0.325
  CHECK(policy.adapted_target() == Approx(0.275).epsilon(1e-13));
  policy.accept(0, of(1));  // W = 1.325: mean 0.6625, 0.6 - 0.6625 < 0
  CHECK(policy.adapted_target() == 0);
  adaptive_p forgetful(0.7, 0);  // only the last one counts
  forgetful.accept(0, of(0.25));
  CHECK(forgetful.adapted_target() == 1);
  forgetful.accept(0, of(0.75));
  CHECK(forgetful.adapted_target() == Approx(0.65).epsilon(1e-13));
}

TEST_CASE("adaptive_p over several steps is the reference", "[samplers]") {
  const law p = reference::exact_law(golden);
  const double aims[] = {
      0.3, 0.2739106577522597, 0.25043024972929345, 0.26475310887459164, 0.29068693096747916, 0.265528895622991};
  const law last{0.006946356826105548, 0.6634997365414593,  0.2066567460599272,
                 0.07942071372590592,  0.02772099832004889, 0.015755448526553095};
  adaptive_p policy(0.3);
  const tokens chosen{0, 0, 1, 3, 0};
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    CHECK(policy.adapted_target() == Approx(aims[i]).epsilon(1e-9));
    policy.accept(chosen[i], of(p[static_cast<std::size_t>(chosen[i])]));
  }
  CHECK(policy.adapted_target() == Approx(aims[5]).epsilon(1e-9));
  CHECK(difference(law_after(narrowing(policy), golden), last) < of_float);
}

TEST_CASE("adaptive_p draws the law that it describes, by enumeration", "[samplers]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    row logits = random_row(40, seed);
    logits[11] = gone;
    for (const double target : {0.0, 0.1, 0.5, 1.0}) {
      adaptive_p policy(target);
      policy.accept(1, of(0.4));
      const law expected = transformed(reference::exact_law(logits), policy.adapted_target());
      CHECK(difference(law_after(narrowing(policy), logits), expected) < of_float);
      law drawn(logits.size());
      for (const auto& [token, p] : decant::testing::enumerate_law([&](decant::decision_hook& hook) {
             candidates c;
             c.bind(std::span<const float>(logits));
             return policy(c, context_after({}, 0, draw_stream(1).with_hook(&hook)));
           })) {
        drawn[static_cast<std::size_t>(token)] = p;
      }
      CHECK(difference(drawn, expected) < of_float);
      CHECK(drawn[11] == 0);
    }
  }
}

TEST_CASE("a gone token stays gone under adaptive_p", "[samplers]") {
  const row logits = logits_after(narrowing(adaptive_p(0.1)), {gone, 1, gone, 0});
  CHECK(decant::is_gone(logits[0]));
  CHECK(decant::is_gone(logits[2]));
  CHECK(survivors(narrowing(adaptive_p(0.1)), {gone, 1, gone, 0}) == tokens{1, 3});
  CHECK(survivors(decant::chain(decant::top_k(2), narrowing(adaptive_p(0))), golden) == tokens{0, 1});
}

TEST_CASE("equal tokens stay equal", "[samplers]") {
  const row logits = logits_after(narrowing(adaptive_p(0.2)), {1, 3, 1, 3});
  CHECK(logits[0] == logits[2]);
  CHECK(logits[1] == logits[3]);
}

TEST_CASE("adaptive_p keeps apart what a low temperature spreads out", "[samplers]") {
  // Divided by 10^-6 the logits are 2 * 10^7 and 1.9 more, which float cannot tell from 2.
  const row logits{20, std::nextafter(20.0F, 21.0F)};
  const law p = reference::exact_law(reference::temperature(reference::widened(logits), 1e-6));
  CHECK(difference(law_after(decant::chain(decant::temperature(1e-6), narrowing(adaptive_p(0.4))), logits),
                   transformed(p, 0.4)) < of_float);
}

TEST_CASE("a constant added to all logits does not change adaptive_p", "[samplers]") {
  const law expected = law_after(narrowing(adaptive_p(0.3)), golden);
  for (const float shift : {-65536.0F, -300.0F, 300.0F, 65536.0F}) {
    row shifted = golden;
    for (float& z : shifted) z += shift;
    CHECK(difference(law_after(narrowing(adaptive_p(0.3)), shifted), expected) < of_float);
  }
}

TEST_CASE("a negative target is a plain draw without state", "[samplers]") {
  for (const double target : {-1.0, -denormal, -infinity}) {
    const adaptive_p policy(target);
    CHECK(policy.off());
    CHECK(decant::is_off(policy));
    CHECK(!decant::keeps_state(policy));
    check_identity(narrowing(policy));
    candidates c;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      c.bind(std::span<const float>(golden));
      CHECK(pick(policy, golden, seed) == decant::multinomial{}(c, context_after({}, 0, draw_stream(seed))));
    }
    adaptive_p accepted = policy;
    accepted.accept(1, of(0.3));
    CHECK(accepted == policy);
    accepted.rollback(1);
    accepted.reset();
    CHECK(accepted == policy);
  }
  CHECK(!adaptive_p(0).off());
  CHECK(!adaptive_p(-0.0).off());
  CHECK(decant::keeps_state(adaptive_p(0)));
}

TEST_CASE("decay is clamped to [0, 0.99]", "[samplers]") {
  CHECK(adaptive_p(0.3, -5) == adaptive_p(0.3, 0));
  CHECK(adaptive_p(0.3, -infinity) == adaptive_p(0.3, 0));
  CHECK(adaptive_p(0.3, 1) == adaptive_p(0.3, 0.99));
  CHECK(adaptive_p(0.3, infinity) == adaptive_p(0.3, 0.99));
  CHECK(!(adaptive_p(0.3, 0.98) == adaptive_p(0.3, 0.99)));
  CHECK(adaptive_p(0.3, 7).describe() == "adaptive_p(0.3, 0.99)");
}

TEST_CASE("a decoder tells adaptive_p the probability before it reshaped the row", "[samplers]") {
  auto decoding = decant::min_p(0.05) | adaptive_p(0.4, 0.8);
  const law p = reference::exact_law(reference::min_p(reference::widened(golden), 0.05));
  double weighted = 0.4 / 0.2, weight = 1 / 0.2;
  tokens text;
  for (int step = 0; step < 50; ++step) {
    const token_id token = decoding.step(golden, context_after(text, 0, draw_stream(3)));
    REQUIRE(p[static_cast<std::size_t>(token)] > 0);
    weighted = p[static_cast<std::size_t>(token)] + 0.8 * weighted;
    weight = 1 + 0.8 * weight;
    const double aim = std::min(1.0, std::max(0.0, 0.8 - weighted / weight));
    REQUIRE(decoding.sampler().adapted_target() == Approx(aim).margin(1e-6));
    text.push_back(token);
  }
  decoding.rollback(50);
  CHECK(decoding.sampler() == adaptive_p(0.4, 0.8));
}

TEST_CASE("the mean probability of what adaptive_p chooses settles near the target", "[samplers]") {
  const row logits = logs({0.4, 0.3, 0.15, 0.1, 0.05});
  const law p = reference::exact_law(logits);
  auto decoding = decant::temperature(1) | adaptive_p(0.25, 0.9);
  double sum = 0;
  constexpr std::size_t steps = 10'000;
  for (std::size_t t = 0; t < steps; ++t)
    sum += p[static_cast<std::size_t>(decoding.step(logits, {{}, 0, draw_stream(8).at(t)}))];
  CHECK(sum / steps == Approx(0.25).margin(0.03));
}

TEST_CASE("rollback of adaptive_p is exact, also over tokens that it did not draw", "[samplers]") {
  adaptive_p policy(0.35, 0.7);
  std::vector<adaptive_p> stages{policy};
  for (int i = 0; i < 30; ++i) {
    policy.accept(i, i % 9 == 4   ? step_record{-infinity, -infinity}
                     : i % 9 == 5 ? step_record{not_a_number, 0}
                                  : of(1.0 / (1 + i)));
    stages.push_back(policy);
  }
  for (std::size_t back = 0; back <= 30; ++back) {
    adaptive_p undone = policy;
    undone.rollback(back);
    CHECK(undone == stages[30 - back]);
    undone.reset();
    CHECK(undone == stages[0]);
  }
  CHECK_THROWS_AS(policy.rollback(31), assertion_error);
}

TEST_CASE("a token of probability 0 counts as 0, a record of NaN not at all", "[samplers]") {
  adaptive_p policy(0.3, 0.5);
  policy.accept(0, {-infinity, -infinity});  // W = 0.3, N = 2
  CHECK(policy.adapted_target() == Approx(0.45).epsilon(1e-13));
  const double aim = policy.adapted_target();
  policy.accept(0, {not_a_number, 0});
  CHECK(policy.adapted_target() == aim);
}

TEST_CASE("a copy of adaptive_p is a fork (llama.cpp's clone is none)", "[samplers]") {
  adaptive_p policy(0.3);
  policy.accept(0, of(0.9));
  adaptive_p fork = policy;
  CHECK(fork == policy);
  for (std::uint64_t seed = 0; seed < 20; ++seed) CHECK(pick(fork, golden, seed) == pick(policy, golden, seed));
  fork.accept(0, of(0.1));
  CHECK(!(fork == policy));
  fork.rollback(1);
  CHECK(fork == policy);
}

TEST_CASE("adaptive_p refuses bad parameters", "[samplers]") {
  for (const double bad : {not_a_number, std::nextafter(1.0, 2.0), 2.0, infinity}) {
    check_rejects<adaptive_p>(bad, "adaptive_p", "target", "must be a number <= 1");
  }
  for (const double good : {-infinity, -1.0, -denormal, 0.0, -0.0, denormal, 0.5, 1.0}) check_accepts<adaptive_p>(good);
  CHECK(complaint([] { return adaptive_p(0.5, not_a_number); }) == "adaptive_p: decay = nan must be a number");
  const auto made = adaptive_p::make(0.5, not_a_number);
  REQUIRE(!made.has_value());
  CHECK(made.error().where == "adaptive_p.decay");
  CHECK(adaptive_p(0.5).describe() == "adaptive_p(0.5, 0.9)");
}

TEST_CASE("adaptive_p on all sizes and on bad rows", "[samplers]") {
  for (const double target : {-1.0, 0.0, 0.5, 1.0}) {
    check_sizes(narrowing(adaptive_p(target)));
    check_bad_rows(narrowing(adaptive_p(target)));
    CHECK(pick(adaptive_p(target), row(5, gone), 1) == no_token);
    CHECK(pick(adaptive_p(target), {1, infinite_float, 0}, 1) == no_token);
    CHECK(pick(adaptive_p(target), {gone, 4, gone}, 1) == 1);
  }
}

TEST_CASE("adaptive_p passes check_sampler", "[samplers]") {
  for (const double target : {-1.0, 0.0, 0.3, 1.0}) {
    const auto report = decant::testing::check_sampler(
        adaptive_p(target), {.shift_invariant = true, .discrete = true, .allocations = decant::testing::allocations});
    INFO("target " << target);
    INFO(report.text());
    CHECK(report.ok);
  }
}

TEST_CASE("an adaptive_p with other parameters goes on from the mean of another", "[samplers]") {
  adaptive_p before(0.4, 0.8);
  for (const double p : {0.5, 0.01, 0.2}) before.accept(1, of(p));
  adaptive_p after(0.4, 0.5);
  after.continue_from(before);
  CHECK(after.adapted_target() == before.adapted_target());
  before.rollback(1);
  after.rollback(1);
  CHECK(after.adapted_target() == before.adapted_target());
  after.reset();
  CHECK(after == adaptive_p(0.4, 0.5));
  adaptive_p off(-1);
  off.continue_from(before);
  CHECK(off == adaptive_p(-1));
}

}  // namespace adaptive_p_tests
