// SPDX-License-Identifier: MIT
#pragma once

#include <decant/math/isa.hpp>

#if DECANT_X86

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>

#include <decant/math/half.hpp>
#include <decant/math/kernels_portable.hpp>

// The portable kernels with 8 lanes; see kernels_avx512.hpp.

#define DECANT_AVX2 __attribute__((target("avx2,fma,f16c")))
#define DECANT_AVX2_INLINE DECANT_AVX2 __attribute__((always_inline)) inline

namespace decant::math::avx2 {

DECANT_STRICT_BEGIN

DECANT_AVX2_INLINE __m256 kept(__m256 x) noexcept {
  asm("" : "+x"(x));
  return x;
}
DECANT_AVX2_INLINE __m256d kept(__m256d x) noexcept {
  asm("" : "+x"(x));
  return x;
}

DECANT_AVX2_INLINE __m256 load(const float* from) noexcept { return _mm256_loadu_ps(from); }
DECANT_AVX2_INLINE __m256 load(const bfloat16* from) noexcept {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
DECANT_AVX2_INLINE __m256 load(const float16* from) noexcept {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

/// Asks for what a pass will read in a moment: half a page ahead, past the borders that the machine's own prefetchers
/// stop at.
template <class Element>
DECANT_AVX2_INLINE void prefetch(const Element* from) noexcept {
  _mm_prefetch(reinterpret_cast<const char*>(from) + 2048, _MM_HINT_T0);
}

/// Denormals as zeros of their sign.
DECANT_AVX2_INLINE __m256 flushed(__m256 x) noexcept {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i exponent = _mm256_and_si256(bits, _mm256_set1_epi32(0x7F800000));
  const __m256i small = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
  const __m256i magnitude = _mm256_and_si256(small, _mm256_set1_epi32(INT32_MAX));
  return _mm256_castsi256_ps(_mm256_andnot_si256(magnitude, bits));
}

DECANT_AVX2_INLINE __m256d low_half(__m256 x) noexcept { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
DECANT_AVX2_INLINE __m256d high_half(__m256 x) noexcept { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }

/// Sixteen lanes of doubles in four registers.
struct wide_sum {
  __m256d lane[4];
};
DECANT_AVX2_INLINE wide_sum zero_sum() noexcept {
  const __m256d zero = _mm256_setzero_pd();
  return {{zero, zero, zero, zero}};
}
/// Adds sixteen floats, given as two vectors.
DECANT_AVX2_INLINE void add(wide_sum& sum, __m256 front, __m256 back) noexcept {
  sum.lane[0] = kept(_mm256_add_pd(sum.lane[0], low_half(front)));
  sum.lane[1] = kept(_mm256_add_pd(sum.lane[1], high_half(front)));
  sum.lane[2] = kept(_mm256_add_pd(sum.lane[2], low_half(back)));
  sum.lane[3] = kept(_mm256_add_pd(sum.lane[3], high_half(back)));
}
DECANT_AVX2_INLINE void store(const wide_sum& sum, double* to) noexcept {
  for (std::size_t j = 0; j < 4; ++j) _mm256_storeu_pd(to + 4 * j, sum.lane[j]);
}
/// The sum of sixteen lanes, halves after halves.
DECANT_AVX2_INLINE double folded(const wide_sum& sum) noexcept {
  const __m256d four =
      kept(_mm256_add_pd(kept(_mm256_add_pd(sum.lane[0], sum.lane[2])), kept(_mm256_add_pd(sum.lane[1], sum.lane[3]))));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/// The largest of every half of four vectors, four by four.
DECANT_AVX2_INLINE __m256 largest_halves(__m256 a, __m256 b, __m256 c, __m256 d) noexcept {
  const __m256d front = _mm256_castps_pd(_mm256_max_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)));
  const __m256d back = _mm256_castps_pd(_mm256_max_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d)));
  return _mm256_max_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(front, back)),
                       _mm256_castpd_ps(_mm256_unpackhi_pd(front, back)));
}
/// From two of those, the largest of the eight vectors that they came from.
DECANT_AVX2_INLINE __m256 largest_lanes(__m256 a, __m256 b) noexcept {
  return _mm256_max_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

// What a pass for the peaks sums up besides, as in kernels_avx512.hpp.
struct peaks_alone {
  DECANT_AVX2_INLINE void take(__m256, __m256, __m256, __m256) noexcept {}
  DECANT_AVX2_INLINE void settle() noexcept {}
};

struct peaks_and_rough_mass {
  __m256 slope, offset, some = _mm256_setzero_ps();
  __m256d low = _mm256_setzero_pd(), high = _mm256_setzero_pd();

  DECANT_AVX2_INLINE __m256 rough(__m256 z) const noexcept {
    const __m256 bits = _mm256_max_ps(_mm256_fmadd_ps(z, slope, offset), _mm256_setzero_ps());
    return _mm256_castsi256_ps(_mm256_cvtps_epi32(bits));
  }
  DECANT_AVX2_INLINE void take(__m256 a, __m256 b, __m256 c, __m256 d) noexcept {
    some =
        kept(_mm256_add_ps(some, _mm256_add_ps(_mm256_add_ps(rough(a), rough(b)), _mm256_add_ps(rough(c), rough(d)))));
  }
  DECANT_AVX2_INLINE void settle() noexcept {
    low = _mm256_add_pd(low, low_half(some));
    high = _mm256_add_pd(high, high_half(some));
    some = _mm256_setzero_ps();
  }
  [[nodiscard]] DECANT_AVX2_INLINE double sum() const noexcept {
    const __m256d zero = _mm256_setzero_pd();
    return folded({{low, high, zero, zero}});
  }
};

struct peaks_and_moments {
  __m256 reference, some = _mm256_setzero_ps(), squares = _mm256_setzero_ps();
  wide_sum sums = zero_sum();  // two of differences, two of squares

  DECANT_AVX2_INLINE void take(__m256 a, __m256 b, __m256 c, __m256 d) noexcept {
    a = _mm256_sub_ps(a, reference);
    b = _mm256_sub_ps(b, reference);
    c = _mm256_sub_ps(c, reference);
    d = _mm256_sub_ps(d, reference);
    some = kept(_mm256_add_ps(some, _mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d))));
    squares = kept(_mm256_add_ps(squares, _mm256_add_ps(_mm256_fmadd_ps(a, a, _mm256_mul_ps(b, b)),
                                                        _mm256_fmadd_ps(c, c, _mm256_mul_ps(d, d)))));
  }
  DECANT_AVX2_INLINE void settle() noexcept {
    add(sums, some, squares);
    some = squares = _mm256_setzero_ps();
  }
};

template <class Besides>
DECANT_AVX2_INLINE row_summary peaks_and(const float* row, std::size_t n, float* out, Besides& besides) noexcept {
  __m256 sum[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
  __m256 top = _mm256_set1_ps(portable::minus_infinity);
  const __m256 one = _mm256_set1_ps(1);
  const auto part = [&](const float* from) DECANT_AVX2 __attribute__((always_inline)) {
    prefetch(from);
    prefetch(from + 16);
    const __m256 a = load(from), b = load(from + 8), c = load(from + 16), d = load(from + 24);
    sum[0] = _mm256_fmadd_ps(a, one, sum[0]);
    sum[1] = _mm256_fmadd_ps(b, one, sum[1]);
    sum[2] = _mm256_fmadd_ps(c, one, sum[2]);
    sum[3] = _mm256_fmadd_ps(d, one, sum[3]);
    besides.take(a, b, c, d);
    return _mm256_max_ps(_mm256_max_ps(a, b), _mm256_max_ps(c, d));
  };
  const auto peak = [&](const float* block) DECANT_AVX2 __attribute__((always_inline)) {
    const __m256 front = part(block);
    return _mm256_max_ps(front, part(block + 32));
  };
  std::size_t i = 0;
  for (; i + 512 <= n; i += 512) {
    __m256 halves[2];
#pragma GCC unroll 2
    for (std::size_t q = 0; q < 2; ++q) {
      const float* from = row + i + 256 * q;
      const __m256 a = peak(from), b = peak(from + 64), c = peak(from + 128);
      halves[q] = largest_halves(a, b, c, peak(from + 192));
    }
    besides.settle();
    const __m256 largest = flushed(largest_lanes(halves[0], halves[1]));
    top = _mm256_max_ps(top, largest);
    _mm256_storeu_ps(out + i / 64, largest);
  }
  for (; i + 64 <= n; i += 64) {
    const __m256 all = peak(row + i), halves = largest_halves(all, all, all, all);
    const __m256 largest = flushed(largest_lanes(halves, halves));
    top = _mm256_max_ps(top, largest);
    _mm_store_ss(out + i / 64, _mm256_castps256_ps128(largest));
  }
  besides.settle();
  alignas(32) float lanes[32];
  for (std::size_t j = 0; j < 4; ++j) _mm256_store_ps(lanes + 8 * j, sum[j]);
  row_summary summary{portable::minus_infinity, row_content::finite};
  for (const float lane : lanes) summary.content = worse(summary.content, content_of(lane));
  const __m256 halves = largest_halves(top, top, top, top);
  summary.max = _mm256_cvtss_f32(largest_lanes(halves, halves));
  if (i == n) return summary;
  const row_summary rest = portable::peaks(row + i, n - i, out + i / 64);
  return {rest.max > summary.max ? rest.max : summary.max, worse(summary.content, rest.content)};
}

DECANT_AVX2 inline row_summary peaks(const float* row, std::size_t n, float* out) noexcept {
  peaks_alone nothing;
  return peaks_and(row, n, out, nothing);
}

// Sixteen-bit floats are compared as they are, sixteen to a vector: as signed integers they are in order where they are
// not negative, and in reverse order where they are.
struct largest_half {
  static DECANT_AVX2_INLINE __m256i of(__m256i a, __m256i b) noexcept { return _mm256_max_epi16(a, b); }
  static DECANT_AVX2_INLINE __m128i of(__m128i a, __m128i b) noexcept { return _mm_max_epi16(a, b); }
};
struct smallest_half {
  static DECANT_AVX2_INLINE __m256i of(__m256i a, __m256i b) noexcept { return _mm256_min_epi16(a, b); }
  static DECANT_AVX2_INLINE __m128i of(__m128i a, __m128i b) noexcept { return _mm_min_epi16(a, b); }
};

/// The extremes of eight blocks. `look` sees all vectors on the way.
template <class Extreme, class F>
DECANT_AVX2_INLINE __m128i extremes_of_blocks(const void* row, F look) noexcept {
  const auto extreme = [&](std::size_t block) DECANT_AVX2 __attribute__((always_inline)) {
    const auto* from = static_cast<const __m256i*>(row) + 4 * block;
    prefetch(from);
    prefetch(from + 2);
    const __m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256(from + 1);
    const __m256i c = _mm256_loadu_si256(from + 2), d = _mm256_loadu_si256(from + 3);
    look(a, b, c, d);
    return Extreme::of(Extreme::of(a, b), Extreme::of(c, d));
  };
  __m256i fours[2];
#pragma GCC unroll 2
  for (std::size_t q = 0; q < 2; ++q) {
    __m256i pairs[2];
#pragma GCC unroll 2
    for (std::size_t p = 0; p < 2; ++p) {
      const __m256i a = extreme(4 * q + 2 * p), b = extreme(4 * q + 2 * p + 1);
      pairs[p] = Extreme::of(_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
    }
    fours[q] = Extreme::of(_mm256_unpacklo_epi32(pairs[0], pairs[1]), _mm256_unpackhi_epi32(pairs[0], pairs[1]));
  }
  const __m256i all = Extreme::of(_mm256_unpacklo_epi64(fours[0], fours[1]), _mm256_unpackhi_epi64(fours[0], fours[1]));
  return Extreme::of(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}

template <class Half>
  requires(sizeof(Half) == 2)
DECANT_AVX2 inline row_summary peaks(const Half* row, std::size_t n, float* out) noexcept {
  constexpr std::uint16_t infinity = std::is_same_v<Half, bfloat16> ? 0x7F80 : 0x7C00,
                          minus_infinity = 0x8000 | infinity;
  __m128i largest = _mm_set1_epi16(INT16_MIN);  // signed: finds +inf and NaN
  __m256i furthest = _mm256_setzero_si256();    // unsigned: -inf, and negative NaNs beyond it
  __m256 top = _mm256_set1_ps(portable::minus_infinity);
  const std::size_t even = n / 512 * 512;
  for (std::size_t i = 0; i < even; i += 512) {
    const auto ignore = [](__m256i, __m256i, __m256i, __m256i) DECANT_AVX2 __attribute__((always_inline)) {};
    const auto note = [&](__m256i a, __m256i b, __m256i c, __m256i d) DECANT_AVX2 __attribute__((always_inline)) {
      const __m256i most = _mm256_max_epu16(_mm256_max_epu16(a, b), _mm256_max_epu16(c, d));
      furthest = _mm256_max_epu16(furthest, most);
    };
    __m128i peaks = extremes_of_blocks<largest_half>(row + i, note);
    largest = _mm_max_epi16(largest, peaks);
    if ((_mm_movemask_epi8(peaks) & 0xAAAA) != 0) {  // blocks of nothing but negative numbers
      peaks = _mm_blendv_epi8(peaks, extremes_of_blocks<smallest_half>(row + i, ignore), _mm_srai_epi16(peaks, 15));
    }
    alignas(16) Half halves[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(halves), peaks);
    const __m256 values = flushed(load(halves));
    top = _mm256_max_ps(top, values);
    _mm256_storeu_ps(out + i / 64, values);
  }
  alignas(32) std::uint16_t furthests[16];
  alignas(32) float tops[8];
  alignas(16) std::int16_t largests[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(furthests), furthest);
  _mm256_store_ps(tops, top);
  _mm_store_si128(reinterpret_cast<__m128i*>(largests), largest);
  const std::uint16_t last = *std::max_element(furthests, furthests + 16);
  const bool bad = *std::max_element(largests, largests + 8) >= infinity || last > minus_infinity;
  row_summary summary{portable::minus_infinity, row_content::finite};
  for (const float lane : tops) summary.max = lane > summary.max ? lane : summary.max;
  if (last == minus_infinity) summary.content = row_content::some_gone;
  if (bad) summary.content = row_content::suspicious;
  if (even == n) return summary;
  const row_summary rest = portable::peaks(row + even, n - even, out + even / 64);
  return {rest.max > summary.max ? rest.max : summary.max, worse(summary.content, rest.content)};
}

DECANT_AVX2 inline row_summary peaks_and_mass(const float* row, std::size_t n, float* out, const rough_parameters& p,
                                              double& mass) noexcept {
  peaks_and_rough_mass besides{_mm256_set1_ps(p.slope), _mm256_set1_ps(p.offset)};
  const row_summary summary = peaks_and(row, n, out, besides);
  mass = besides.sum();
  return summary;
}

DECANT_AVX2 inline row_summary peaks_and_spread(const float* row, std::size_t n, float* out, float reference,
                                                portable::moment_sums& sums) noexcept {
  peaks_and_moments besides{_mm256_set1_ps(reference)};
  const row_summary summary = peaks_and(row, n, out, besides);
  const __m256d zero = _mm256_setzero_pd();
  sums = {folded({{besides.sums.lane[0], besides.sums.lane[1], zero, zero}}),
          folded({{besides.sums.lane[2], besides.sums.lane[3], zero, zero}})};
  return summary;
}

/// A bit a lane: whether 64 values are >= t.
DECANT_AVX2_INLINE std::uint64_t mask_at_least(const float* values, __m256 t) noexcept {
  std::uint64_t mask = 0;
  for (std::size_t j = 0; j < 64; j += 8) {
    const int part = _mm256_movemask_ps(_mm256_cmp_ps(load(values + j), t, _CMP_GE_OQ));
    mask |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(part)) << j;
  }
  return mask;
}

DECANT_AVX2 inline std::size_t count_at_least(const float* values, std::size_t n, float threshold) noexcept {
  const __m256 t = _mm256_set1_ps(threshold);
  __m256i counts[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
  const auto reached = [&](std::size_t at)
                           DECANT_AVX2 { return _mm256_castps_si256(_mm256_cmp_ps(load(values + at), t, _CMP_GE_OQ)); };
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) counts[j] = _mm256_sub_epi32(counts[j], reached(i + 8 * j));
  }
  for (; i + 8 <= n; i += 8) counts[0] = _mm256_sub_epi32(counts[0], reached(i));
  alignas(32) std::uint32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes),
                     _mm256_add_epi32(_mm256_add_epi32(counts[0], counts[1]), _mm256_add_epi32(counts[2], counts[3])));
  std::size_t count = 0;
  for (const std::uint32_t lane : lanes) count += lane;
  return count + portable::count_at_least(values + i, n - i, threshold);
}

DECANT_AVX2 inline std::uint64_t at_least(const float* values, float threshold) noexcept {
  return mask_at_least(values, _mm256_set1_ps(threshold));
}

template <class Element>
DECANT_AVX2 inline void widen(const Element* from, float* to) noexcept {
  for (std::size_t j = 0; j < 64; j += 8) _mm256_storeu_ps(to + j, load(from + j));
}

/// exp2_weight in 8 lanes.
DECANT_AVX2_INLINE __m256 exp2_weights(__m256 y) noexcept {
  const __m256 there = _mm256_cmp_ps(y, _mm256_set1_ps(-126.0F), _CMP_GE_OQ);
  const __m256 n = _mm256_round_ps(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m256 f = kept(_mm256_sub_ps(y, n));
  __m256 p = _mm256_set1_ps(0x1.5bba14p-10F);
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0x1.3cea88p-7F));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0x1.c6b752p-5F));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0x1.ebf9bcp-3F));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0x1.62e42ap-1F));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(1.0F));
  const __m256i scaled = _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23));
  return _mm256_and_ps(there, _mm256_castsi256_ps(scaled));
}

DECANT_AVX2_INLINE __m256 exponents(__m256 z, __m256 reference, __m256 narrow) noexcept {
  return kept(_mm256_mul_ps(kept(_mm256_sub_ps(z, reference)), narrow));
}

/// All bits of lane i set where bit i of `keep` is.
DECANT_AVX2_INLINE __m256 lanes_of(std::uint64_t keep) noexcept {
  const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i bits = _mm256_set1_epi32(static_cast<int>(keep & 255));
  return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(bits, bit), bit));
}

DECANT_AVX2 inline void weights(const float* values, std::uint64_t keep, const weight_parameters& p,
                                block_weights& out) noexcept {
  const __m256 reference = _mm256_set1_ps(p.reference), narrow = _mm256_set1_ps(p.narrow);
  for (std::size_t j = 0; j < 64; j += 8) {
    const __m256 w = _mm256_and_ps(lanes_of(keep >> j), exp2_weights(exponents(load(values + j), reference, narrow)));
    _mm256_storeu_pd(out.data() + j, low_half(w));
    _mm256_storeu_pd(out.data() + j + 4, high_half(w));
  }
}

DECANT_AVX2 inline void float_weights(const float* values, std::size_t n, const weight_parameters& p,
                                      float* out) noexcept {
  const __m256 reference = _mm256_set1_ps(p.reference), narrow = _mm256_set1_ps(p.narrow);
  for (std::size_t i = 0; i < n; i += 8) {
    _mm256_storeu_ps(out + i, exp2_weights(exponents(load(values + i), reference, narrow)));
  }
}

/// (a + b) + (c + d), as float sums of four are taken.
DECANT_AVX2_INLINE __m256 sum_of_four(__m256 a, __m256 b, __m256 c, __m256 d) noexcept {
  return kept(_mm256_add_ps(kept(_mm256_add_ps(a, b)), kept(_mm256_add_ps(c, d))));
}

/// math::exp in 4 lanes, for x <= 0.
DECANT_AVX2_INLINE __m256d exp_of_negative(__m256d x) noexcept {
  using c = exp_constants;
  const __m256d there = _mm256_cmp_pd(x, _mm256_set1_pd(c::lowest), _CMP_GE_OQ);
  const __m256d shifted =
      kept(_mm256_add_pd(kept(_mm256_mul_pd(x, _mm256_set1_pd(c::per_sixteenth))), _mm256_set1_pd(c::to_nearest)));
  const __m256d k = kept(_mm256_sub_pd(shifted, _mm256_set1_pd(c::to_nearest)));
  const __m256d high = kept(_mm256_mul_pd(k, _mm256_set1_pd(c::high)));
  const __m256d low = kept(_mm256_mul_pd(k, _mm256_set1_pd(c::low)));
  const __m256d r = kept(_mm256_sub_pd(kept(_mm256_sub_pd(x, high)), low));
  __m256d p = _mm256_set1_pd(c::leading);
  for (const double a : c::coefficients) p = kept(_mm256_add_pd(kept(_mm256_mul_pd(p, r)), _mm256_set1_pd(a)));
  const __m256d q = kept(_mm256_add_pd(r, kept(_mm256_mul_pd(kept(_mm256_mul_pd(r, r)), p))));
  const __m256i bits = _mm256_castpd_si256(shifted);
  const __m256d sixteenth = _mm256_i64gather_pd(sixteenths, _mm256_and_si256(bits, _mm256_set1_epi64x(15)), 8);
  const __m256d y = kept(_mm256_add_pd(sixteenth, kept(_mm256_mul_pd(sixteenth, q))));
  const __m256i exponent = _mm256_slli_epi64(_mm256_andnot_si256(_mm256_set1_epi64x(15), bits), 48);
  return _mm256_and_pd(there, _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(y), exponent)));
}

/// Four floats of sixteen as doubles: number j of four.
DECANT_AVX2_INLINE __m256d quarter(const float* values, std::size_t j) noexcept {
  return _mm256_cvtps_pd(_mm_loadu_ps(values + 4 * j));
}

DECANT_AVX2 inline double block_sum(const double* w) noexcept {
  wide_sum sum;
#pragma GCC unroll 4
  for (std::size_t j = 0; j < 4; ++j) {
    const double* from = w + 4 * j;
    const __m256d front = kept(_mm256_add_pd(_mm256_loadu_pd(from), _mm256_loadu_pd(from + 16)));
    sum.lane[j] =
        kept(_mm256_add_pd(front, kept(_mm256_add_pd(_mm256_loadu_pd(from + 32), _mm256_loadu_pd(from + 48)))));
  }
  return folded(sum);
}

DECANT_AVX2 inline void exps(const float* values, std::size_t n, float reference, double scale, double* out) noexcept {
  const __m256d top = _mm256_set1_pd(static_cast<double>(reference)), factor = _mm256_set1_pd(scale);
  for (std::size_t i = 0; i < n; i += 4) {
    const __m256d below = kept(_mm256_mul_pd(kept(_mm256_sub_pd(quarter(values + i, 0), top)), factor));
    _mm256_storeu_pd(out + i, exp_of_negative(below));
  }
}

DECANT_AVX2 inline portable::mass_sums exact_mass(const float* values, std::size_t n, float reference,
                                                  double scale) noexcept {
  const __m256d top = _mm256_set1_pd(static_cast<double>(reference)), factor = _mm256_set1_pd(scale);
  wide_sum mass = zero_sum(), weighted = zero_sum();
  for (std::size_t i = 0; i < n; i += 16) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) {
      const __m256d below = kept(_mm256_mul_pd(kept(_mm256_sub_pd(quarter(values + i, j), top)), factor));
      const __m256d w = exp_of_negative(below);
      mass.lane[j] = kept(_mm256_add_pd(mass.lane[j], w));
      const __m256d there = _mm256_cmp_pd(w, _mm256_setzero_pd(), _CMP_GT_OQ);
      weighted.lane[j] = kept(_mm256_add_pd(weighted.lane[j], kept(_mm256_mul_pd(w, _mm256_and_pd(there, below)))));
    }
  }
  alignas(32) double masses[16], weighteds[16];
  store(mass, masses);
  store(weighted, weighteds);
  return {portable::lane_sum(masses), portable::lane_sum(weighteds)};
}

/// 2^y within 2e-9 of itself, for y <= 0; 0 or next to it below -1000.
DECANT_AVX2_INLINE __m256d near_exp2(__m256d y) noexcept {
  const __m256d to_nearest = _mm256_set1_pd(exp_constants::to_nearest);
  const __m256d shifted = kept(_mm256_add_pd(_mm256_max_pd(y, _mm256_set1_pd(-1000)), to_nearest));
  const __m256d f = _mm256_sub_pd(_mm256_max_pd(y, _mm256_set1_pd(-1000)), kept(_mm256_sub_pd(shifted, to_nearest)));
  __m256d p = _mm256_set1_pd(near_exp2_coefficients[0]);
#pragma GCC unroll 8
  for (std::size_t i = 1; i < std::size(near_exp2_coefficients); ++i) {
    p = _mm256_fmadd_pd(p, f, _mm256_set1_pd(near_exp2_coefficients[i]));
  }
  const __m256i exponent = _mm256_slli_epi64(_mm256_castpd_si256(shifted), 52);
  return _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(p), exponent));
}

/// Four floats' comparisons as masks for four doubles.
DECANT_AVX2_INLINE __m256d reaches(const float* values, float threshold) noexcept {
  const __m128 mask = _mm_cmp_ps(_mm_loadu_ps(values), _mm_set1_ps(threshold), _CMP_GE_OQ);
  return _mm256_castsi256_pd(_mm256_cvtepi32_epi64(_mm_castps_si128(mask)));
}

DECANT_AVX2 inline portable::split_mass near_mass(const float* values, std::size_t n, float reference, double scale,
                                                  float high) noexcept {
  const __m256d factor = _mm256_set1_pd(scale * per_doubling), top = _mm256_set1_pd(static_cast<double>(reference));
  wide_sum mass = zero_sum(), above = zero_sum();
  for (std::size_t i = 0; i < n; i += 16) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) {
      const __m256d w = near_exp2(_mm256_mul_pd(_mm256_sub_pd(quarter(values + i, j), top), factor));
      mass.lane[j] = _mm256_add_pd(mass.lane[j], w);
      above.lane[j] = _mm256_add_pd(above.lane[j], _mm256_and_pd(reaches(values + i + 4 * j, high), w));
    }
  }
  return {folded(mass), folded(above)};
}

DECANT_AVX2 inline double sum_at_least(const float* values, const double* w, std::size_t n, float threshold) noexcept {
  wide_sum sum = zero_sum();
  for (std::size_t i = 0; i < n; i += 16) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) {
      const std::size_t at = i + 4 * j;
      sum.lane[j] = _mm256_add_pd(sum.lane[j], _mm256_and_pd(reaches(values + at, threshold), _mm256_loadu_pd(w + at)));
    }
  }
  return folded(sum);
}

/// portable::quick_exp2 in 8 lanes.
DECANT_AVX2_INLINE __m256 quick_exp2(__m256 y) noexcept {
  const __m256 n = _mm256_round_ps(y, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  const __m256 f = kept(_mm256_sub_ps(y, n));
  __m256 p = _mm256_set1_ps(quick_exp2_coefficients[0]);
#pragma GCC unroll 5
  for (std::size_t i = 1; i < 6; ++i) p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(quick_exp2_coefficients[i]));
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)));
}

template <bool with_exponents>
DECANT_AVX2_INLINE portable::mass_sums quick_sums(const float* values, std::size_t n,
                                                  const quick_parameters& p) noexcept {
  const __m256 slope = _mm256_set1_ps(p.slope), offset = _mm256_set1_ps(p.offset), least = _mm256_set1_ps(-126);
  wide_sum mass = zero_sum(), weighted = zero_sum();
  // One half of sixteen lanes after the other: registers are few.
  const auto add_stretch = [&](const float* from, std::size_t blocks, wide_sum& to_mass, wide_sum& to_weighted,
                               std::size_t half) DECANT_AVX2 __attribute__((always_inline)) {
    __m256 w[4], h[4];
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) w[k] = h[k] = _mm256_setzero_ps();
    for (std::size_t b = 0; b < blocks; ++b) {
#pragma GCC unroll 4
      for (std::size_t k = 0; k < 4; ++k) {
        const __m256 z = load(from + 64 * b + 16 * k + 8 * half);
        const __m256 y = _mm256_max_ps(_mm256_fmadd_ps(z, slope, offset), least), weight = quick_exp2(y);
        w[k] = kept(_mm256_add_ps(w[k], weight));
        if constexpr (with_exponents) h[k] = kept(_mm256_fmadd_ps(weight, y, h[k]));
      }
    }
    const __m256 sum = sum_of_four(w[0], w[1], w[2], w[3]);
    to_mass.lane[2 * half] = kept(_mm256_add_pd(to_mass.lane[2 * half], low_half(sum)));
    to_mass.lane[2 * half + 1] = kept(_mm256_add_pd(to_mass.lane[2 * half + 1], high_half(sum)));
    if constexpr (with_exponents) {
      const __m256 other = sum_of_four(h[0], h[1], h[2], h[3]);
      to_weighted.lane[2 * half] = kept(_mm256_add_pd(to_weighted.lane[2 * half], low_half(other)));
      to_weighted.lane[2 * half + 1] = kept(_mm256_add_pd(to_weighted.lane[2 * half + 1], high_half(other)));
    }
  };
  std::size_t i = 0;
  for (; i + 256 <= n; i += 256) {
    add_stretch(values + i, 4, mass, weighted, 0);
    add_stretch(values + i, 4, mass, weighted, 1);
  }
  for (; i < n; i += 64) {
    add_stretch(values + i, 1, mass, weighted, 0);
    add_stretch(values + i, 1, mass, weighted, 1);
  }
  alignas(32) double masses[16], weighteds[16];
  store(mass, masses);
  store(weighted, weighteds);
  return portable::without_excess({portable::lane_sum(masses), portable::lane_sum(weighteds)}, p);
}

DECANT_AVX2 inline double quick_mass(const float* values, std::size_t n, const quick_parameters& p) noexcept {
  return quick_sums<false>(values, n, p).mass;
}

DECANT_AVX2 inline portable::mass_sums quick_masses(const float* values, std::size_t n,
                                                    const quick_parameters& p) noexcept {
  return quick_sums<true>(values, n, p);
}

/// The constants of portable::swift_weight, all in registers.
struct swift_weights {
  __m256 slope, base, least, c[6];

  DECANT_AVX2_INLINE explicit swift_weights(const swift_parameters& p) noexcept
      : slope(kept(_mm256_set1_ps(p.slope))), base(kept(_mm256_set1_ps(p.base))), least(_mm256_set1_ps(p.least)) {
#pragma GCC unroll 6
    for (std::size_t i = 0; i < 6; ++i) c[i] = kept(_mm256_set1_ps(swift_exp2_coefficients[i]));
  }

  DECANT_AVX2_INLINE __m256 operator()(__m256 z) const noexcept {
    z = _mm256_max_ps(z, least);
    const __m256 whole = _mm256_fmadd_ps(z, slope, base);
    const __m256 f = _mm256_fmsub_ps(z, slope, kept(_mm256_sub_ps(whole, base)));
    __m256 w = c[0];
#pragma GCC unroll 5
    for (std::size_t i = 1; i < 6; ++i) w = _mm256_fmadd_ps(w, f, c[i]);
    const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(whole), 23);
    return kept(_mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(w), exponent)));
  }
};

DECANT_AVX2 inline row_summary peaks_and_swift_mass(const float* values, std::size_t n, float* out,
                                                    const swift_parameters& p, double& mass) noexcept {
  const swift_weights weight(p);
  wide_sum sums = zero_sum();
  __m256 content = _mm256_setzero_ps(), top = _mm256_set1_ps(portable::minus_infinity);
  alignas(32) float largest[8][8];
  for (std::size_t i = 0; i < n; i += 512) {
    const std::size_t blocks = n - i < 512 ? (n - i) / 64 : 8;
    alignas(32) float some[2][8] = {};
    for (std::size_t b = 0; b < blocks; ++b) {
      const float* block = values + i + 64 * b;
      __m256 peak;
#pragma GCC unroll 2
      for (std::size_t half = 0; half < 2; ++half) {
        prefetch(block + 32 * half);
        prefetch(block + 32 * half + 16);
        __m256 sum = _mm256_load_ps(some[half]);
#pragma GCC unroll 2
        for (std::size_t k = 0; k < 64; k += 32) {
          const __m256 front = load(block + k + 8 * half), back = load(block + k + 16 + 8 * half);
          content = kept(_mm256_add_ps(kept(_mm256_add_ps(content, front)), back));
          peak = half + k == 0 ? _mm256_max_ps(front, back) : _mm256_max_ps(_mm256_max_ps(peak, front), back);
          const __m256 first = weight(front);
          sum = kept(_mm256_add_ps(sum, kept(_mm256_add_ps(first, weight(back)))));
        }
        _mm256_store_ps(some[half], sum);
      }
      _mm256_store_ps(largest[b], peak);
    }
    add(sums, _mm256_load_ps(some[0]), _mm256_load_ps(some[1]));
    const auto peak = [&](std::size_t b) DECANT_AVX2
        __attribute__((always_inline)) { return _mm256_load_ps(largest[b < blocks ? b : 0]); };
    const __m256 front = largest_halves(peak(0), peak(1), peak(2), peak(3));
    const __m256 peaks = flushed(largest_lanes(front, largest_halves(peak(4), peak(5), peak(6), peak(7))));
    top = _mm256_max_ps(top, peaks);
    if (blocks == 8) {
      _mm256_storeu_ps(out + i / 64, peaks);
    } else {
      _mm256_store_ps(some[0], peaks);
      for (std::size_t b = 0; b < blocks; ++b) out[i / 64 + b] = some[0][b];
    }
  }
  alignas(32) double lanes[16];
  store(sums, lanes);
  mass = portable::lane_sum(lanes);
  alignas(32) float contents[8];
  _mm256_store_ps(contents, content);
  row_summary summary{portable::minus_infinity, row_content::finite};
  for (const float lane : contents) summary.content = worse(summary.content, content_of(lane));
  const __m256 halves = largest_halves(top, top, top, top);
  summary.max = _mm256_cvtss_f32(largest_lanes(halves, halves));
  return summary;
}

DECANT_AVX2 inline portable::moment_sums moments(const float* values, std::size_t n, float reference) noexcept {
  const __m256d top = _mm256_set1_pd(static_cast<double>(reference));
  const __m256i minus_infinity = _mm256_set1_epi64x(static_cast<std::int64_t>(0xFFF0000000000000U));
  wide_sum sum = zero_sum(), squares = zero_sum();
  for (std::size_t i = 0; i < n; i += 16) {
    for (std::size_t j = 0; j < 4; ++j) {
      const __m256d z = quarter(values + i, j);
      const __m256i gone = _mm256_cmpeq_epi64(_mm256_castpd_si256(z), minus_infinity);
      const __m256d d = _mm256_andnot_pd(_mm256_castsi256_pd(gone), kept(_mm256_sub_pd(z, top)));
      sum.lane[j] = kept(_mm256_add_pd(sum.lane[j], d));
      squares.lane[j] = kept(_mm256_add_pd(squares.lane[j], kept(_mm256_mul_pd(d, d))));
    }
  }
  alignas(32) double lanes[16], square_lanes[16];
  store(sum, lanes);
  store(squares, square_lanes);
  return {portable::lane_sum(lanes), portable::lane_sum(square_lanes)};
}

/// The nearest finite floats.
DECANT_AVX2_INLINE __m128 saturated(__m256d x) noexcept {
  constexpr double largest = std::numeric_limits<float>::max();
  return _mm256_cvtpd_ps(_mm256_min_pd(_mm256_max_pd(x, _mm256_set1_pd(-largest)), _mm256_set1_pd(largest)));
}

DECANT_AVX2 inline void bend(const float* values, std::size_t n, const bend_parameters& p, float* out) noexcept {
  const __m256d top = _mm256_set1_pd(static_cast<double>(p.reference)), scale = _mm256_set1_pd(p.scale);
  const __m256d square = _mm256_set1_pd(p.square), cube = _mm256_set1_pd(p.cube);
  const auto bent = [&](__m256d z) DECANT_AVX2 __attribute__((always_inline)) {
    const __m256d below = kept(_mm256_mul_pd(kept(_mm256_sub_pd(z, top)), scale));
    const __m256d d = _mm256_max_pd(below, _mm256_set1_pd(-0x1p200));
    const __m256d factor = kept(_mm256_sub_pd(kept(_mm256_mul_pd(cube, d)), square));
    const __m256d value = kept(_mm256_mul_pd(factor, kept(_mm256_mul_pd(d, d))));
    return saturated(value);
  };
  const __m256i minus_infinity = _mm256_set1_epi32(static_cast<int>(0xFF800000U));
  for (std::size_t i = 0; i < n; i += 8) {
    const __m256 z = load(values + i), normal = flushed(z);
    const __m256 all = flushed(_mm256_set_m128(bent(high_half(normal)), bent(low_half(normal))));
    const __m256i gone = _mm256_cmpeq_epi32(_mm256_castps_si256(z), minus_infinity);
    _mm256_storeu_ps(out + i, _mm256_blendv_ps(all, z, _mm256_castsi256_ps(gone)));
  }
}

DECANT_AVX2 inline void raise(const float* values, std::size_t n, const std::uint64_t* chosen,
                              const raise_parameters& p, float* out) noexcept {
  const __m256d scale = _mm256_set1_pd(p.scale), shift = _mm256_set1_pd(p.shift), amount = _mm256_set1_pd(p.amount);
  const __m256 largest = _mm256_set1_ps(std::numeric_limits<float>::max());
  const __m256 least = _mm256_set1_ps(-std::numeric_limits<float>::max());
  const __m256i minus_infinity = _mm256_set1_epi32(static_cast<int>(0xFF800000U));
  const __m256i lane_bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  // A sum of floats, rounded once, is what it is rounded by way of double.
  const auto narrow = static_cast<float>(p.amount);
  const bool in_float = static_cast<double>(narrow) == p.amount, rescales = p.rescales();
  const auto rescaled = [&](__m256d z) DECANT_AVX2
      __attribute__((always_inline)) { return saturated(_mm256_add_pd(kept(_mm256_mul_pd(scale, z)), shift)); };
  for (std::size_t i = 0; i < n; i += 8) {
    const __m256 z = load(values + i);
    __m256 x = flushed(z), more;
    if (rescales) x = flushed(_mm256_set_m128(rescaled(high_half(x)), rescaled(low_half(x))));
    if (in_float) {
      more = _mm256_max_ps(_mm256_min_ps(_mm256_add_ps(x, _mm256_set1_ps(narrow)), largest), least);
    } else {
      more = _mm256_set_m128(saturated(_mm256_add_pd(high_half(x), amount)),
                             saturated(_mm256_add_pd(low_half(x), amount)));
    }
    const __m256i eight = _mm256_set1_epi32(static_cast<int>(chosen[i / 64] >> (i % 64) & 0xFF));
    const __m256i is_chosen = _mm256_cmpeq_epi32(_mm256_and_si256(eight, lane_bits), lane_bits);
    const __m256i gone = _mm256_cmpeq_epi32(_mm256_castps_si256(z), minus_infinity);
    x = _mm256_blendv_ps(x, flushed(more), _mm256_castsi256_ps(is_chosen));
    _mm256_storeu_ps(out + i, _mm256_blendv_ps(x, z, _mm256_castsi256_ps(gone)));
  }
}

/// For every set of eight lanes, the places of those in it, ascending, a byte each.
inline constexpr std::array<std::uint64_t, 256> packed_lanes = [] {
  std::array<std::uint64_t, 256> table{};
  for (std::uint64_t set = 0; set < 256; ++set) {
    std::uint64_t place = 0;
    for (std::uint64_t lane = 0; lane < 8; ++lane) {
      if ((set >> lane & 1) != 0) table[set] |= lane << (8 * place++);
    }
  }
  return table;
}();

/// Writes which of eight are set, counted from `first`, and maybe more behind them; how many they are.
DECANT_AVX2_INLINE std::size_t list_set(std::uint32_t set, std::size_t first, std::int32_t* out) noexcept {
  const __m256i places = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<std::int64_t>(packed_lanes[set])));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                      _mm256_add_epi32(places, _mm256_set1_epi32(static_cast<std::int32_t>(first))));
  return static_cast<std::size_t>(std::popcount(set));
}

/// Writes the lanes of z that lie in [low, high), with their ids; the next place to write.
DECANT_AVX2_INLINE std::size_t list_lanes(__m256 z, __m256i ids, __m256 low, __m256 high, std::size_t count,
                                          portable::listed_values out) noexcept {
  const __m256 inside = _mm256_and_ps(_mm256_cmp_ps(z, low, _CMP_GE_OQ), _mm256_cmp_ps(z, high, _CMP_LT_OQ));
  const auto set = static_cast<std::uint32_t>(_mm256_movemask_ps(inside));
  const __m256i lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<std::int64_t>(packed_lanes[set])));
  _mm256_storeu_ps(out.values + count, _mm256_permutevar8x32_ps(z, lanes));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.ids + count), _mm256_permutevar8x32_epi32(ids, lanes));
  return count + static_cast<std::size_t>(std::popcount(set));
}

DECANT_AVX2 inline std::size_t collect(const float* row, const float* peaks, std::size_t blocks, float low, float high,
                                       std::int32_t first, portable::listed_values out) noexcept {
  const __m256 lowest = _mm256_set1_ps(low), beyond = _mm256_set1_ps(high);
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  std::size_t count = 0;
  const auto list_block = [&](std::size_t at) DECANT_AVX2 {
    const __m256i ids = _mm256_add_epi32(lane, _mm256_set1_epi32(first + static_cast<std::int32_t>(at)));
#pragma GCC unroll 8
    for (int k = 0; k < 64; k += 8) {
      count = list_lanes(load(row + at + k), _mm256_add_epi32(ids, _mm256_set1_epi32(k)), lowest, beyond, count, out);
    }
  };
  const auto ask_for = [&](std::int32_t block) DECANT_AVX2 {
    for (std::size_t k = 0; k < 64; k += 16) {
      _mm_prefetch(reinterpret_cast<const char*>(row + 64 * static_cast<std::size_t>(block) + k), _MM_HINT_T0);
    }
  };
  // Which blocks to look at, first: so their memory can be asked for ahead, and nothing depends on a guessed branch.
  constexpr std::size_t most = 1024, ahead = 4;
  alignas(32) std::int32_t hits[most + 8];
  for (std::size_t begin = 0; begin < blocks; begin += most) {
    const std::size_t end = begin + most < blocks ? begin + most : blocks;
    std::size_t b = begin, found = 0;
    for (; b + 8 <= end; b += 8) {
      const auto hit =
          static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(load(peaks + b), lowest, _CMP_GE_OQ)));
      found += list_set(hit, b, hits + found);
    }
    for (; b < end; ++b) {
      hits[found] = static_cast<std::int32_t>(b);
      found += peaks[b] >= low ? 1 : 0;
    }
    for (std::size_t i = 0; i < found && i < ahead; ++i) ask_for(hits[i]);
    for (std::size_t i = 0; i < found; ++i) {
      if (i + ahead < found) ask_for(hits[i + ahead]);
      list_block(64 * static_cast<std::size_t>(hits[i]));
    }
  }
  for (std::size_t i = 0; i < count; i += 8) _mm256_storeu_ps(out.values + i, flushed(load(out.values + i)));
  return count;
}

DECANT_AVX2 inline std::size_t set_bits(const std::uint64_t* words, std::size_t n, std::size_t most,
                                        std::int32_t* out) noexcept {
  // Words of which any is set, first: most are empty, and which ones nobody can guess.
  constexpr std::size_t part = 1024;
  alignas(32) std::int32_t used[part + 8];
  const __m256i zero = _mm256_setzero_si256();
  std::size_t count = 0;
  for (std::size_t begin = 0; begin < n; begin += part) {
    const std::size_t end = begin + part < n ? begin + part : n;
    std::size_t w = begin, found = 0;
    for (; w + 8 <= end; w += 8) {
      const auto* from = reinterpret_cast<const __m256i*>(words + w);
      const __m256i front = _mm256_cmpeq_epi64(_mm256_loadu_si256(from), zero);
      const __m256i back = _mm256_cmpeq_epi64(_mm256_loadu_si256(from + 1), zero);
      const auto empty = static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(front))) |
                         static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(back))) << 4;
      found += list_set(~empty & 255, w, used + found);
    }
    for (; w < end; ++w) {
      used[found] = static_cast<std::int32_t>(w);
      found += words[w] != 0 ? 1 : 0;
    }
    std::size_t more = count;
    for (std::size_t i = 0; i < found && more <= most; ++i) {
      more += static_cast<std::size_t>(std::popcount(words[static_cast<std::size_t>(used[i])]));
    }
    if (more > most) return more;
    for (std::size_t i = 0; i < found; ++i) {
      const std::int32_t first = 64 * used[i];
      std::uint64_t left = words[static_cast<std::size_t>(used[i])];
      do out[count++] = first + std::countr_zero(left);
      while ((left &= left - 1) != 0);
    }
  }
  return count;
}

DECANT_AVX2 inline std::size_t filter(const std::int32_t* ids, const float* values, std::size_t n, float low,
                                      float high, portable::listed_values out) noexcept {
  const __m256 lowest = _mm256_set1_ps(low), end = _mm256_set1_ps(high);
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; i += 8) {
    const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ids + i));
    count = list_lanes(load(values + i), at, lowest, end, count, out);
  }
  return count;
}

DECANT_STRICT_END

}  // namespace decant::math::avx2

#endif
