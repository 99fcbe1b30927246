// SPDX-License-Identifier: MIT
#include <decant/speculative/speculative_cascade.hpp>

#include <limits>

#include <decant/speculative/token_verification.hpp>

#include "speculative/exact.hpp"

namespace speculative_cascade_tests {

using namespace exact;
using decant::chow_deferral;
using decant::optimal_deferral;
using decant::speculative_cascade;

/// The law that a cascade is lossless for: of a round of `depth` drafted tokens, then one of the target's own.
template <class Deferral>
model mixed(Deferral defers, const model& p, const model& q, std::size_t depth) {
  return [=](const tokens& before) {
    return before.size() >= depth || defers(p(before), q(before)) ? p(before) : q(before);
  };
}

template <class Deferral>
bool lossless_for_the_mixture(Deferral defers, const model& p, const model& q, std::size_t depth) {
  const model pi = mixed(defers, p, q, depth);
  const shape chain{std::vector<std::size_t>(depth, 1)};
  return complete(round_of(speculative_cascade(defers), p, q, chain).outputs, pi, depth + 1) == law_of(pi, depth + 1);
}

TEST_CASE("a cascade is lossless for the law that it mixes: equality of fractions", "[speculative]") {
  bool not_for_the_target = false;
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const model p = random_model(3, seed), q = random_model(3, seed + 100);
    for (const double alpha : {0.0, 0.25, 0.5, 1.0}) {
      for (const std::size_t depth : {1U, 2U}) {
        CHECK(lossless_for_the_mixture(chow_deferral(alpha), p, q, depth));
        CHECK(lossless_for_the_mixture(optimal_deferral(alpha), p, q, depth));
      }
    }
    not_for_the_target = not_for_the_target || !lossless(speculative_cascade(chow_deferral(0.5)), p, q, {{1, 1}});
  }
  CHECK(not_for_the_target);
}

TEST_CASE("always deferring is token verification, never deferring accepts all", "[speculative]") {
  const auto always = [](const law&, const law&) { return true; };
  const auto never = [](const law&, const law&) { return false; };
  const model p = random_model(3, 4), q = random_model(3, 8);
  const shape chain{{1, 1}};
  CHECK(round_of(speculative_cascade(always), p, q, chain).outputs ==
        round_of(decant::token_verification{}, p, q, chain).outputs);
  CHECK(round_of(speculative_cascade(never), p, q, chain).accepted == rational(2));
}

TEST_CASE("when to defer", "[speculative]") {
  const law sure = law_of({8, 1, 1}), unsure = law_of({4, 3, 3});
  CHECK(!chow_deferral(0.25)(unsure, sure));
  CHECK(chow_deferral(0.25)(sure, unsure));
  CHECK(chow_deferral(0.125)(unsure, sure));
  CHECK(!chow_deferral(0)(sure, law_of({1})));
  // Largest probabilities .8 and .4, distance .4: deferring pays while .4 < .8 - alpha .4.
  CHECK(optimal_deferral(0)(sure, unsure));
  CHECK(optimal_deferral(0.75)(sure, unsure));
  CHECK(!optimal_deferral(1.25)(sure, unsure));
  CHECK(!optimal_deferral(0)(unsure, sure));
}

TEST_CASE("deferral parameters", "[speculative]") {
  for (const double bad : {-0.1, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_AS(chow_deferral(bad), decant::parameter_error);
    CHECK(!optimal_deferral::make(bad).has_value());
  }
  CHECK(chow_deferral(0.5).describe() == "chow_deferral(0.5)");
  CHECK(optimal_deferral(2).describe() == "optimal_deferral(2)");
  CHECK(!speculative_cascade<chow_deferral>::lossless);
}

}  // namespace speculative_cascade_tests
