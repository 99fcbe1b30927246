// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <decant/math/isa.hpp>
#include <decant/math/kernels.hpp>
#include <decant/math/kernels_avx2.hpp>
#include <decant/math/kernels_avx512.hpp>
#include <decant/math/strict.hpp>

namespace decant::math {

/// Rows of numbers in memory, the same distance apart.
template <class Float>
struct strided_rows {
  Float* data;
  std::size_t count;   ///< how many rows
  std::size_t stride;  ///< from the start of one to the start of the next

  [[nodiscard]] Float* row(std::size_t i) const noexcept { return data + i * stride; }
};

/// A matrix, row by row.
struct dense_matrix {
  const float* data;
  std::size_t rows, columns;

  [[nodiscard]] const float* row(std::size_t i) const noexcept { return data + i * columns; }
};

namespace portable {

DECANT_STRICT_BEGIN

using four_floats = float __attribute__((vector_size(16)));

inline four_floats load_four(const float* from) noexcept {
  four_floats lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

/// Ends a scalar product: (s0 + s2) + (s1 + s3), and one by one the products beyond the last four.
DECANT_STRICT inline float finished(const four_floats& sums, const float* x, const float* w,
                                    std::size_t columns) noexcept {
  float sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
  for (std::size_t j = columns - columns % 4; j < columns; ++j) sum += product(x[j], w[j]);
  return sum;
}

/// Adds to out[c] the scalar products of x with `count` rows of weights. Each has four partial sums, of every fourth
/// product. Four scalar products at a time, because a sum must wait for the one before.
DECANT_STRICT inline void row_products(const float* x, const float* w, std::size_t count, std::size_t columns,
                                       float* out) noexcept {
  const std::size_t n = columns, even = n - n % 4;
  std::size_t c = 0;
  for (; c + 4 <= count; c += 4, w += 4 * n) {
    four_floats first{}, second{}, third{}, fourth{};
    for (std::size_t j = 0; j < even; j += 4) {
      const four_floats numbers = load_four(x + j);
      first += product(numbers, load_four(w + j));
      second += product(numbers, load_four(w + n + j));
      third += product(numbers, load_four(w + 2 * n + j));
      fourth += product(numbers, load_four(w + 3 * n + j));
    }
    out[c] += finished(first, x, w, n);
    out[c + 1] += finished(second, x, w + n, n);
    out[c + 2] += finished(third, x, w + 2 * n, n);
    out[c + 3] += finished(fourth, x, w + 3 * n, n);
  }
  for (; c < count; ++c, w += n) {
    four_floats sums{};
    for (std::size_t j = 0; j < even; j += 4) sums += product(load_four(x + j), load_four(w + j));
    out[c] += finished(sums, x, w, n);
  }
}

DECANT_STRICT_END

}  // namespace portable

#if DECANT_X86
namespace avx2 {

DECANT_STRICT_BEGIN

/// Two rows of x, one in each half of a register.
struct row_pair {
  const float* low;
  const float* high;

  DECANT_AVX2_INLINE __m256 at(std::size_t j) const noexcept { return _mm256_loadu2_m128(high + j, low + j); }
};

/// The partial sums of a pair of rows with four rows of weights.
struct pair_sums {
  __m256 a, b, c, d;

  DECANT_AVX2_INLINE void add(__m256 x, __m256 wa, __m256 wb, __m256 wc, __m256 wd) noexcept {
    a = _mm256_add_ps(a, kept(_mm256_mul_ps(x, wa)));
    b = _mm256_add_ps(b, kept(_mm256_mul_ps(x, wb)));
    c = _mm256_add_ps(c, kept(_mm256_mul_ps(x, wc)));
    d = _mm256_add_ps(d, kept(_mm256_mul_ps(x, wd)));
  }

  /// Four scalar products of the low row, then four of the high one.
  DECANT_AVX2_INLINE __m256 total() const noexcept {
    const __m256 front = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    const __m256 back = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    return _mm256_add_ps(_mm256_shuffle_ps(front, back, 0x44), _mm256_shuffle_ps(front, back, 0xEE));
  }
};

DECANT_AVX2_INLINE __m256 load_twice(const float* from) noexcept {
  return _mm256_broadcast_ps(reinterpret_cast<const __m128*>(from));
}

/// Ends four scalar products with a row of x, and adds them to the result.
DECANT_AVX2_INLINE void finish_products(__m128 sums, const float* x, const float* w, std::size_t columns,
                                        float* out) noexcept {
  for (std::size_t j = columns - columns % 4; j < columns; ++j) {
    const __m128 weights = _mm_set_ps(w[3 * columns + j], w[2 * columns + j], w[columns + j], w[j]);
    sums = _mm_add_ps(sums, rounded(_mm_mul_ps(_mm_set1_ps(x[j]), weights)));
  }
  _mm_storeu_ps(out, _mm_add_ps(_mm_loadu_ps(out), sums));
}

/// As portable::row_products, for one to four rows of x, which share what is loaded of the weights.
DECANT_AVX2 inline void row_products(const strided_rows<const float>& x, const dense_matrix& w,
                                     const strided_rows<float>& out) noexcept {
  const std::size_t last = x.count - 1, n = w.columns, even = n - n % 4;
  const row_pair low{x.row(0), x.row(std::min<std::size_t>(1, last))};
  const row_pair high{x.row(std::min<std::size_t>(2, last)), x.row(last)};
  std::size_t c = 0;
  for (; c + 4 <= w.rows; c += 4) {
    const float* const weights = w.row(c);
    const __m256 zero = _mm256_setzero_ps();
    pair_sums first{zero, zero, zero, zero}, second = first;
    if (x.count > 2) {
      for (std::size_t j = 0; j < even; j += 4) {
        const __m256 wa = load_twice(weights + j), wb = load_twice(weights + n + j);
        const __m256 wc = load_twice(weights + 2 * n + j), wd = load_twice(weights + 3 * n + j);
        first.add(low.at(j), wa, wb, wc, wd);
        second.add(high.at(j), wa, wb, wc, wd);
      }
    } else {
      for (std::size_t j = 0; j < even; j += 4) {
        first.add(low.at(j), load_twice(weights + j), load_twice(weights + n + j), load_twice(weights + 2 * n + j),
                  load_twice(weights + 3 * n + j));
      }
    }
    const __m256 one = first.total(), two = second.total();
    const __m128 sums[4] = {_mm256_castps256_ps128(one), _mm256_extractf128_ps(one, 1), _mm256_castps256_ps128(two),
                            _mm256_extractf128_ps(two, 1)};
    for (std::size_t i = 0; i < x.count; ++i) finish_products(sums[i], x.row(i), weights, n, out.row(i) + c);
  }
  _mm256_zeroupper();  // compilers do so by themselves only when they optimise
  for (std::size_t i = 0; i < x.count && c < w.rows; ++i) {
    portable::row_products(x.row(i), w.row(c), w.rows - c, n, out.row(i) + c);
  }
}

DECANT_STRICT_END

}  // namespace avx2

// As in kernels_avx512.hpp.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace avx512 {

DECANT_STRICT_BEGIN

/// One to four rows of x, each in a quarter of a register; where there are fewer, the last stands for more.
struct row_quad {
  strided_rows<const float> x;
  const float* rows[4];

  explicit row_quad(const strided_rows<const float>& of) noexcept
      : x(of),
        rows{of.row(0), of.row(std::min<std::size_t>(1, of.count - 1)), of.row(std::min<std::size_t>(2, of.count - 1)),
             of.row(of.count - 1)} {}

  DECANT_AVX512_INLINE __m512 at(std::size_t j) const noexcept {
    const __m256 low = _mm256_loadu2_m128(rows[1] + j, rows[0] + j);
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), _mm256_loadu2_m128(rows[3] + j, rows[2] + j), 1);
  }
};

/// The partial sums of four rows of x with four rows of weights.
struct quad_sums {
  __m512 a, b, c, d;

  DECANT_AVX512_INLINE void add(__m512 x, __m512 wa, __m512 wb, __m512 wc, __m512 wd) noexcept {
    a = _mm512_add_ps(a, kept(_mm512_mul_ps(x, wa)));
    b = _mm512_add_ps(b, kept(_mm512_mul_ps(x, wb)));
    c = _mm512_add_ps(c, kept(_mm512_mul_ps(x, wc)));
    d = _mm512_add_ps(d, kept(_mm512_mul_ps(x, wd)));
  }

  /// Ends the scalar products with the weights that begin at `w`, and adds them to the first four of each row of `out`.
  DECANT_AVX512_INLINE void finish(const strided_rows<const float>& x, const float* w, std::size_t columns,
                                   const strided_rows<float>& out) const noexcept {
    const __m512 front = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    const __m512 back = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    alignas(64) float total[16];
    _mm512_store_ps(total, _mm512_add_ps(_mm512_shuffle_ps(front, back, 0x44), _mm512_shuffle_ps(front, back, 0xEE)));
    for (std::size_t i = 0; i < x.count; ++i) {
      avx2::finish_products(_mm_load_ps(total + 4 * i), x.row(i), w, columns, out.row(i));
    }
  }
};

DECANT_AVX512_INLINE __m512 load_four_times(const float* from) noexcept {
  return _mm512_broadcast_f32x4(_mm_loadu_ps(from));
}

/// As portable::row_products, for four rows of weights at a time and one or two quads of rows of x, which share what is
/// loaded of the weights.
template <bool Two>
DECANT_AVX512 inline void quad_products(const row_quad& low, const row_quad& high, const dense_matrix& w,
                                        const strided_rows<float>& out) noexcept {
  const std::size_t n = w.columns, even = n - n % 4;
  const __m512 zero = _mm512_setzero_ps();
  const auto from = [&](std::size_t first, std::size_t c) {
    return strided_rows<float>{out.row(first) + c, 0, out.stride};
  };
  std::size_t c = 0;
  for (; c + 8 <= w.rows; c += 8) {
    const float* const upper = w.row(c);
    const float* const lower = w.row(c + 4);
    quad_sums low_upper{zero, zero, zero, zero}, low_lower = low_upper, high_upper = low_upper, high_lower = low_upper;
    for (std::size_t j = 0; j < even; j += 4) {
      const __m512 ua = load_four_times(upper + j), ub = load_four_times(upper + n + j);
      const __m512 uc = load_four_times(upper + 2 * n + j), ud = load_four_times(upper + 3 * n + j);
      const __m512 la = load_four_times(lower + j), lb = load_four_times(lower + n + j);
      const __m512 lc = load_four_times(lower + 2 * n + j), ld = load_four_times(lower + 3 * n + j);
      const __m512 x = low.at(j);
      low_upper.add(x, ua, ub, uc, ud);
      low_lower.add(x, la, lb, lc, ld);
      if constexpr (Two) {
        const __m512 y = high.at(j);
        high_upper.add(y, ua, ub, uc, ud);
        high_lower.add(y, la, lb, lc, ld);
      }
    }
    low_upper.finish(low.x, upper, n, from(0, c));
    low_lower.finish(low.x, lower, n, from(0, c + 4));
    if constexpr (Two) {
      high_upper.finish(high.x, upper, n, from(4, c));
      high_lower.finish(high.x, lower, n, from(4, c + 4));
    }
  }
  _mm256_zeroupper();  // compilers do so by themselves only when they optimise
  if (c == w.rows) return;
  const dense_matrix rest{w.row(c), w.rows - c, n};
  avx2::row_products(low.x, rest, from(0, c));
  if constexpr (Two) avx2::row_products(high.x, rest, from(4, c));
}

/// As portable::row_products, for one to eight rows of x.
inline void row_products(const strided_rows<const float>& x, const dense_matrix& w,
                         const strided_rows<float>& out) noexcept {
  const row_quad low({x.data, std::min<std::size_t>(4, x.count), x.stride});
  if (x.count <= 4) return quad_products<false>(low, low, w, out);
  quad_products<true>(low, row_quad({x.row(4), x.count - 4, x.stride}), w, out);
}

DECANT_STRICT_END

}  // namespace avx512

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif

/// out += x w^T: adds to out.row(i)[c] the scalar product of row i of x with row c of the weights.
///
/// How a scalar product is rounded depends on its two rows and on nothing else: not on how many rows there are, on
/// where they lie in memory, or on the machine. So rows of x may come in any company. The weights are gone through in
/// blocks that stay in the cache from row to row; with AVX2 four rows of x share what is loaded of a block, with
/// AVX-512 eight. `which` is the instruction set to use, which the machine must have. O(rows of x * weights), allocates
/// nothing.
inline void add_row_products(const strided_rows<const float>& x, const dense_matrix& w, const strided_rows<float>& out,
                             isa which = kernels().which) noexcept {
  constexpr std::size_t cached = 4096;  // numbers of a block: 16 KB
  const std::size_t height = std::max<std::size_t>(16, cached / std::max<std::size_t>(w.columns, 1) / 16 * 16);
  for (std::size_t first = 0; first < w.rows; first += height) {
    const dense_matrix block{w.row(first), std::min(height, w.rows - first), w.columns};
    for (std::size_t i = 0; i < x.count;) {
      const strided_rows<float> to{out.row(i) + first, 0, out.stride};
#if DECANT_X86
      if (const std::size_t together = std::min<std::size_t>(which == isa::avx512 ? 8 : 4, x.count - i);
          which != isa::portable && together > 1) {
        const strided_rows<const float> from{x.row(i), together, x.stride};
        (which == isa::avx512 ? avx512::row_products : avx2::row_products)(from, block, to);
        i += together;
        continue;
      }
#endif
      portable::row_products(x.row(i), block.data, block.rows, block.columns, to.data);
      ++i;
    }
  }
}

}  // namespace decant::math
