// SPDX-License-Identifier: MIT
#include <decant/samplers/mirostat.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace mirostat_tests {

using namespace policies;
using decant::mirostat;
using decant::mirostat_surprise;
using decant::step_record;

static_assert(decant::LawSampler<mirostat>);
static_assert(decant::Stateful<mirostat>);

constexpr double ln2 = 0.6931471805599453;

/// Narrowing alone, as a processor, so that what is left can be asked for.
auto narrowing(mirostat policy) {
  return [policy](candidates& c, const step_context& context) { policy.narrow(c, context); };
}

/// A policy whose mu stands still at the given value.
mirostat fixed(double mu) { return mirostat(mu / 2, 0); }

/// The record that a token of these probabilities leaves, in bits of surprise.
step_record bits(double before, double after) { return {-before * ln2, -after * ln2}; }

token_id pick(mirostat policy, const row& logits, std::uint64_t seed) {
  candidates c;
  c.bind(std::span<const float>(logits));
  return policy(c, context_after({}, 0, draw_stream(seed)));
}

/// The law of a call, by enumeration of its decisions.
law enumerated_call(const mirostat& policy, const row& logits) {
  law out(logits.size());
  for (const auto& [token, p] : decant::testing::enumerate_law([&](decant::decision_hook& hook) {
         candidates c;
         c.bind(std::span<const float>(logits));
         mirostat called = policy;
         return called(c, context_after({}, 0, draw_stream(1).with_hook(&hook)));
       })) {
    if (token >= 0) out[static_cast<std::size_t>(token)] = p;
  }
  return out;
}

/// The epsilon cutoff, written out: probabilities of at least epsilon, else the argmax.
law cut_at(const row& logits, double epsilon) {
  law p = reference::exact_law(logits);
  const std::size_t best = reference::descending(reference::widened(logits)).front();
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] < epsilon && i != best) p[i] = 0;
    sum += p[i];
  }
  for (double& x : p) x /= sum;
  return p;
}

TEST_CASE("mirostat has the golden set of methods.md N", "[samplers]") {
  CHECK(survivors(narrowing(fixed(2)), golden) == tokens{0});
  // The surprises in bits are 0.834, 2.277, 2.998, 3.720, 5.162, 8.048.
  CHECK(survivors(narrowing(fixed(2.2768)), golden) == tokens{0});
  CHECK(survivors(narrowing(fixed(2.2769)), golden) == tokens{0, 1});
  CHECK(survivors(narrowing(fixed(3)), golden) == tokens{0, 1, 2});
  CHECK(survivors(narrowing(fixed(5.1622)), golden) == tokens{0, 1, 2, 3});
  CHECK(survivors(narrowing(fixed(8.0477)), golden).size() == 6);
}

TEST_CASE("mu starts at 2 tau", "[samplers]") {
  CHECK(mirostat().mu() == 10);
  CHECK(mirostat(3).mu() == 6);
  CHECK(mirostat(0, 1).mu() == 0);
}

TEST_CASE("one step of mirostat by hand", "[samplers]") {
  mirostat policy(3, 0.1);
  policy.accept(4, bits(5, 2));  // 6 - 0.1 (5 - 3)
  CHECK(policy.mu() == Approx(5.8).epsilon(1e-14));
  policy.accept(0, bits(0.5, 0.25));  // 5.8 - 0.1 (0.5 - 3)
  CHECK(policy.mu() == Approx(6.05).epsilon(1e-14));
  mirostat truncated(3, 0.1, mirostat_surprise::llama_cpp);
  truncated.accept(4, bits(5, 2));
  CHECK(truncated.mu() == Approx(6.1).epsilon(1e-14));
}

/// Forces tokens through a decoder's bookkeeping: the true records of the golden row under the policy's own narrowing.
std::vector<double> mu_along(mirostat policy, const tokens& forced, std::vector<tokens>& kept) {
  std::vector<double> out;
  const law p = reference::exact_law(golden);
  for (const token_id token : forced) {
    kept.push_back(survivors(narrowing(policy), golden));
    double mass = 0;
    for (const token_id id : kept.back()) mass += p[static_cast<std::size_t>(id)];
    const double chosen = p[static_cast<std::size_t>(token)];
    policy.accept(token, {std::log(chosen), std::log(chosen / mass)});
    out.push_back(policy.mu());
  }
  return out;
}

TEST_CASE("mu after fixed steps is that of the reference (llama-cpp-python#914)", "[samplers]") {
  std::vector<tokens> kept;
  const law original{2.611551764524813,  2.2231035290496264, 2.5560028140189215,
                     2.8889020989882166, 3.2218013839575117, 2.472679388260084};
  const auto mu = mu_along(mirostat(1.5, 0.5), {1, 1, 0, 0, 0, 2}, kept);
  REQUIRE(mu.size() == original.size());
  for (std::size_t i = 0; i < mu.size(); ++i) CHECK(mu[i] == Approx(original[i]).epsilon(1e-9));
  CHECK(kept == std::vector<tokens>{{0, 1, 2}, {0, 1}, {0}, {0, 1}, {0, 1}, {0, 1, 2}});
  kept.clear();
  const law truncated{2.6936812085674333, 2.4963631465814276, 3.0203926050399037, 2.353400053385096, 2.877429511843572};
  const auto lower = mu_along(mirostat(1.5, 0.5, mirostat_surprise::llama_cpp), {1, 1, 0, 2, 0}, kept);
  REQUIRE(lower.size() == truncated.size());
  for (std::size_t i = 0; i < lower.size(); ++i) CHECK(lower[i] == Approx(truncated[i]).epsilon(1e-9));
  CHECK(kept == std::vector<tokens>{{0, 1, 2}, {0, 1}, {0, 1}, {0, 1, 2}, {0, 1}});
}

TEST_CASE("a decoder moves mu by what it drew, under either convention", "[samplers]") {
  const law p = reference::exact_law(golden);
  for (const auto observed : {mirostat_surprise::original, mirostat_surprise::llama_cpp}) {
    auto decoding = decant::top_k(6) | mirostat(1.5, 0.4, observed);
    double mu = 3;
    tokens text;
    for (int step = 0; step < 60; ++step) {
      const auto before = context_after(text, 0, draw_stream(7));
      double mass = 0;
      for (const double x : p) mass += -std::log2(x) <= mu ? x : 0;
      mass = std::max(mass, p[0]);
      const token_id token = decoding.step(golden, before);
      const double chosen = p[static_cast<std::size_t>(token)];
      mu -= 0.4 * (-std::log2(observed == mirostat_surprise::original ? chosen : chosen / mass) - 1.5);
      REQUIRE(decoding.sampler().mu() == Approx(mu).margin(1e-4));
      text.push_back(token);
    }
    decoding.rollback(60);
    CHECK(decoding.sampler() == mirostat(1.5, 0.4, observed));
  }
}

TEST_CASE("mirostat with eta 0 is an epsilon cutoff at 2^-mu, law by enumeration", "[samplers]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    row logits = random_row(60, seed);
    logits[5] = gone;
    for (const double mu : {0.0, 1.0, 2.5, 4.0, 6.5, 12.0, 40.0}) {
      mirostat policy = fixed(mu);
      policy.accept(3, bits(9, 7));
      CHECK(policy.mu() == mu);
      const law expected = cut_at(logits, std::exp2(-mu));
      CHECK(difference(law_after(narrowing(policy), logits), expected) < of_float);
      CHECK(difference(enumerated_call(policy, logits), expected) < of_float);
      CHECK(difference(enumerated_call(policy, logits), law_after(narrowing(policy), logits)) < 1e-14);
    }
  }
}

TEST_CASE("a boundless mu is a plain draw bit for bit, a very low one greedy", "[samplers]") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{6}, std::size_t{70}, std::size_t{9000}}) {
    const row logits = random_row(size, size);
    const token_id best = static_cast<token_id>(reference::descending(reference::widened(logits)).front());
    mirostat low(0, 1);
    for (int i = 0; i < 10; ++i) low.accept(0, bits(1e4, 1e4));
    CHECK(low.mu() == Approx(-1e5));
    candidates c;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      c.bind(std::span<const float>(logits));
      const token_id plain = decant::multinomial{}(c, context_after({}, 0, draw_stream(seed)));
      CHECK(pick(fixed(2e6), logits, seed) == plain);
      CHECK(pick(low, logits, seed) == best);
      CHECK(pick(fixed(0), logits, seed) == best);
    }
  }
}

TEST_CASE("the mean surprise settles at tau", "[samplers]") {
  const law p = reference::exact_law(golden);
  for (const double tau : {0.9, 1.2, 1.6}) {
    auto decoding = decant::temperature(1) | mirostat(tau, 0.1);
    double sum = 0;
    constexpr std::size_t steps = 20'000;
    for (std::size_t t = 0; t < steps; ++t) {
      sum -= std::log2(p[static_cast<std::size_t>(decoding.step(golden, {{}, 0, draw_stream(5).at(t)}))]);
    }
    CHECK(sum / steps == Approx(tau).margin(0.02));
  }
}

TEST_CASE("a surprise equal to mu is let through: a flat row is not torn apart", "[samplers]") {
  for (int power = 0; power <= 14; ++power) {
    for (const float level : {0.0F, 3.25F, -900.0F, 12345.0F}) {
      const row flat(std::size_t{1} << power, level);
      CHECK(survivors(narrowing(fixed(power)), flat).size() == flat.size());
      if (power > 0) CHECK(survivors(narrowing(fixed(power - 0.001)), flat) == tokens{0});
    }
  }
}

TEST_CASE("equal tokens stand or fall together, and the lowest id is kept if all fall", "[samplers]") {
  CHECK(survivors(narrowing(fixed(3)), {0, 2, 2, 0, 2, 0}) == tokens{1, 2, 4});
  CHECK(survivors(narrowing(fixed(1)), {0, 2, 2, 0, 2, 0}) == tokens{1});
  CHECK(survivors(narrowing(fixed(5)), {0, gone, 2, gone, 2, 0}) == tokens{0, 2, 4, 5});
}

TEST_CASE("a constant added to all logits does not change what mirostat keeps", "[samplers]") {
  for (const float shift : {-65536.0F, -300.0F, 300.0F, 65536.0F}) {
    row shifted = golden;
    for (float& z : shifted) z += shift;
    CHECK(survivors(narrowing(fixed(3)), shifted) == tokens{0, 1, 2});
  }
}

TEST_CASE("rollback is exact, also over tokens that were forced", "[samplers]") {
  mirostat policy(2.7, 0.3);
  std::vector<mirostat> stages{policy};
  const draw_stream draws(3);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const double surprise = 12 * draws.uniform(decant::purpose::user, i);
    policy.accept(static_cast<token_id>(i),
                  i % 7 == 3 ? step_record{-infinity, -infinity} : bits(surprise, surprise / 2));
    stages.push_back(policy);
  }
  for (std::size_t back = 0; back <= 40; ++back) {
    mirostat undone = policy;
    undone.rollback(back);
    CHECK(undone == stages[40 - back]);
    CHECK(undone.mu() == stages[40 - back].mu());
    undone.reset();
    CHECK(undone == stages[0]);
  }
  CHECK_THROWS_AS(policy.rollback(41), assertion_error);
}

TEST_CASE("a token that could not have been drawn leaves mu alone", "[samplers]") {
  for (const double eta : {0.0, 0.1}) {
    mirostat policy(5, eta);
    policy.accept(1, {-infinity, -infinity});
    policy.accept(1, {not_a_number, not_a_number});
    CHECK(policy.mu() == 10);
    policy.rollback(2);
    CHECK(policy == mirostat(5, eta));
  }
}

TEST_CASE("a copy of mirostat is a fork", "[samplers]") {
  mirostat policy(2, 0.5);
  policy.accept(1, bits(4, 4));
  mirostat fork = policy;
  fork.accept(1, bits(4, 4));
  CHECK(policy.mu() == 3);
  CHECK(fork.mu() == 2);
  fork.rollback(1);
  CHECK(fork == policy);
}

TEST_CASE("a mirostat with other parameters goes on from the mu of another", "[samplers]") {
  mirostat before(3, 0.2);
  for (const double p : {0.5, 0.01, 0.2}) before.accept(1, {std::log(p), std::log(p)});
  mirostat after(1, 0.5);
  after.continue_from(before);
  CHECK(after.mu() == before.mu());
  CHECK(decant::describe(after) == "mirostat(1, 0.5)");
  before.rollback(2);
  after.rollback(2);
  CHECK(after.mu() == before.mu());
  after.reset();
  CHECK(after.mu() == 2);
  mirostat fresh(4, 0.1);
  fresh.continue_from(mirostat(3, 0.2));  // nothing has happened yet
  CHECK(fresh.mu() == 8);
}

TEST_CASE("calling mirostat changes no state", "[samplers]") {
  const mirostat policy(2, 0.5);
  candidates c;
  c.bind(std::span<const float>(golden));
  static_cast<void>(policy(c, context_after({}, 0, draw_stream(1))));
  CHECK(policy == mirostat(2, 0.5));
}

TEST_CASE("mirostat under a tiny temperature is the argmax", "[samplers]") {
  for (const double t : {1e-6, 1e-38, 1e-300}) {
    auto decoding = decant::temperature(t) | mirostat();
    CHECK(decoding.step(row{999, 1000, -1000}, {{}, 0, draw_stream(1)}) == 1);
    CHECK(decant::math::is_finite(decoding.sampler().mu()));
  }
}

TEST_CASE("mirostat refuses bad parameters", "[samplers]") {
  for (const double bad : {not_a_number, -infinity, infinity, -1.0, -denormal, 1000001.0}) {
    check_rejects<mirostat>(bad, "mirostat", "tau", "must lie in [0, 1000000]");
    const std::string text = "mirostat: eta = " + decant::detail::number_text(bad) + " must lie in [0, 1000000]";
    CHECK(complaint([&] { return mirostat(5, bad); }) == text);
    const auto made = mirostat::make(5.0, bad);
    REQUIRE(!made.has_value());
    CHECK(made.error().message == text);
    CHECK(made.error().where == "mirostat.eta");
  }
  for (const double good : {0.0, -0.0, denormal, 3.0, 1e6}) {
    check_accepts<mirostat>(good);
    CHECK(complaint([&] { return mirostat(5, good); }).empty());
  }
}

TEST_CASE("mirostat says what it is", "[samplers]") {
  CHECK(mirostat().describe() == "mirostat(5, 0.1)");
  CHECK(mirostat(3, 1).describe() == "mirostat(3, 1)");
  CHECK(mirostat(5, 0.1, mirostat_surprise::llama_cpp).describe() == "mirostat(5, 0.1, llama_cpp)");
  CHECK((decant::temperature(0.8) | mirostat()).describe() == "temperature(0.8) | mirostat(5, 0.1)");
  CHECK(!decant::is_off(mirostat()));
}

TEST_CASE("mirostat on all sizes and on bad rows", "[samplers]") {
  for (const double mu : {0.0, 3.0, 10.0}) {
    check_sizes(narrowing(fixed(mu)));
    check_bad_rows(narrowing(fixed(mu)));
    CHECK(pick(fixed(mu), row(5, gone), 1) == no_token);
    CHECK(pick(fixed(mu), {1, nan_float, 0}, 1) == no_token);
  }
  auto decoding = decant::top_k(0) | mirostat();
  CHECK_THROWS_AS(decoding.step(row(4, gone), {{}, 0, draw_stream(1)}), decant::decode_error);
  CHECK(decoding.sampler() == mirostat());
}

TEST_CASE("mirostat passes check_sampler", "[samplers]") {
  for (const auto observed : {mirostat_surprise::original, mirostat_surprise::llama_cpp}) {
    for (const double tau : {0.0, 1.0, 3.0, 10.0}) {
      const mirostat policy(tau, 0.3, observed);
      const auto report = decant::testing::check_sampler(
          policy, {.shift_invariant = true, .discrete = true, .allocations = decant::testing::allocations});
      INFO(policy.describe());
      INFO(report.text());
      CHECK(report.ok);
    }
  }
}

}  // namespace mirostat_tests
