// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <decant/math/strict.hpp>

// Numbers told by their bits, and exp and log that give the same bits on every compiler, flag and machine. libm's own
// differ in the last place between systems, and -ffast-math lets a compiler assume that NaN and infinity do not exist.

namespace decant::math {

// By reference: clang++ -ffast-math takes it as read that no float passed by value is NaN or infinite.
[[nodiscard]] constexpr bool is_nan(const float& x) noexcept {
  return (std::bit_cast<std::uint32_t>(x) << 1) > 0xFF000000U;
}
[[nodiscard]] constexpr bool is_nan(const double& x) noexcept {
  return (std::bit_cast<std::uint64_t>(x) << 1) > 0xFFE0000000000000U;
}
[[nodiscard]] constexpr bool is_finite(const float& x) noexcept {
  return (std::bit_cast<std::uint32_t>(x) & 0x7F800000U) != 0x7F800000U;
}
[[nodiscard]] constexpr bool is_finite(const double& x) noexcept {
  return (std::bit_cast<std::uint64_t>(x) & 0x7FF0000000000000U) != 0x7FF0000000000000U;
}
[[nodiscard]] constexpr bool is_plus_infinity(const float& x) noexcept {
  return std::bit_cast<std::uint32_t>(x) == 0x7F800000U;
}

/// A denormal as zero: builds that flush denormals and builds that do not must read the same row.
[[nodiscard]] constexpr float flush_denormal(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits & 0x7F800000U) == 0 ? bits & 0x80000000U : bits);
}

/// The nearest finite float; NaN stays NaN.
[[nodiscard]] inline float saturated(double x) noexcept {
  constexpr double largest = std::numeric_limits<float>::max();
  return static_cast<float>(x > largest ? largest : x < -largest ? -largest : x);
}

DECANT_STRICT_BEGIN

/// e^x in double, within 1 ulp or so; 0 below the smallest normal number, +inf above the largest.
DECANT_STRICT inline double exp(double x) noexcept {
  if (is_nan(x)) return x;
  if (x > 709.782712893384) return std::bit_cast<double>(0x7FF0000000000000U);
  if (x < -708.3964185322641) return 0;
  constexpr double log2e = 1.4426950408889634, ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
  const double scaled = product(x, log2e);
  const auto k = static_cast<std::int64_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
  const double kd = static_cast<double>(k);
  const double r = (x - product(kd, ln2_high)) - product(kd, ln2_low);  // |r| <= ln2 / 2; the first product is exact
  double p = 1.0 / 6227020800.0;
  p = product(p, r) + 1.0 / 479001600.0;
  p = product(p, r) + 1.0 / 39916800.0;
  p = product(p, r) + 1.0 / 3628800.0;
  p = product(p, r) + 1.0 / 362880.0;
  p = product(p, r) + 1.0 / 40320.0;
  p = product(p, r) + 1.0 / 5040.0;
  p = product(p, r) + 1.0 / 720.0;
  p = product(p, r) + 1.0 / 120.0;
  p = product(p, r) + 1.0 / 24.0;
  p = product(p, r) + 1.0 / 6.0;
  p = product(p, r) + 0.5;
  const double y = 1.0 + (r + product(product(r, r), p));
  // Two factors, because 2^1024 alone does not exist.
  const std::int64_t half = k / 2;
  const auto power_of_two = [](std::int64_t n) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
  };
  return y * power_of_two(half) * power_of_two(k - half);
}

/// ln x in double for x > 0, within 1 ulp or so; -inf for 0, NaN below.
DECANT_STRICT inline double log(double x) noexcept {
  auto bits = std::bit_cast<std::uint64_t>(x);
  if (is_nan(x) || bits == 0x7FF0000000000000U) return x;
  if ((bits << 1) == 0) return std::bit_cast<double>(0xFFF0000000000000U);
  if ((bits >> 63) != 0) return std::bit_cast<double>(0x7FF8000000000000U);
  constexpr double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
  std::int64_t exponent = -1023;
  if (bits < 0x0010000000000000U) {  // a denormal, which some builds flush: as an integer times 2^-1074
    exponent -= 1074;
    bits = std::bit_cast<std::uint64_t>(static_cast<double>(bits));
  }
  exponent += static_cast<std::int64_t>(bits >> 52);
  double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFU) | 0x3FF0000000000000U);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  // ln m = 2 artanh(s), s = (m - 1) / (m + 1), |s| <= 0.1716
  const double f = m - 1.0, s = f / (m + 1.0), s2 = product(s, s);
  double p = 1.0 / 25.0;
  p = product(p, s2) + 1.0 / 23.0;
  p = product(p, s2) + 1.0 / 21.0;
  p = product(p, s2) + 1.0 / 19.0;
  p = product(p, s2) + 1.0 / 17.0;
  p = product(p, s2) + 1.0 / 15.0;
  p = product(p, s2) + 1.0 / 13.0;
  p = product(p, s2) + 1.0 / 11.0;
  p = product(p, s2) + 1.0 / 9.0;
  p = product(p, s2) + 1.0 / 7.0;
  p = product(p, s2) + 1.0 / 5.0;
  p = product(p, s2) + 1.0 / 3.0;
  const double e = static_cast<double>(exponent);
  return product(e, ln2_high) + ((2.0 * s + product(product(2.0 * s, s2), p)) + product(e, ln2_low));
}

/// e^x - 1, without what the subtraction would round away. (Kahan: the errors of u - 1 and of ln u cancel.)
DECANT_STRICT inline double expm1(double x) noexcept {
  const double u = exp(x);
  if (u == 1.0) return x;
  const double less = u - 1.0;
  return less == -1.0 || !is_finite(u) ? less : product(less, x) / log(u);
}

/// ln(1 + x) for x > -1, without what the sum would round away.
DECANT_STRICT inline double log1p(double x) noexcept {
  const double u = 1.0 + x;
  if (u == 1.0) return x;
  return u == 0.0 || !is_finite(u) ? log(u) : product(log(u), x) / (u - 1.0);
}

DECANT_STRICT_END

/// ln(1 - e^x) for x < 0: what a logarithm of a probability x leaves to all else. -inf for 0.
[[nodiscard]] inline double log1m_exp(double x) noexcept {
  return x > -0.6931471805599453 ? log(-expm1(x)) : log1p(-exp(x));
}

}  // namespace decant::math
