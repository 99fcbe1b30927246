// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <decant/math/exp2.hpp>
#include <decant/math/half.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/strict.hpp>
#include <decant/math/sum_tree.hpp>

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
[[nodiscard]] constexpr row_content content_of(float sum) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(sum);
  return is_finite(sum) ? row_content::finite : bits == 0xFF800000U ? row_content::some_gone : row_content::suspicious;
}
[[nodiscard]] constexpr row_content worse(row_content a, row_content b) noexcept { return a > b ? a : b; }

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

/// The sum of those weights, as sum_block adds them.
DECANT_STRICT inline double weight_sum(const float* values, std::uint64_t keep, const weight_parameters& p) noexcept {
  block_weights w;
  weights(values, keep, p, w);
  return sum_block(w);
}

/// Sums over a row of weights, of weights times their exponents, and of the weights of values that reach a threshold.
struct mass_sums {
  double mass = 0, weighted = 0, above = 0;
};

/// The sum of e^(scale (z - reference)) over n values (a multiple of 16) none of which is above the reference, and of
/// that times its exponent, and the first alone over values >= high: in double, by math::exp, in sixteen lanes.
DECANT_STRICT inline mass_sums exact_mass(const float* values, std::size_t n, float reference, double scale,
                                          float high) noexcept {
  double mass[16] = {}, weighted[16] = {}, above[16] = {};
  for (std::size_t i = 0; i < n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) {
      const double below = product(static_cast<double>(values[i + j]) - static_cast<double>(reference), scale);
      const double w = exp(below);
      mass[j] = rounded(mass[j] + w);
      if (values[i + j] >= high) above[j] = rounded(above[j] + w);
      if (w > 0) weighted[j] = rounded(weighted[j] + product(w, below));
    }
  }
  mass_sums sums;
  for (std::size_t j = 0; j < 16; ++j) {
    sums.mass = rounded(sums.mass + mass[j]);
    sums.weighted = rounded(sums.weighted + weighted[j]);
    sums.above = rounded(sums.above + above[j]);
  }
  return sums;
}

/// The sum of the weights of n values (a multiple of 64), but for roundings: of each weight by some 2e-7 of it and 2e-7
/// of its exponent, and of sums of four to float. The same bits on every instruction set.
DECANT_STRICT inline double quick_mass(const float* values, std::size_t n, const weight_parameters& p) noexcept {
  double lanes[16] = {};
  for (std::size_t i = 0; i < n; i += 64) {
    for (std::size_t j = 0; j < 16; ++j) {
      float w[4];
      for (std::size_t k = 0; k < 4; ++k) w[k] = weight(values[i + 16 * k + j], p);
      lanes[j] = rounded(lanes[j] + static_cast<double>(rounded(rounded(w[0] + w[1]) + rounded(w[2] + w[3]))));
    }
  }
  double total = 0;
  for (const double lane : lanes) total = rounded(total + lane);
  return total;
}

/// The sum of z - reference over n values (a multiple of 16) that are not -inf, and of its square, in double.
struct moment_sums {
  double sum = 0, squares = 0;
};
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
  moment_sums sums;
  for (std::size_t j = 0; j < 16; ++j) {
    sums.sum = rounded(sums.sum + sum[j]);
    sums.squares = rounded(sums.squares + squares[j]);
  }
  return sums;
}

/// The sum of the weights, those of four rounded to float, of the values >= high, and the places of those in [low,
/// high), ascending. `places` has room for n and sixteen more.
struct bracket_sums {
  double mass = 0;
  std::size_t count = 0;
};
DECANT_STRICT inline bracket_sums bracket(const float* values, std::size_t n, const weight_parameters& p, float low,
                                          float high, std::uint32_t* places) noexcept {
  bracket_sums found;
  double mass[16] = {};
  for (std::size_t i = 0; i < n; i += 64) {
    for (std::size_t j = 0; j < 16; ++j) {
      float w[4];
      for (std::size_t k = 0; k < 4; ++k) {
        const float z = values[i + 16 * k + j];
        w[k] = z >= high ? weight(z, p) : 0.0F;
      }
      mass[j] += static_cast<double>(rounded(rounded(w[0] + w[1]) + rounded(w[2] + w[3])));
    }
    for (std::size_t j = 0; j < 64; ++j) {
      places[found.count] = static_cast<std::uint32_t>(i + j);
      found.count += values[i + j] >= low && values[i + j] < high;
    }
  }
  for (const double m : mass) found.mass += m;
  return found;
}

DECANT_STRICT_END

}  // namespace portable

}  // namespace decant::math
