// SPDX-License-Identifier: MIT
#include <decant/speculative/lenient_verification.hpp>

#include <limits>

#include <decant/speculative/token_verification.hpp>

#include "speculative/exact.hpp"

namespace lenient_verification_tests {

using namespace exact;
using decant::lenient_verification;

TEST_CASE("lenience changes the law, and 1 does not", "[speculative]") {
  const model p = constant_model(law_of({5, 3, 2})), q = constant_model(law_of({1, 3, 6}));
  const shape chain{{1}};
  CHECK(lenient_verification(1).off());
  CHECK(lossless(lenient_verification(1), p, q, chain));
  CHECK(!lenient_verification(0.5).off());
  CHECK(!lossless(lenient_verification(0.5), p, q, chain));
}

TEST_CASE("lenience accepts with min(q, p / l) and rejects to (p - q)+", "[speculative]") {
  const model p = constant_model(law_of({5, 3, 2})), q = constant_model(law_of({1, 3, 6}));
  const round_law out = round_of(lenient_verification(0.5), p, q, {{1}});
  CHECK(out.accepted == rational(8, 10));  // .1 + .3 + min(.6, .2 / .5)
  const auto first = complete(out.outputs, p, 1);
  CHECK(first.at({0}) == rational(3, 10));  // .1, and all of what was rejected
  CHECK(first.at({1}) == rational(3, 10));
  CHECK(first.at({2}) == rational(4, 10));
}

TEST_CASE("with lenience no token comes out with more than p / l", "[speculative]") {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const model p = random_model(4, seed), q = random_model(4, seed + 70);
    rational before(0);
    for (const double lenience : {1.0, 0.75, 0.25}) {
      const round_law out = round_of(lenient_verification(lenience), p, q, {{1}});
      CHECK(out.accepted >= before);
      before = out.accepted;
      for (const auto& [text, chance] : complete(out.outputs, p, 1)) {
        CHECK(chance <= probability(p, text) / rational(lenience));
      }
    }
  }
}

TEST_CASE("lenience lies in (0, 1]", "[speculative]") {
  for (const double bad : {0.0, -0.5, 1.001, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS(lenient_verification(bad), decant::parameter_error);
    CHECK(!lenient_verification::make(bad).has_value());
  }
  CHECK(lenient_verification::make(0.3).value().describe() == "lenient_verification(0.3)");
  CHECK(!lenient_verification::lossless);
}

}  // namespace lenient_verification_tests
