// SPDX-License-Identifier: MIT
#include <decant/math/strict.hpp>

#include "math/bits.hpp"
#include "support/catch.hpp"

#include <cstdint>

namespace strict_test {

using namespace test_bits;

DECANT_STRICT_BEGIN

DECANT_STRICT double product_plus(double a, double b, double c) { return a * b + c; }
DECANT_STRICT double product_in_two_statements(double a, double b, double c) {
  const double product = a * b;
  return product + c;
}
DECANT_STRICT double lost_in_rounding(double large, double small) { return (large + small) - large; }
DECANT_STRICT bool differs_from_itself(double x) { return x != x; }
DECANT_STRICT double divide(double a, double b) { return a / b; }

DECANT_STRICT_END

// The values come through volatile so that nothing is computed while compiling. These hold under every set of flags.

TEST_CASE("strict functions round a product before adding to it", "[math][strict]") {
  volatile double a = 1 + 0x1p-30, b = 1 - 0x1p-30, c = -1;
  // The exact product is 1 - 2^-60, which rounds to 1; fused, the sum would be -2^-60.
  CHECK(bits_of(product_plus(a, b, c)) == 0);
  CHECK(bits_of(product_in_two_statements(a, b, c)) == 0);
}

TEST_CASE("strict functions do not reassociate", "[math][strict]") {
  volatile double large = 0x1p60, small = 1;
  CHECK(bits_of(lost_in_rounding(large, small)) == 0);
}

TEST_CASE("strict functions believe in NaN", "[math][strict]") {
  volatile std::uint64_t bits = 0x7FF8000000000000U;
  CHECK(differs_from_itself(double_of(bits)));
}

TEST_CASE("strict functions divide, they do not multiply by the reciprocal", "[math][strict]") {
  volatile double one = 1;
  int wrong = 0;
  for (int i = 1; i < 1000; ++i) {
    const double d = i;
    wrong += divide(d * one, d) != 1.0;
  }
  CHECK(wrong == 0);
}

}  // namespace strict_test
