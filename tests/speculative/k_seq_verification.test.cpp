// SPDX-License-Identifier: MIT
#include <decant/speculative/k_seq_verification.hpp>

#include <decant/speculative/token_verification.hpp>

#include "speculative/exact.hpp"
#include "speculative/golden_laws.hpp"

namespace k_seq_verification_tests {

using namespace exact;
using decant::k_seq_level;
using decant::k_seq_verification;

const k_seq_verification rule{3};  // few halvings: fractions stay short

TEST_CASE("k-SEQ is lossless: equality of fractions", "[speculative]") {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    const model p = random_model(3, seed), q = random_model(3, seed + 100);
    for (const auto& children : std::vector<std::vector<std::size_t>>{{1}, {2}, {3}, {2, 2}}) {
      CHECK(lossless(rule, p, q, {children}));
    }
    CHECK(lossless(rule, p, q, {{2, 1}, proposal::without_replacement}));
    CHECK(lossless(rule, p, q, {{2, 1}, proposal::deterministic}));
  }
}

TEST_CASE("k-SEQ where q is 0, p = q, and nothing is in common", "[speculative]") {
  const model p = constant_model(law_of({2, 3, 1}));
  CHECK(lossless(rule, p, constant_model(law_of({0, 1, 1})), {{2}}));
  CHECK(lossless(rule, constant_model(law_of({0, 1, 1})), p, {{3}}));
  CHECK(lossless(rule, p, p, {{3}}));
  const model left = constant_model(law_of({1, 3, 0, 0})), right = constant_model(law_of({0, 0, 1, 1}));
  CHECK(round_of(rule, left, right, {{3}}).outputs == law_of(left, 1));
}

TEST_CASE("k-SEQ with one child is token verification", "[speculative]") {
  const model p = random_model(4, 3), q = random_model(4, 4);
  CHECK(k_seq_level(p({}), q({}), 1) == rational(1));
  CHECK(round_of(rule, p, q, {{1, 1}}).outputs == round_of(decant::token_verification{}, p, q, {{1, 1}}).outputs);
}

TEST_CASE("the golden levels and acceptances of methods.md N", "[speculative]") {
  const decant::law p = golden_laws::target(), q = golden_laws::drafted();
  const double levels[] = {1.437962492, 1.728776181, 1.913611589};
  const double accepted[] = {0.808188855, 0.882832095, 0.930273856};
  for (const std::size_t k : {2U, 3U, 4U}) {
    const double rho = k_seq_level(p, q, k), beta = decant::detail::accepted_at(p, q, rho);
    CHECK(std::abs(rho - levels[k - 2]) < 1e-9);
    CHECK(std::abs(1 - std::pow(1 - beta, static_cast<double>(k)) - accepted[k - 2]) < 1e-9);
    // At the level below it more would be accepted than p has.
    const double less = rho * 0.999, more = decant::detail::accepted_at(p, q, less);
    CHECK(1 - std::pow(1 - more, static_cast<double>(k)) > less * more);
  }
}

}  // namespace k_seq_verification_tests
