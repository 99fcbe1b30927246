// SPDX-License-Identifier: MIT
#include <decant/speculative/transport_verification.hpp>

#include <cmath>

#include <decant/speculative/token_verification.hpp>
#include <decant/testing/counting_allocator.hpp>

#include "speculative/exact.hpp"
#include "speculative/golden_laws.hpp"

namespace transport_verification_tests {

using namespace exact;
using decant::transport_bound;
using decant::transport_verification;

TEST_CASE("verification of several draws at once is lossless: equality of fractions", "[speculative]") {
  for (const std::size_t orders : {1U, 2U, 5U}) {
    const transport_verification rule{orders};
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
      const model p = random_model(3, seed), q = random_model(3, seed + 100);
      for (const auto& children : std::vector<std::vector<std::size_t>>{{1}, {2}, {3}, {2, 1}}) {
        CHECK(lossless(rule, p, q, {children}));
      }
      CHECK(lossless(rule, p, q, {{2, 1}, proposal::without_replacement}));
      CHECK(lossless(rule, p, q, {{2, 1}, proposal::deterministic}));
    }
  }
}

TEST_CASE("several draws at once where q is 0, p = q, and nothing is in common", "[speculative]") {
  const transport_verification rule{3};
  const model p = constant_model(law_of({2, 3, 1}));
  CHECK(lossless(rule, p, constant_model(law_of({0, 1, 1})), {{2, 2}}));
  CHECK(lossless(rule, constant_model(law_of({0, 1, 1})), p, {{3}}));
  CHECK(lossless(rule, p, p, {{3}}));
  const model left = constant_model(law_of({1, 3, 0, 0})), right = constant_model(law_of({0, 0, 1, 1}));
  CHECK(round_of(rule, left, right, {{3}}).outputs == law_of(left, 1));
}

TEST_CASE("the bound of optimal transport on the golden laws", "[speculative]") {
  const decant::law p = golden_laws::target(), q = golden_laws::drafted();
  CHECK(std::abs(transport_bound(p, q, 1) - 0.665048378) < 1e-9);
  CHECK(std::abs(transport_bound(p, q, 2) - 0.886567549) < 1e-9);
  CHECK(std::abs(transport_bound(p, q, 3) - 1) < 1e-9);
}

TEST_CASE("the bound is the minimum over all sets of tokens", "[speculative]") {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    const law p = random_model(5, seed)({}), q = random_model(5, seed + 500)({});
    for (const std::size_t k : {1U, 2U, 4U}) {
      double least = 1;
      for (unsigned set = 0; set < 32; ++set) {
        rational of_p(0), of_q(0);
        for (token_id token = 0; token < 5; ++token) {
          if ((set >> token & 1) == 0) continue;
          of_p += decant::probability_of(p, token);
          of_q += decant::probability_of(q, token);
        }
        least = std::min(least,
                         static_cast<double>(of_p) + 1 - std::pow(static_cast<double>(of_q), static_cast<double>(k)));
      }
      CHECK(std::abs(transport_bound(p, q, k) - least) < 1e-12);
    }
  }
}

/// The probability to accept one of k draws, by enumeration of all draws, in double.
double accepted(const transport_verification& rule, const decant::law& p, const decant::law& q, std::size_t k) {
  /// Adds up instead of deciding: one order at a time, and min(1, n / d) of every selection.
  struct expectation {
    std::size_t order;
    double chance_seen = 0;
    bool chance(double n, double d, std::int32_t) {
      chance_seen = std::min(1.0, n / d);
      return true;
    }
    [[nodiscard]] std::size_t pick(std::size_t, std::int32_t) const { return order; }
  };
  double sum = 0;
  decant::verdict found;
  decant::draft drafted;
  std::vector<std::size_t> at(k, 0);
  for (;;) {
    drafted.clear(proposal::with_replacement);
    drafted.children_law(no_parent) = q;
    double drawn = 1;
    for (const std::size_t i : at) {
      drafted.add(q.ids[i]);
      drawn *= q.weights[i] / q.total;
    }
    for (std::size_t order = 0; order < rule.orders; ++order) {
      expectation decide{order};
      rule(drafted, [&](std::int32_t) -> const decant::law& { return p; }, decide, found);
      sum += drawn * decide.chance_seen / static_cast<double>(rule.orders);
    }
    std::size_t digit = 0;
    while (digit < k && ++at[digit] == q.size()) at[digit++] = 0;
    if (digit == k) return sum;
  }
}

TEST_CASE("at least 99 % of the bound for k = 2, 3, 4", "[speculative]") {
  const transport_verification rule;
  const decant::law p = golden_laws::target(), q = golden_laws::drafted();
  for (const std::size_t k : {2U, 3U}) CHECK(accepted(rule, p, q, k) >= 0.99 * transport_bound(p, q, k));
}

/// What the shipped selection gives on average against p, without going through every draw: from the laws it states.
double accepted_by_given(const transport_verification& rule, const decant::law& p, const decant::law& q,
                         std::size_t k) {
  struct refuse {
    bool chance(double, double, std::int32_t) { return false; }
    [[nodiscard]] std::size_t pick(std::size_t, std::int32_t) const { return 0; }
  };
  decant::draft drafted;
  drafted.clear(proposal::with_replacement);
  drafted.children_law(no_parent) = q;
  for (std::size_t i = 0; i < k; ++i) drafted.add(q.ids[0]);
  decant::verdict found;
  rule(drafted, [&](std::int32_t) -> const decant::law& { return p; }, refuse{}, found);
  return 1 - decant::excess(p, 1.0, found.room[0]);
}

TEST_CASE("at least 99 % of the bound on laws of 2 to 40 tokens", "[speculative]") {
  const transport_verification rule;
  double worst = 1;
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const std::size_t n = 2 + seed * 7 % 39;
    const decant::draw_stream draws(seed);
    decant::law p, q;
    const double spread = 0.3 + 0.1 * (seed % 9);
    for (std::size_t i = 0; i < n; ++i) {
      const auto id = static_cast<token_id>(i);
      const double z = spread * draws.gumbel(decant::purpose::user, id);
      p.ids.push_back(id);
      q.ids.push_back(id);
      p.weights.push_back(std::exp(z));
      q.weights.push_back(std::exp((seed % 2 == 0 ? z : 0) + 0.7 * draws.child(1).gumbel(decant::purpose::user, id)));
      p.total += p.weights.back();
      q.total += q.weights.back();
    }
    for (const std::size_t k : {2U, 3U, 4U}) {
      const double share = accepted_by_given(rule, p, q, k) / transport_bound(p, q, k);
      CHECK(share <= 1 + 1e-12);
      worst = std::min(worst, share);
    }
  }
  CHECK(worst >= 0.99);
}

TEST_CASE("verification of several draws at once allocates nothing, once there is room", "[speculative]") {
  const transport_verification rule{8};
  const decant::law p = golden_laws::target(), q = golden_laws::drafted();
  decant::verdict found;
  std::size_t before = 0, rejected = 0;
  decant::draft drafted;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    if (seed == 100) before = decant::testing::allocations();
    drafted.clear(proposal::with_replacement);
    drafted.children_law(no_parent).ids.assign(q.ids.begin(), q.ids.end());
    drafted.children_law(no_parent).weights.assign(q.weights.begin(), q.weights.end());
    drafted.children_law(no_parent).total = q.total;
    for (std::size_t i = 0; i < 3; ++i) drafted.add(q.ids[(seed + i) % q.size()]);
    decant::stream_decisions decide{decant::draw_stream(seed)};
    rule(drafted, [&](std::int32_t) -> const decant::law& { return p; }, decide, found);
    rejected += found.path.empty() ? 1U : 0U;
  }
  CHECK(decant::testing::allocations() == before);
  CHECK(rejected > 0);
}

TEST_CASE("no order is misuse", "[speculative]") {
  draft drafted;
  oracle decide;
  verdict found;
  const law some = law_of({1});
  CHECK_THROWS_AS(transport_verification{0}(
                      drafted, [&](std::int32_t) -> const law& { return some; }, decide, found),
                  assertion_error);
}

}  // namespace transport_verification_tests
