// SPDX-License-Identifier: MIT
#include <decant/speculative/ensemble_verification.hpp>

#include <limits>

#include "speculative/exact.hpp"

namespace ensemble_verification_tests {

using namespace exact;
using decant::ensemble_verification;

TEST_CASE("an ensemble changes the law, and weight 1 does not", "[speculative]") {
  const model p = random_model(3, 3), q = random_model(3, 5);
  CHECK(lossless(ensemble_verification(1), p, q, {{1, 1}}));
  CHECK(!lossless(ensemble_verification(0.5), p, q, {{1, 1}}));
  CHECK(round_of(ensemble_verification(0), p, q, {{1, 1}}).accepted == rational(2));
}

TEST_CASE("an ensemble accepts with 1 - w + w p / q", "[speculative]") {
  const model p = constant_model(law_of({5, 3, 2})), q = constant_model(law_of({1, 3, 6}));
  // Only token 2 can be rejected: with w (1 - 1/3).
  CHECK(round_of(ensemble_verification(0.25), p, q, {{1}}).accepted == rational(1) - rational(6, 10) * rational(1, 6));
}

TEST_CASE("an ensemble's weight lies in [0, 1]", "[speculative]") {
  for (const double bad : {-0.5, 1.001, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS(ensemble_verification(bad), decant::parameter_error);
    CHECK(!ensemble_verification::make(bad).has_value());
  }
  CHECK(ensemble_verification(0.25).describe() == "ensemble_verification(0.25)");
  CHECK(ensemble_verification(1).off());
  CHECK(!ensemble_verification::lossless);
}

}  // namespace ensemble_verification_tests
