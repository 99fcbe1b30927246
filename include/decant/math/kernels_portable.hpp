// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include <decant/math/exp2.hpp>
#include <decant/math/half.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/strict.hpp>

namespace decant::math {

/// What a pass over a row found besides the largest values.
enum class row_content : std::uint8_t {
  finite,      ///< every value is a finite number
  some_gone,   ///< finite numbers and -inf
  suspicious,  ///< a NaN, a +inf, or numbers whose sum is too large: look at each
};

/// The largest value of a row, and what else a pass has found.
struct row_summary {
  float max;
  row_content content;
};

/// The row's content, told by the sum of some lanes: a NaN and a +inf stay in a sum, and so does a -inf.
[[nodiscard]] constexpr row_content content_of(const float& sum) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(sum);
  return is_finite(sum) ? row_content::finite : bits == 0xFF800000U ? row_content::some_gone : row_content::suspicious;
}
[[nodiscard]] constexpr row_content worse(row_content a, row_content b) noexcept { return a > b ? a : b; }

/// What makes a value's rough weight: the bits of slope * value + offset, or 0.
struct rough_parameters {
  float slope, offset;
};

/// Weights of 64 consecutive slots; an absent slot holds 0.
using block_weights = std::array<double, 64>;

/// Kernels in plain C++: what they mean, and what every other form must equal bit for bit.
namespace portable {

inline constexpr float minus_infinity = std::bit_cast<float>(0xFF800000U);

DECANT_STRICT_BEGIN

/// peaks[b] = the largest of values 64 b .. 64 b + 63, -inf where all are gone; denormals as 0. For suspicious rows
/// the peaks mean nothing.
template <class Element>
DECANT_STRICT inline row_summary peaks(const Element* row, std::size_t n, float* out) noexcept {
  row_summary summary{minus_infinity, row_content::finite};
  for (std::size_t begin = 0; begin < n; begin += 64) {
    const std::size_t end = std::min(n, begin + 64);
    float lanes[16], sums[16];
    std::fill_n(lanes, 16, minus_infinity);
    std::fill_n(sums, 16, 0.0F);
    std::size_t i = begin;
    for (; i + 16 <= end; i += 16) {
      for (std::size_t j = 0; j < 16; ++j) {
        const float z = to_float(row[i + j]);
        lanes[j] = z > lanes[j] ? z : lanes[j];
        sums[j] += z;
      }
    }
    for (; i < end; ++i) {
      const float z = to_float(row[i]);
      lanes[0] = z > lanes[0] ? z : lanes[0];
      sums[0] += z;
    }
    float top = lanes[0];
    for (std::size_t j = 0; j < 16; ++j) {
      top = lanes[j] > top ? lanes[j] : top;
      summary.content = worse(summary.content, content_of(sums[j]));
    }
    top = flush_denormal(top);
    out[begin / 64] = top;
    summary.max = top > summary.max ? top : summary.max;
  }
  return summary;
}

/// The same pass, which also sums the rough weights of all whole blocks of 64, within 3e-6 of what that is. Bits may
/// differ between forms.
DECANT_STRICT inline row_summary peaks_and_mass(const float* row, std::size_t n, float* out, const rough_parameters& p,
                                                double& mass) noexcept {
  mass = 0;
  for (std::size_t i = 0; i < n / 64 * 64; ++i) {
    const float bits = product(row[i], p.slope) + p.offset;
    // No float beyond 2^31 can be told as an integer: such sums are for nothing.
    mass += static_cast<double>(std::bit_cast<float>(bits > 0 && bits < 0x1p31F ? static_cast<std::int32_t>(bits) : 0));
  }
  return peaks(row, n, out);
}

/// Two sums over a row: of differences from a reference, and of their squares.
struct moment_sums {
  double sum = 0, squares = 0;
};

/// The same pass, which also sums the moments of all whole blocks of 64 about a reference: as floats, but for their
/// sums, of which no more than 64 are added up before they are doubles. Bits may differ between forms.
DECANT_STRICT inline row_summary peaks_and_spread(const float* row, std::size_t n, float* out, float reference,
                                                  moment_sums& sums) noexcept {
  sums = {};
  for (std::size_t i = 0; i < n / 64 * 64; ++i) {
    const double d = static_cast<double>(rounded(row[i] - reference));
    sums.sum += d;
    sums.squares += product(d, d);
  }
  return peaks(row, n, out);
}

/// How many of n values are >= threshold.
inline std::size_t count_at_least(const float* values, std::size_t n, float threshold) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) count += values[i] >= threshold;
  return count;
}

/// Bit i: whether value i of 64 is >= threshold.
inline std::uint64_t at_least(const float* values, float threshold) noexcept {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < 64; ++i) mask |= static_cast<std::uint64_t>(values[i] >= threshold) << i;
  return mask;
}

/// 64 elements as floats.
template <class Element>
inline void widen(const Element* from, float* to) noexcept {
  for (std::size_t i = 0; i < 64; ++i) to[i] = to_float(from[i]);
}

DECANT_STRICT inline float weight(float z, const weight_parameters& p) noexcept {
  return exp2_weight(product(z - p.reference, p.narrow));
}

/// The weights of 64 values, 0 where a bit of `keep` is not set.
DECANT_STRICT inline void weights(const float* values, std::uint64_t keep, const weight_parameters& p,
                                  block_weights& out) noexcept {
  for (std::size_t i = 0; i < 64; ++i) out[i] = (keep >> i & 1) != 0 ? static_cast<double>(weight(values[i], p)) : 0;
}

/// The weights of n values in float; n is a multiple of 16.
DECANT_STRICT inline void float_weights(const float* values, std::size_t n, const weight_parameters& p,
                                        float* out) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = weight(values[i], p);
}

/// The sum of 64 slots in one fixed order, which sixteen lanes can follow.
DECANT_STRICT inline double block_sum(const double* w) noexcept {
  double lane[16];
  for (std::size_t j = 0; j < 16; ++j) lane[j] = (w[j] + w[j + 16]) + (w[j + 32] + w[j + 48]);
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) lane[j] += lane[j + half];
  }
  return lane[0];
}

/// out[i] = e^(scale (values[i] - reference)), by math::exp; n is a multiple of 16 and no value is above the reference.
DECANT_STRICT inline void exps(const float* values, std::size_t n, float reference, double scale,
                               double* out) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = exp(product(static_cast<double>(values[i]) - static_cast<double>(reference), scale));
  }
}

/// The sum of sixteen lanes, one after the other.
DECANT_STRICT inline double lane_sum(const double (&lanes)[16]) noexcept {
  double sum = 0;
  for (const double lane : lanes) sum = rounded(sum + lane);
  return sum;
}

/// Two sums over a row: of weights, and of weights times their exponents.
struct mass_sums {
  double mass = 0, weighted = 0;
};

/// Quick sums, put right for exponents that are too large by the excess.
DECANT_STRICT inline mass_sums without_excess(const mass_sums& sums, const quick_parameters& p) noexcept {
  return {product(sums.mass, p.factor), product(rounded(sums.weighted - product(p.excess, sums.mass)), p.factor)};
}

/// The sum of those exponentials over n values, and of them times their exponents, in sixteen lanes.
DECANT_STRICT inline mass_sums exact_mass(const float* values, std::size_t n, float reference, double scale) noexcept {
  double mass[16] = {}, weighted[16] = {};
  for (std::size_t i = 0; i < n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) {
      const double below = product(static_cast<double>(values[i + j]) - static_cast<double>(reference), scale);
      const double w = exp(below);
      mass[j] = rounded(mass[j] + w);
      if (w > 0) weighted[j] = rounded(weighted[j] + product(w, below));
    }
  }
  return {lane_sum(mass), lane_sum(weighted)};
}

/// Two sums over a row: of weights, and of the weights of values that reach a threshold.
struct split_mass {
  double mass = 0, above = 0;
};

/// The relative error of the sums of near_mass.
inline constexpr double near_mass_error = 1e-8;

/// The sum of those exponentials over n values, and over those >= high alone, within near_mass_error of themselves;
/// bits may differ between forms.
DECANT_STRICT inline split_mass near_mass(const float* values, std::size_t n, float reference, double scale,
                                          float high) noexcept {
  split_mass sums;
  for (std::size_t i = 0; i < n; ++i) {
    const double w = exp(product(static_cast<double>(values[i]) - static_cast<double>(reference), scale));
    sums.mass += w;
    if (values[i] >= high) sums.above += w;
  }
  return sums;
}

/// The sum of the weights w[i] of the values >= threshold; n is a multiple of 16. Bits may differ between forms.
DECANT_STRICT inline double sum_at_least(const float* values, const double* w, std::size_t n,
                                         float threshold) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (values[i] >= threshold) sum += w[i];
  }
  return sum;
}

/// 2^y for y <= 0 as quick sums have it; 2^-126 for all that is less.
DECANT_STRICT inline float quick_exp2(float y) noexcept {
  const float n = std::floor(y), f = y - n;
  float p = quick_exp2_coefficients[0];
  for (std::size_t i = 1; i < std::size(quick_exp2_coefficients); ++i) {
    p = __builtin_fmaf(p, f, quick_exp2_coefficients[i]);
  }
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(p) + static_cast<std::int32_t>(n) * (1 << 23));
}

/// Sums a stretch of `blocks` blocks of 64 as floats, lane by lane, and adds the sums of sixteen lanes to doubles.
template <bool with_exponents>
DECANT_STRICT inline void add_quickly(const float* values, std::size_t blocks, const quick_parameters& p,
                                      double (&mass)[16], double (&weighted)[16]) noexcept {
  for (std::size_t j = 0; j < 16; ++j) {
    float w[4] = {}, h[4] = {};
    for (std::size_t b = 0; b < blocks; ++b) {
      for (std::size_t k = 0; k < 4; ++k) {
        const float exponent = __builtin_fmaf(values[64 * b + 16 * k + j], p.slope, p.offset);
        const float y = exponent > -126.0F ? exponent : -126.0F, weight = quick_exp2(y);
        w[k] = rounded(w[k] + weight);
        if constexpr (with_exponents) h[k] = __builtin_fmaf(weight, y, h[k]);
      }
    }
    mass[j] = rounded(mass[j] + static_cast<double>(rounded(rounded(w[0] + w[1]) + rounded(w[2] + w[3]))));
    weighted[j] = rounded(weighted[j] + static_cast<double>(rounded(rounded(h[0] + h[1]) + rounded(h[2] + h[3]))));
  }
}

template <bool with_exponents>
DECANT_STRICT inline mass_sums quick_sums(const float* values, std::size_t n, const quick_parameters& p) noexcept {
  double mass[16] = {}, weighted[16] = {};
  std::size_t i = 0;
  for (; i + 256 <= n; i += 256) add_quickly<with_exponents>(values + i, 4, p, mass, weighted);
  for (; i < n; i += 64) add_quickly<with_exponents>(values + i, 1, p, mass, weighted);
  return without_excess({lane_sum(mass), lane_sum(weighted)}, p);
}

/// The sum of the weights of n values (a multiple of 64), but for roundings: of each weight by some 3e-7 of it and 9e-8
/// of its exponent, and of sums of sixteen in float. The same bits on every instruction set.
inline double quick_mass(const float* values, std::size_t n, const quick_parameters& p) noexcept {
  return quick_sums<false>(values, n, p).mass;
}

/// The same, and the sum of the weights times their exponents to base 2.
inline mass_sums quick_masses(const float* values, std::size_t n, const quick_parameters& p) noexcept {
  return quick_sums<true>(values, n, p);
}

/// Whether values are numbers or -inf, and none is so high that a swift sum cannot tell it.
[[nodiscard]] DECANT_STRICT inline bool suits(const swift_parameters& p, const row_summary& values) noexcept {
  const double shift = static_cast<double>(p.base) - static_cast<double>(swift_parameters::to_nearest);
  return values.content != row_content::suspicious &&
         product(static_cast<double>(values.max), static_cast<double>(p.slope)) + shift < swift_parameters::above;
}

/// The weight 2^(slope z + shift) in such a sum, by one rounding of the exponent.
DECANT_STRICT inline float swift_weight(float z, const swift_parameters& p) noexcept {
  z = z > p.least ? z : p.least;
  const float whole = __builtin_fmaf(z, p.slope, p.base), f = __builtin_fmaf(z, p.slope, -rounded(whole - p.base));
  float w = swift_exp2_coefficients[0];
  for (std::size_t i = 1; i < std::size(swift_exp2_coefficients); ++i) {
    w = __builtin_fmaf(w, f, swift_exp2_coefficients[i]);
  }
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(w) + (std::bit_cast<std::uint32_t>(whole) << 23));
}

/// The peaks of n values (a multiple of 64), and along the way the sum of their weights, if the parameters suit them:
/// in sixteen lanes, as floats for 512 values at a time, which rounds by 1.1e-6. The same bits on every instruction
/// set.
DECANT_STRICT inline row_summary peaks_and_swift_mass(const float* values, std::size_t n, float* out,
                                                      const swift_parameters& p, double& mass) noexcept {
  const row_summary summary = peaks(values, n, out);
  mass = 0;
  if (!suits(p, summary)) return summary;
  double lanes[16] = {};
  for (std::size_t begin = 0; begin < n; begin += 512) {
    float some[16] = {};
    for (std::size_t i = begin; i < std::min(n, begin + 512); i += 32) {
      for (std::size_t j = 0; j < 16; ++j) {
        some[j] = rounded(some[j] + rounded(swift_weight(values[i + j], p) + swift_weight(values[i + 16 + j], p)));
      }
    }
    for (std::size_t j = 0; j < 16; ++j) lanes[j] = rounded(lanes[j] + static_cast<double>(some[j]));
  }
  mass = lane_sum(lanes);
  return summary;
}

/// The sum of z - reference over n values (a multiple of 16) that are not -inf, and of its square, in double.
DECANT_STRICT inline moment_sums moments(const float* values, std::size_t n, float reference) noexcept {
  double sum[16] = {}, squares[16] = {};
  for (std::size_t i = 0; i < n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) {
      if (std::bit_cast<std::uint32_t>(values[i + j]) == 0xFF800000U) continue;
      const double d = static_cast<double>(values[i + j]) - static_cast<double>(reference);
      sum[j] = rounded(sum[j] + d);
      squares[j] = rounded(squares[j] + product(d, d));
    }
  }
  return {lane_sum(sum), lane_sum(squares)};
}

/// A value bent, as the nearest finite float; -inf stays. Beyond -2^200 distances are that.
DECANT_STRICT inline float bent(float z, const bend_parameters& p) noexcept {
  if (std::bit_cast<std::uint32_t>(z) == 0xFF800000U) return z;
  const double below = product(static_cast<double>(flush_denormal(z)) - static_cast<double>(p.reference), p.scale);
  const double d = below > -0x1p200 ? below : -0x1p200;
  return flush_denormal(saturated(product(rounded(product(p.cube, d) - p.square), product(d, d))));
}

/// Bends n values, a multiple of 64, none of which is above the reference; may be in place.
DECANT_STRICT inline void bend(const float* values, std::size_t n, const bend_parameters& p, float* out) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = bent(values[i], p);
}

/// A value raised, as the nearest finite float; -inf stays.
DECANT_STRICT inline float raised(float z, bool chosen, const raise_parameters& p) noexcept {
  if (std::bit_cast<std::uint32_t>(z) == 0xFF800000U) return z;
  float x = flush_denormal(z);
  if (p.rescales()) x = flush_denormal(saturated(product(p.scale, static_cast<double>(x)) + p.shift));
  return chosen ? flush_denormal(saturated(static_cast<double>(x) + p.amount)) : x;
}

/// Raises those of n values, a multiple of 64, whose bits are set: bit i % 64 of word i / 64.
DECANT_STRICT inline void raise(const float* values, std::size_t n, const std::uint64_t* chosen,
                                const raise_parameters& p, float* out) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = raised(values[i], (chosen[i / 64] >> (i % 64) & 1) != 0, p);
}

/// Where values in [low, high) are written: room for as many as are looked at.
struct listed_values {
  std::int32_t* ids;
  float* values;
};

/// Writes the values of blocks of 64 that lie in [low, high), ascending, with `first` + their places; denormals as 0.
/// Blocks whose peak is below `low` are passed over. Returns how many.
inline std::size_t collect(const float* row, const float* peaks, std::size_t blocks, float low, float high,
                           std::int32_t first, listed_values out) noexcept {
  std::size_t count = 0;
  for (std::size_t b = 0; b < blocks; ++b) {
    if (!(peaks[b] >= low)) continue;
    for (std::size_t i = 64 * b; i < 64 * b + 64; ++i) {
      if (!(row[i] >= low && row[i] < high)) continue;
      out.ids[count] = first + static_cast<std::int32_t>(i);
      out.values[count++] = flush_denormal(row[i]);
    }
  }
  return count;
}

/// Writes the places of the bits that are set in a mask, ascending, and returns how many they are; more than `most`, if
/// they are more, of which none need be written. Up to 63 beyond `most` may be.
inline std::size_t set_bits(const std::uint64_t* words, std::size_t n, std::size_t most, std::int32_t* out) noexcept {
  std::size_t count = 0;
  for (std::size_t w = 0; w < n && count <= most; ++w) {
    for (std::uint64_t left = words[w]; left != 0; left &= left - 1) {
      out[count++] = static_cast<std::int32_t>(64 * w + static_cast<std::size_t>(std::countr_zero(left)));
    }
  }
  return count;
}

/// The same of a list, whose length is a multiple of 16: writes its members in [low, high), which may be in place.
inline std::size_t filter(const std::int32_t* ids, const float* values, std::size_t n, float low, float high,
                          listed_values out) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const float z = values[i];
    const bool inside = z >= low && z < high;
    out.ids[count] = ids[i];
    out.values[count] = z;
    count += inside;
  }
  return count;
}

DECANT_STRICT_END

}  // namespace portable

}  // namespace decant::math
