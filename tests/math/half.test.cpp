// SPDX-License-Identifier: MIT
#include <decant/math/half.hpp>

#include "math/bits.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <cstdint>

namespace half_test {

using namespace test_bits;
using decant::bfloat16;
using decant::float16;
using decant::math::to_float;

/// A number of `fraction_bits` and the given exponent width, computed from its definition.
double by_definition(std::uint32_t bits, int fraction_bits, int exponent_bits) {
  const std::uint32_t fraction = bits & ((1U << fraction_bits) - 1);
  const std::uint32_t exponent = (bits >> fraction_bits) & ((1U << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double unit = std::ldexp(static_cast<double>(fraction), -fraction_bits);
  const double magnitude =
      exponent == 0 ? std::ldexp(unit, 1 - bias) : std::ldexp(1 + unit, static_cast<int>(exponent) - bias);
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

/// By bits: a build that flushes denormals must not compare them as numbers.
std::uint32_t float_bits(double x, bool negative) {
  const std::uint32_t sign = negative ? 0x80000000U : 0;
  if (std::abs(x) > 0 && std::abs(x) < 0x1p-126) {
    return sign | static_cast<std::uint32_t>(std::ldexp(std::abs(x), 149));
  }
  return sign | bits_of(static_cast<float>(std::abs(x)));
}

TEST_CASE("all 65,536 float16 are converted exactly", "[math][half]") {
  std::uint32_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float got = to_float(float16{static_cast<std::uint16_t>(bits)});
    const bool special = (bits & 0x7C00U) == 0x7C00U;
    if (special) {
      const std::uint32_t fraction = bits & 0x3FFU;
      wrong += (bits_of(got) >> 31) != (bits >> 15);
      wrong += fraction == 0 ? (bits_of(got) & 0x7FFFFFFFU) != 0x7F800000U : !nan_bits(got);
    } else {
      wrong += bits_of(got) != float_bits(by_definition(bits, 10, 5), (bits & 0x8000U) != 0);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("all 65,536 bfloat16 are converted exactly", "[math][half]") {
  std::uint32_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float got = to_float(bfloat16{static_cast<std::uint16_t>(bits)});
    const bool special = (bits & 0x7F80U) == 0x7F80U;
    if (special) {
      const std::uint32_t fraction = bits & 0x7FU;
      wrong += (bits_of(got) >> 31) != (bits >> 15);
      wrong += fraction == 0 ? (bits_of(got) & 0x7FFFFFFFU) != 0x7F800000U : !nan_bits(got);
    } else {
      wrong += bits_of(got) != float_bits(by_definition(bits, 7, 8), (bits & 0x8000U) != 0);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("known halves", "[math][half]") {
  CHECK(to_float(float16{0x3C00}) == 1.0F);
  CHECK(to_float(float16{0xC000}) == -2.0F);
  CHECK(to_float(float16{0x7BFF}) == 65504.0F);
  CHECK(to_float(float16{0x0001}) == 0x1p-24F);
  CHECK(to_float(float16{0x03FF}) == 1023 * 0x1p-24F);
  CHECK(bits_of(to_float(float16{0x8000})) == 0x80000000U);
  CHECK(to_float(bfloat16{0x3F80}) == 1.0F);
  CHECK(to_float(bfloat16{0x4049}) == 3.140625F);
  CHECK(bits_of(to_float(bfloat16{0xFF80})) == 0xFF800000U);
  CHECK(to_float(2.5F) == 2.5F);
}

}  // namespace half_test
