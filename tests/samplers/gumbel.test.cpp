// SPDX-License-Identifier: MIT
#include <decant/samplers/gumbel.hpp>

#include "processors/policies.hpp"
#include "samplers/noisy_rows.hpp"

#include <decant/chain.hpp>
#include <decant/processors.hpp>
#include <decant/testing/chi_square.hpp>

namespace gumbel_tests {

using namespace policies;
using decant::exponential_race;
using decant::gumbel;
using decant::testing::chi_square;

static_assert(decant::LawSampler<gumbel>);

const auto nothing = [](candidates&, const step_context&) {};

template <class P>
token_id pick(P policy, const row& logits, std::uint64_t seed) {
  candidates c;
  c.bind(std::span<const float>(logits));
  const step_context context = context_after({}, 0, draw_stream(seed));
  policy(c, context);
  return gumbel{}(c, context);
}

template <class P>
std::vector<std::size_t> counts_of(P policy, const row& logits, std::size_t draws) {
  std::vector<std::size_t> counts(logits.size());
  for (std::uint64_t seed = 0; seed < draws; ++seed) ++counts[static_cast<std::size_t>(pick(policy, logits, seed))];
  return counts;
}

TEST_CASE("gumbel draws softmax, over seeds", "[samplers]") {
  CHECK(chi_square(counts_of(nothing, golden, 20'000), reference::exact_law(golden)).p_value > 1e-4);
  for (const std::size_t size : {std::size_t{2}, std::size_t{30}, std::size_t{70}}) {
    row logits = random_row(size, size);
    if (size > 5) logits[4] = gone;
    CHECK(chi_square(counts_of(nothing, logits, 20'000), reference::exact_law(logits)).p_value > 1e-4);
  }
}

TEST_CASE("gumbel draws softmax, over many more seeds", "[samplers][long]") {
  CHECK(chi_square(counts_of(nothing, golden, 400'000), reference::exact_law(golden)).p_value > 1e-4);
  const row logits = random_row(20, 3);
  CHECK(chi_square(counts_of(nothing, logits, 400'000), reference::exact_law(logits)).p_value > 1e-4);
}

TEST_CASE("gumbel draws the law of a chain, over seeds", "[samplers]") {
  const auto z = reference::widened(golden);
  CHECK(chi_square(counts_of(decant::temperature(0.7), golden, 20'000),
                   reference::exact_law(reference::temperature(z, 0.7)))
            .p_value > 1e-4);
  CHECK(chi_square(counts_of(decant::top_k(3), golden, 20'000), reference::exact_law(reference::top_k(z, 3))).p_value >
        1e-4);
  CHECK(chi_square(counts_of(decant::top_p(0.9), golden, 20'000), reference::exact_law(reference::top_p(z, 0.9)))
            .p_value > 1e-4);
  CHECK(chi_square(counts_of(decant::min_p(0.2), golden, 20'000), reference::exact_law(reference::min_p(z, 0.2)))
            .p_value > 1e-4);
}

TEST_CASE("gumbel takes the argmax under a tiny temperature", "[samplers]") {
  for (const double t : {1e-6, 1e-12, 1e-30, 1e-36, 1e-38, 1e-40, 1e-100, 1e-300}) {
    INFO("T = " << t);
    tokens drawn;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      drawn.push_back(pick(decant::temperature(t), {999, 1000, -1000}, seed));
      drawn.push_back(pick(decant::temperature(t), {-1000, -999}, seed));
    }
    CHECK(drawn == tokens(40, 1));
  }
}

TEST_CASE("gumbel keeps the law where a low temperature makes the logits large", "[samplers]") {
  // Two neighbouring floats at T = 10^-6: the divided logits are 2 * 10^7 and 1.9 more, which float cannot tell from 2.
  const row logits{20, std::nextafter(20.0F, 21.0F)};
  const law expected = reference::exact_law(reference::temperature(reference::widened(logits), 1e-6));
  CHECK(chi_square(counts_of(decant::temperature(1e-6), logits, 60'000), expected).p_value > 1e-4);
  // And where only one of many is rounded away.
  const row three{200, std::nextafter(200.0F, 201.0F), 199.99998F};
  const law of_three = reference::exact_law(reference::temperature(reference::widened(three), 3e-5));
  CHECK(chi_square(counts_of(decant::temperature(3e-5), three, 60'000), of_three).p_value > 1e-4);
}

TEST_CASE("a token far below never wins, whatever the bits (SGLang PR25133)", "[samplers]") {
  for (std::uint64_t seed = 0; seed < 5000; ++seed) CHECK(pick(nothing, {0, -1e4F}, seed) == 0);
}

TEST_CASE("the noise of a token depends on its id, not on which tokens are left", "[samplers]") {
  std::size_t same = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const token_id all = pick(nothing, golden, seed);
    const token_id few = pick(decant::top_k(4), golden, seed);
    if (all < 4) CHECK(few == all);
    same += few == all;
  }
  CHECK(same > 450);
}

TEST_CASE("gumbel does not change under a shift", "[samplers]") {
  row shifted = golden;
  for (float& z : shifted) z += 64;
  for (std::uint64_t seed = 0; seed < 300; ++seed) CHECK(pick(nothing, golden, seed) == pick(nothing, shifted, seed));
}

TEST_CASE("gumbel draws anew at each position", "[samplers]") {
  const row logits(20, 0.0F);
  std::vector<std::size_t> counts(20);
  candidates c;
  for (std::size_t t = 0; t < 4000; ++t) {
    c.bind(std::span<const float>(logits));
    ++counts[static_cast<std::size_t>(gumbel{}(c, {{}, 0, draw_stream(3).at(t)}))];
  }
  CHECK(chi_square(counts, law(20, 0.05)).p_value > 1e-4);
}

TEST_CASE("gumbel gives no token on a bad row, and the one that is left", "[samplers]") {
  CHECK(pick(nothing, row(5, gone), 1) == no_token);
  for (std::size_t place = 0; place < 5; ++place) {
    for (const float bad : {nan_float, infinite_float}) {
      row logits{1, 2, 3, 4, 5};
      logits[place] = bad;
      CHECK(pick(nothing, logits, place) == no_token);
    }
    row one(5, gone);
    one[place] = -1e30F;
    CHECK(pick(nothing, one, place) == static_cast<token_id>(place));
  }
}

TEST_CASE("gumbel needs no random number for one token", "[samplers]") {
  // Under a hook a continuous draw is misuse, so asking for one would show.
  const auto law = decant::testing::enumerate_law([](decant::decision_hook& hook) {
    candidates c;
    const row one{gone, 3, gone};
    c.bind(std::span<const float>(one));
    return gumbel{}(c, {{}, 0, draw_stream(1).with_hook(&hook)});
  });
  CHECK(law.size() == 1);
  CHECK(law.begin()->first == 1);
}

TEST_CASE("gumbel draws the token of the largest sum, without looking at most of them", "[samplers]") {
  noisy_rows::each([](candidates& row, std::uint64_t seed) {
    const step_context context = context_after({}, 0, draw_stream(seed));
    const exponential_race race(context.draws.numbers(decant::purpose::noise));
    const auto noise = [&](token_id id) { return race.noise(id); };
    REQUIRE(gumbel{}(row, context) == noisy_rows::noisiest(row, noise));
  });
}

TEST_CASE("gumbel cannot be enumerated, and says so", "[samplers]") {
  CHECK_THROWS_AS(decant::testing::enumerate_law([](decant::decision_hook& hook) {
                    candidates c;
                    c.bind(std::span<const float>(golden));
                    return gumbel{}(c, {{}, 0, draw_stream(1).with_hook(&hook)});
                  }),
                  assertion_error);
}

TEST_CASE("gumbel on every size of vocabulary", "[samplers]") {
  std::vector<std::size_t> sizes{32'001, 151'937};
  for (std::size_t size = 1; size <= 70; ++size) sizes.push_back(size);
  for (const std::size_t size : sizes) {
    const token_id token = pick(nothing, random_row(size, size), size);
    CHECK(token >= 0);
    CHECK(static_cast<std::size_t>(token) < size);
  }
}

TEST_CASE("gumbel passes check_sampler", "[samplers]") {
  const auto report =
      decant::testing::check_sampler(gumbel{}, {.shift_invariant = true, .allocations = decant::testing::allocations});
  INFO(report.text());
  CHECK(report.ok);
  CHECK(gumbel{}.describe() == "gumbel");
}

}  // namespace gumbel_tests
