// SPDX-License-Identifier: MIT
#include <decant/processors/confidence_increment.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace confidence_increment_tests {

using namespace policies;
using decant::chain;
using decant::confidence_increment;
using decant::increment_rule;

struct increments {
  std::vector<std::size_t> order;
  law growth;
};

/// The definition: how much 1 - H / ln n of (p_1 ... p_k, the rest spread evenly) grows with k.
increments reference_increments(const row& logits) {
  const law full = reference::exact_law(logits);
  increments out{reference::descending(reference::widened(logits)), {}};
  const std::size_t n = out.order.size();
  const auto confidence = [&](std::size_t k) {
    law spread;
    double rest = 0;
    for (std::size_t i = 0; i < k; ++i) spread.push_back(full[out.order[i]]);
    for (std::size_t i = k; i < n; ++i) rest += full[out.order[i]];
    for (std::size_t i = k; i < n; ++i) spread.push_back(rest / static_cast<double>(n - k));
    return 1 - reference::entropy(spread) / std::log(static_cast<double>(n));
  };
  for (std::size_t k = 1; k <= n; ++k) out.growth.push_back(confidence(k) - confidence(k - 1));
  return out;
}

tokens reference_survivors(const row& logits, double epsilon, increment_rule rule) {
  const increments all = reference_increments(logits);
  tokens ids;
  for (std::size_t k = 0; k < all.order.size(); ++k) {
    const bool enough = all.growth[k] > epsilon;
    if (!enough && k > 0 && rule == increment_rule::prefix) break;
    if (enough || k == 0) ids.push_back(static_cast<token_id>(all.order[k]));
  }
  std::ranges::sort(ids);
  return ids;
}

TEST_CASE("confidence_increment has the golden increments of methods.md N", "[processors]") {
  const law growth{0.222871419, 0.044907507, 0.024432381, 0.017307366, 0.005800533};
  for (std::size_t k = 0; k < growth.size(); ++k) {
    CHECK(reference_increments(golden).growth[k] == Approx(growth[k]).epsilon(1e-6));
    // Just below its increment a token stays, just above it goes (here they do fall).
    CHECK(survivors(confidence_increment(growth[k] - 1e-8), golden).size() == k + 1);
    CHECK(survivors(confidence_increment(growth[k] + 1e-8), golden).size() == std::max<std::size_t>(k, 1));
  }
}

TEST_CASE("the increments sum to 1 - H / ln n and are never negative", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(25, seed);
    double sum = 0;
    for (const double d : reference_increments(logits).growth) {
      CHECK(d > -1e-12);
      sum += d;
    }
    CHECK(sum == Approx(1 - reference::entropy(reference::exact_law(logits)) / std::log(25.0)));
  }
}

TEST_CASE("confidence_increment equals its definition, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    row logits = random_row(60, seed);
    logits[9] = gone;
    for (const double epsilon : {5e-4, 1e-3, 0.01, 0.05}) {
      for (const increment_rule rule : {increment_rule::prefix, increment_rule::each}) {
        const tokens expected = reference_survivors(logits, epsilon, rule);
        const confidence_increment policy(epsilon, 1, rule);
        CHECK(survivors(policy, logits) == expected);
        row kept(logits.size(), gone);
        for (const token_id id : expected) kept[static_cast<std::size_t>(id)] = logits[static_cast<std::size_t>(id)];
        CHECK(difference(enumerated_law(policy, logits), reference::exact_law(kept)) < of_float);
      }
    }
  }
}

TEST_CASE("the increments are not monotone: prefix and each differ", "[processors]") {
  // Two levels: inside the upper one the increment falls and rises again at its end.
  const row logits{3, 3, 3, 3, 0, 0, 0, 0};
  const law growth = reference_increments(logits).growth;
  CHECK(growth[1] < growth[3]);
  const double epsilon = (growth[0] + growth[3]) / 2;
  CHECK(survivors(confidence_increment(epsilon), logits) == tokens{0});
  CHECK(survivors(confidence_increment(epsilon, 1, increment_rule::each), logits) ==
        reference_survivors(logits, epsilon, increment_rule::each));
  CHECK(survivors(confidence_increment(epsilon, 1, increment_rule::each), logits) == tokens{0, 3});
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const row random = random_row(40, seed);
    CHECK(std::ranges::includes(survivors(confidence_increment(1e-3, 1, increment_rule::each), random),
                                survivors(confidence_increment(1e-3), random)));
  }
}

TEST_CASE("equal tokens add no confidence: only min_keep stays, even at epsilon 0", "[processors]") {
  for (const std::size_t size : {std::size_t{2}, std::size_t{7}, std::size_t{1000}, std::size_t{50257}}) {
    for (const increment_rule rule : {increment_rule::prefix, increment_rule::each}) {
      CHECK(survivors(confidence_increment(0, 1, rule), row(size, 3.0F)) == tokens{0});
      CHECK(survivors(confidence_increment(0, 2, rule), row(size, 3.0F)) == tokens{0, 1});
    }
  }
}

TEST_CASE("epsilon >= 1 is greedy, a certain token stays alone", "[processors]") {
  for (const increment_rule rule : {increment_rule::prefix, increment_rule::each}) {
    for (const double epsilon : {1.0, 2.0, infinity}) {
      CHECK(survivors(confidence_increment(epsilon, 1, rule), golden) == tokens{0});
      CHECK(survivors(confidence_increment(epsilon, 1, rule), {1, 5, 5}) == tokens{1});
      CHECK(survivors(confidence_increment(epsilon, 1, rule), {0, 2000, gone}) == tokens{1});
    }
    CHECK(survivors(confidence_increment(1e-3, 1, rule), {0, 50, 0}) == tokens{1});
    CHECK(survivors(confidence_increment(1e-3, 1, rule), {0, 2000, gone, -2000}) == tokens{1});
    CHECK(survivors(confidence_increment(0, 1, rule), {0, 2000, gone, -2000}) == tokens{1});
    CHECK(survivors(confidence_increment(1e-3, 1, rule), {gone, 4}) == tokens{1});
  }
}

TEST_CASE("the last token adds nothing and never stays of itself", "[processors]") {
  CHECK(survivors(confidence_increment(0), golden) == tokens{0, 1, 2, 3, 4});
  CHECK(survivors(confidence_increment(0, 6), golden).size() == 6);
}

TEST_CASE("confidence_increment keeps min_keep tokens", "[processors]") {
  CHECK(survivors(confidence_increment(0.1, 3), golden) == tokens{0, 1, 2});
  CHECK(survivors(confidence_increment(0.02, 2), golden) == tokens{0, 1, 2});
  CHECK(survivors(confidence_increment(0.1, 0), golden) == tokens{0});
  CHECK(survivors(confidence_increment(1, 50), golden).size() == 6);
  CHECK(survivors(confidence_increment(1, 3, increment_rule::each), golden) == tokens{0, 1, 2});
  CHECK(survivors(confidence_increment(1, 50, increment_rule::each), golden).size() == 6);
  // each: min_keep adds the largest, and takes nothing away.
  const row two_levels{3, 3, 3, 3, 0, 0, 0, 0};
  const law growth = reference_increments(two_levels).growth;
  const confidence_increment policy((growth[0] + growth[3]) / 2, 2, increment_rule::each);
  CHECK(survivors(policy, two_levels) == tokens{0, 1, 3});
}

TEST_CASE("confidence_increment sees the tokens left", "[processors]") {
  const row logits = random_row(60, 4);
  row kept(logits.size(), gone);
  for (const token_id id : survivors(decant::top_k(10), logits))
    kept[static_cast<std::size_t>(id)] = logits[static_cast<std::size_t>(id)];
  CHECK(survivors(chain(decant::top_k(10), confidence_increment(1e-3)), logits) ==
        reference_survivors(kept, 1e-3, increment_rule::prefix));
}

TEST_CASE("confidence_increment is right after extreme temperatures and shifts", "[processors]") {
  for (const increment_rule rule : {increment_rule::prefix, increment_rule::each}) {
    for (const double by : {-1e18, -1e12, 1e12, 1e18}) {
      const auto shifted = [=](candidates& c, const step_context&) { c.affine(1, by); };
      CHECK(survivors(chain(shifted, confidence_increment(0.02, 1, rule)), golden) == tokens{0, 1, 2});
    }
    CHECK(survivors(chain(decant::temperature(1e-12), confidence_increment(1e-3, 1, rule)), {1000, 999, 1000.5F, 3}) ==
          tokens{2});
    CHECK(survivors(chain(decant::temperature(1e12), confidence_increment(1e-3, 1, rule)), {1000, 999, 1000.5F, 3}) ==
          tokens{2});
  }
}

TEST_CASE("confidence_increment refuses what is not a number >= 0", "[processors]") {
  for (const double bad : {not_a_number, -infinity, -1.0, -denormal}) {
    check_rejects<confidence_increment>(bad, "confidence_increment", "epsilon", "must be a number >= 0");
  }
  for (const double good : {0.0, -0.0, denormal, 1e-3, 1.0, infinity}) check_accepts<confidence_increment>(good);
  CHECK(confidence_increment::make(0.5, std::size_t{3}, increment_rule::each).has_value());
  CHECK(confidence_increment(0.05).describe() == "confidence_increment(0.05)");
}

TEST_CASE("confidence_increment on all sizes and on bad rows", "[processors]") {
  for (const double epsilon : {0.0, 1e-3, 1.0}) {
    for (const increment_rule rule : {increment_rule::prefix, increment_rule::each}) {
      check_sizes(confidence_increment(epsilon, 1, rule));
      check_bad_rows(confidence_increment(epsilon, 1, rule));
    }
  }
}

TEST_CASE("confidence_increment passes check_processor", "[processors]") {
  for (const increment_rule rule : {increment_rule::prefix, increment_rule::each}) {
    check_report_of(confidence_increment(1e-3, 1, rule),
                    {.permutation = false, .shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace confidence_increment_tests
