// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
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

/// Whether a float in memory is NaN or +inf, told without reading it as a float: under -ffast-math there may be none.
[[nodiscard]] inline bool is_bad(const float* x) noexcept {
  std::uint32_t bits = 0;
  std::memcpy(&bits, x, sizeof bits);
  return (bits & 0x7F800000U) == 0x7F800000U && bits != 0xFF800000U;
}

/// A denormal as zero: builds that flush denormals and builds that do not must read the same row.
[[nodiscard]] constexpr float flush_denormal(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits & 0x7F800000U) == 0 ? bits & 0x80000000U : bits);
}

/// The next float above a finite one, where denormals are 0.
[[nodiscard]] constexpr float next_above(float x) noexcept {
  if ((std::bit_cast<std::uint32_t>(x) << 1) == 0) return std::numeric_limits<float>::min();
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return flush_denormal(std::bit_cast<float>(x > 0 ? bits + 1 : bits - 1));
}

/// The nearest finite float; NaN stays NaN.
[[nodiscard]] inline float saturated(double x) noexcept {
  constexpr double largest = std::numeric_limits<float>::max();
  // In this order either choice is one instruction, which gives a NaN on.
  const double above = -largest > x ? -largest : x;
  return static_cast<float>(largest < above ? largest : above);
}

DECANT_STRICT_BEGIN

/// 2^(j / 16) for j = 0 .. 15, rounded to nearest.
alignas(64) inline constexpr double sixteenths[16] = {
    0x1.0000000000000p+0, 0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0,
    0x1.306fe0a31b715p+0, 0x1.3dea64c123422p+0, 0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0,
    0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0, 0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f090p+0,
    0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0, 0x1.ea4afa2a490dap+0};

/// e^x = 2^(k / 16) e^r with |r| <= ln 2 / 32: the constants that every form of exp shares.
struct exp_constants {
  static constexpr double lowest = -708.396, highest = 709.782712893384;  // beyond: 0 and +inf
  static constexpr double per_sixteenth = 0x1.71547652b82fep+4;           // 16 / ln 2
  static constexpr double to_nearest = 0x1.8p52;  // adding it leaves no fraction bits, and k in the lowest ones
  static constexpr double high = 0x1.62e42fee00000p-5, low = 0x1.a39ef35793c76p-37;  // ln 2 / 16
  static constexpr double leading = 1.0 / 5040.0;
  static constexpr double coefficients[] = {1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5};
};

/// e^x in double, within 1 ulp or so; 0 where it would be below the smallest normal number (by a few parts in 10^4 of
/// it), +inf above the largest.
DECANT_STRICT inline double exp(double x) noexcept {
  using c = exp_constants;
  if (is_nan(x)) return x;
  if (x > c::highest) return std::bit_cast<double>(0x7FF0000000000000U);
  if (x < c::lowest) return 0;
  const double shifted = rounded(product(x, c::per_sixteenth) + c::to_nearest);
  const double k = rounded(shifted - c::to_nearest);
  const double r = rounded(rounded(x - product(k, c::high)) - product(k, c::low));  // the first product is exact
  double p = c::leading;
  for (const double coefficient : c::coefficients) p = rounded(product(p, r) + coefficient);
  const double q = rounded(r + product(product(r, r), p));
  const auto bits = std::bit_cast<std::uint64_t>(shifted);
  const double sixteenth = sixteenths[bits % 16];
  const double y = rounded(sixteenth + product(sixteenth, q));  // in [0.97, 2)
  // Adds k / 16, rounded down, to the exponent.
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(y) + ((bits & ~std::uint64_t{15}) << 48));
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
