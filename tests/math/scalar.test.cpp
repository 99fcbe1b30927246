// SPDX-License-Identifier: MIT
#include <decant/math/scalar.hpp>

#include "math/bits.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace scalar_test {

using namespace test_bits;
namespace math = decant::math;

/// How far `got` is from the exact value, in units of the last place of a double of that size.
double error_in_ulps(double got, long double exact) {
  const double rounded = static_cast<double>(exact);
  const double next = double_of(bits_of(rounded) + 1);  // away from zero
  const long double ulp = std::abs(static_cast<long double>(next) - static_cast<long double>(rounded));
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) / ulp);
}

constexpr std::uint64_t plus_infinity = 0x7FF0000000000000U, minus_infinity = 0xFFF0000000000000U;

TEST_CASE("exp is within two units of the last place over its whole range", "[math][scalar]") {
  splitmix next(1);
  double worst = 0;
  for (int i = 0; i < 300000; ++i) {
    const double x = next.between(-708, 709.78);
    worst = std::max(worst, error_in_ulps(math::exp(x), std::exp(static_cast<long double>(x))));
  }
  for (int i = 0; i < 200000; ++i) {
    const double x = next.between(-40, 0);
    worst = std::max(worst, error_in_ulps(math::exp(x), std::exp(static_cast<long double>(x))));
  }
  for (int exponent = -60; exponent <= 9; ++exponent) {
    for (int i = 0; i < 500; ++i) {
      const double x = std::ldexp(next.between(-1, 1), exponent);
      worst = std::max(worst, error_in_ulps(math::exp(x), std::exp(static_cast<long double>(x))));
    }
  }
  INFO("worst error " << worst << " ulp");
  CHECK(worst < 2);
}

TEST_CASE("exp at its special values", "[math][scalar]") {
  CHECK(math::exp(0.0) == 1);
  CHECK(math::exp(-0.0) == 1);
  CHECK(math::exp(double_of(1)) == 1);
  CHECK(math::exp(double_of(0x8000000000000001U)) == 1);
  CHECK(nan_bits(math::exp(double_of(0x7FF8000000000000U))));
  CHECK(bits_of(math::exp(double_of(plus_infinity))) == plus_infinity);
  CHECK(bits_of(math::exp(double_of(minus_infinity))) == 0);
  CHECK(bits_of(math::exp(710.0)) == plus_infinity);
  CHECK(bits_of(math::exp(1e300)) == plus_infinity);
  CHECK(bits_of(math::exp(-709.0)) == 0);
  CHECK(bits_of(math::exp(-1e300)) == 0);
  CHECK(error_in_ulps(math::exp(1.0), std::exp(1.0L)) < 1);
}

TEST_CASE("exp just inside its upper border is finite", "[math][scalar]") {
  const double largest = 709.782712893384;
  CHECK(bits_of(math::exp(largest)) < plus_infinity);
  CHECK(bits_of(math::exp(double_of(bits_of(largest) + 1))) == plus_infinity);
}

TEST_CASE("exp never gives a denormal, and is 0 only where the result is below the smallest normal number",
          "[math][scalar]") {
  for (int i = 0; i <= 100000; ++i) {
    const double x = -720 + i * 1e-3;
    const std::uint64_t bits = bits_of(math::exp(x));
    if (bits == 0) {
      // 2.2250738585072014e-308 = e^-708.3964
      if (x > -708.39) FAIL("exp(" << x << ") is 0, but e^x is a normal number");
    } else if (bits < 0x0010000000000000U) {
      FAIL("exp(" << x << ") is denormal");
    }
  }
  SUCCEED();
}

TEST_CASE("log is within two units of the last place for every exponent", "[math][scalar]") {
  splitmix next(2);
  double worst = 0;
  for (std::uint64_t exponent = 1; exponent < 2047; ++exponent) {
    for (int i = 0; i < 100; ++i) {
      const double x = double_of(exponent << 52 | next() >> 12);
      if (x == 1) continue;
      worst = std::max(worst, error_in_ulps(math::log(x), std::log(static_cast<long double>(x))));
    }
  }
  for (int i = 0; i < 200000; ++i) {
    const double x = next.between(0.5, 2);
    if (x == 1) continue;
    worst = std::max(worst, error_in_ulps(math::log(x), std::log(static_cast<long double>(x))));
  }
  for (int exponent = -52; exponent < -1; ++exponent) {
    for (int i = 0; i < 200; ++i) {
      const double x = 1 + std::ldexp(next.between(-1, 1), exponent);
      if (x == 1) continue;
      worst = std::max(worst, error_in_ulps(math::log(x), std::log(static_cast<long double>(x))));
    }
  }
  INFO("worst error " << worst << " ulp");
  CHECK(worst < 2);
}

TEST_CASE("log at its special values", "[math][scalar]") {
  CHECK(math::log(1.0) == 0);
  CHECK(bits_of(math::log(0.0)) == minus_infinity);
  CHECK(bits_of(math::log(-0.0)) == minus_infinity);
  CHECK(bits_of(math::log(double_of(plus_infinity))) == plus_infinity);
  CHECK(nan_bits(math::log(-1.0)));
  CHECK(nan_bits(math::log(double_of(minus_infinity))));
  CHECK(nan_bits(math::log(double_of(0x7FF8000000000001U))));
  CHECK(math::log(2.0) == Approx(0.6931471805599453).epsilon(1e-16));
}

TEST_CASE("log undoes exp", "[math][scalar]") {
  splitmix next(3);
  for (int i = 0; i < 20000; ++i) {
    const double x = next.between(-700, 700);
    CHECK(std::abs(math::log(math::exp(x)) - x) <= 1e-13 * std::max(1.0, std::abs(x)));
  }
}

TEST_CASE("expm1 and log1p lose nothing near 0", "[math][scalar]") {
  splitmix next(5);
  double worst = 0;
  for (int exponent = -1000; exponent <= 5; ++exponent) {
    for (int i = 0; i < 50; ++i) {
      const double x = std::ldexp(next.between(-1, 1), exponent);
      worst = std::max(worst, error_in_ulps(math::expm1(x), std::expm1(static_cast<long double>(x))));
      if (x > -1) worst = std::max(worst, error_in_ulps(math::log1p(x), std::log1p(static_cast<long double>(x))));
    }
  }
  INFO("worst error " << worst << " ulp");
  CHECK(worst < 6);
  CHECK(math::expm1(0.0) == 0);
  CHECK(math::expm1(-800.0) == -1);
  CHECK(bits_of(math::expm1(800.0)) == plus_infinity);
  CHECK(math::log1p(0.0) == 0);
  CHECK(bits_of(math::log1p(-1.0)) == minus_infinity);
  CHECK(bits_of(math::log1p(double_of(plus_infinity))) == plus_infinity);
}

TEST_CASE("log1m_exp is exact to some units of the last place over its whole range", "[math][scalar]") {
  splitmix next(6);
  double worst = 0;
  for (int exponent = -1000; exponent <= 9; ++exponent) {
    for (int i = 0; i < 50; ++i) {
      const double x = -std::ldexp(next.between(0.5, 1), exponent);
      if (x < -700) continue;  // e^x alone is below the smallest normal number
      const long double exact = x > -0.6931471805599453 ? std::log(-std::expm1(static_cast<long double>(x)))
                                                        : std::log1p(-std::exp(static_cast<long double>(x)));
      worst = std::max(worst, error_in_ulps(math::log1m_exp(x), exact));
    }
  }
  INFO("worst error " << worst << " ulp");
  CHECK(worst < 8);
  CHECK(bits_of(math::log1m_exp(0.0)) == minus_infinity);
  CHECK(math::log1m_exp(-800.0) == 0);
}

TEST_CASE("numbers are told by their bits", "[math][scalar]") {
  for (const std::uint32_t sign : {0U, 0x80000000U}) {
    CHECK(math::is_nan(float_of(sign | 0x7F800001U)));
    CHECK(math::is_nan(float_of(sign | 0x7FC00000U)));
    CHECK(math::is_nan(float_of(sign | 0x7FFFFFFFU)));
    CHECK_FALSE(math::is_nan(float_of(sign | 0x7F800000U)));
    CHECK_FALSE(math::is_nan(float_of(sign | 0x7F7FFFFFU)));
    CHECK_FALSE(math::is_finite(float_of(sign | 0x7F800000U)));
    CHECK_FALSE(math::is_finite(float_of(sign | 0x7F800001U)));
    CHECK(math::is_finite(float_of(sign | 0x7F7FFFFFU)));
    CHECK(math::is_finite(float_of(sign | 1)));
    CHECK(math::is_finite(float_of(sign)));
  }
  for (const std::uint64_t sign : {std::uint64_t{0}, std::uint64_t{1} << 63}) {
    CHECK(math::is_nan(double_of(sign | 0x7FF0000000000001U)));
    CHECK_FALSE(math::is_nan(double_of(sign | 0x7FF0000000000000U)));
    CHECK_FALSE(math::is_finite(double_of(sign | 0x7FF0000000000000U)));
    CHECK(math::is_finite(double_of(sign | 0x7FEFFFFFFFFFFFFFU)));
  }
  CHECK(math::is_plus_infinity(float_of(0x7F800000U)));
  CHECK_FALSE(math::is_plus_infinity(float_of(0xFF800000U)));
  CHECK_FALSE(math::is_plus_infinity(float_of(0x7F800001U)));
  CHECK_FALSE(math::is_plus_infinity(float_of(0x7F7FFFFFU)));
}

TEST_CASE("denormal floats are flushed to a zero of their sign, all else is left alone", "[math][scalar]") {
  for (std::uint32_t mantissa = 0; mantissa < 0x800000U; mantissa += 4099) {
    CHECK(bits_of(math::flush_denormal(float_of(mantissa))) == 0);
    CHECK(bits_of(math::flush_denormal(float_of(0x80000000U | mantissa))) == 0x80000000U);
  }
  CHECK(bits_of(math::flush_denormal(float_of(0x007FFFFFU))) == 0);
  CHECK(bits_of(math::flush_denormal(float_of(0x00800000U))) == 0x00800000U);
  for (const std::uint32_t bits : {0x7F800000U, 0xFF800000U, 0x7F800123U, 0xFFC00000U, 0x3F800000U, 0x80800000U}) {
    CHECK(bits_of(math::flush_denormal(float_of(bits))) == bits);
  }
}

// The committed values define the format: a seed means the same tokens wherever they hold.
TEST_CASE("exp has the same bits everywhere", "[math][scalar][golden]") {
  splitmix next(11);
  hash all;
  for (int i = 0; i < 100000; ++i) all.add(math::exp(next.between(-750, 720)));
  for (int i = 0; i < 100000; ++i) all.add(math::exp(-double_of(0x3C00000000000000U + (next() >> 11))));
  CHECK(all.value() == 0x93A5C3140616A1BCU);
}

TEST_CASE("log has the same bits everywhere", "[math][scalar][golden]") {
  splitmix next(12);
  hash all;
  for (int i = 0; i < 200000; ++i) {
    const double x = double_of(next() >> 1);
    all.add(nan_bits(x) ? 0.0 : math::log(x));
  }
  for (int i = 0; i < 100000; ++i) all.add(math::log(next.unit()));
  CHECK(all.value() == 0xDAA329139D836D4AU);
}

}  // namespace scalar_test
