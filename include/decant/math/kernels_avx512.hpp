// SPDX-License-Identifier: MIT
#pragma once

#include <decant/math/isa.hpp>

#if DECANT_X86

#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include <decant/math/half.hpp>
#include <decant/math/kernels_avx2.hpp>
#include <decant/math/kernels_portable.hpp>

// The portable kernels with 16 lanes. Sums are made opaque to the optimiser (kept), so that -ffast-math may not reorder
// them; fused multiply-adds are written out.

#define DECANT_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define DECANT_AVX512_INLINE DECANT_AVX512 __attribute__((always_inline)) inline

// g++ 12 takes the undefined vectors inside its own intrinsics for mistakes, and at -O0 their masks.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif

namespace decant::math::avx512 {

DECANT_STRICT_BEGIN

DECANT_AVX512_INLINE __m512 kept(__m512 x) noexcept {
  asm("" : "+v"(x));
  return x;
}
DECANT_AVX512_INLINE __m512d kept(__m512d x) noexcept {
  asm("" : "+v"(x));
  return x;
}

DECANT_AVX512_INLINE __m512 load(const float* from) noexcept { return _mm512_loadu_ps(from); }
DECANT_AVX512_INLINE __m512 load(const bfloat16* from) noexcept {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
DECANT_AVX512_INLINE __m512 load(const float16* from) noexcept {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

/// Asks for what a pass will read in a moment: half a page ahead, past the borders that the machine's own prefetchers
/// stop at.
template <class Element>
DECANT_AVX512_INLINE void prefetch(const Element* from) noexcept {
  _mm_prefetch(reinterpret_cast<const char*>(from) + 2048, _MM_HINT_T0);
}

/// Denormals as zeros of their sign.
DECANT_AVX512_INLINE __m512 flushed(__m512 x) noexcept {
  const __m512i bits = _mm512_castps_si512(x);
  const __mmask16 small = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7F800000));
  return _mm512_castsi512_ps(_mm512_mask_and_epi32(bits, small, bits, _mm512_set1_epi32(INT32_MIN)));
}

/// The largest of every quarter of four vectors, four by four.
DECANT_AVX512_INLINE __m512 largest_quarters(__m512 a, __m512 b, __m512 c, __m512 d) noexcept {
  const __m512d front = _mm512_castps_pd(_mm512_max_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)));
  const __m512d back = _mm512_castps_pd(_mm512_max_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d)));
  return _mm512_max_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(front, back)),
                       _mm512_castpd_ps(_mm512_unpackhi_pd(front, back)));
}
/// From four of those, the largest of the sixteen vectors that they came from.
DECANT_AVX512_INLINE __m512 largest_lanes(__m512 a, __m512 b, __m512 c, __m512 d) noexcept {
  const __m512 front = _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
  const __m512 back = _mm512_max_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xEE));
  return _mm512_max_ps(_mm512_shuffle_f32x4(front, back, 0x88), _mm512_shuffle_f32x4(front, back, 0xDD));
}

/// (lane 0 + lane 8), ..., then halves: the second half of every sum of sixteen lanes.
DECANT_AVX512_INLINE double folded(__m512d low, __m512d high) noexcept {
  const __m512d eight = kept(_mm512_add_pd(low, high));
  const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/// The eight even-placed doubles: lanes 0..7, or 8..15, of 16 floats.
DECANT_AVX512_INLINE __m512d low_half(__m512 x) noexcept { return _mm512_cvtps_pd(_mm512_castps512_ps256(x)); }
DECANT_AVX512_INLINE __m512d high_half(__m512 x) noexcept { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)); }

/// What a pass for the peaks sums up besides: nothing, ...
struct peaks_alone {
  DECANT_AVX512_INLINE void take(__m512, __m512, __m512, __m512) noexcept {}
  DECANT_AVX512_INLINE void settle() noexcept {}
};

/// ... rough weights, in float for no more than 1,024 values, ...
struct peaks_and_rough_mass {
  __m512 slope, offset, some = _mm512_setzero_ps();
  __m512d low = _mm512_setzero_pd(), high = _mm512_setzero_pd();

  DECANT_AVX512_INLINE __m512 rough(__m512 z) const noexcept {
    const __m512 bits = _mm512_max_ps(_mm512_fmadd_ps(z, slope, offset), _mm512_setzero_ps());
    return _mm512_castsi512_ps(_mm512_cvtps_epi32(bits));
  }
  DECANT_AVX512_INLINE void take(__m512 a, __m512 b, __m512 c, __m512 d) noexcept {
    some =
        kept(_mm512_add_ps(some, _mm512_add_ps(_mm512_add_ps(rough(a), rough(b)), _mm512_add_ps(rough(c), rough(d)))));
  }
  DECANT_AVX512_INLINE void settle() noexcept {
    low = _mm512_add_pd(low, low_half(some));
    high = _mm512_add_pd(high, high_half(some));
    some = _mm512_setzero_ps();
  }
};

/// ... or differences from a reference, and their squares.
struct peaks_and_moments {
  __m512 reference, some = _mm512_setzero_ps(), squares = _mm512_setzero_ps();
  __m512d low = _mm512_setzero_pd(), high = low, square_low = low, square_high = low;

  DECANT_AVX512_INLINE void take(__m512 a, __m512 b, __m512 c, __m512 d) noexcept {
    a = _mm512_sub_ps(a, reference);
    b = _mm512_sub_ps(b, reference);
    c = _mm512_sub_ps(c, reference);
    d = _mm512_sub_ps(d, reference);
    some = kept(_mm512_add_ps(some, _mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d))));
    squares = kept(_mm512_add_ps(squares, _mm512_add_ps(_mm512_fmadd_ps(a, a, _mm512_mul_ps(b, b)),
                                                        _mm512_fmadd_ps(c, c, _mm512_mul_ps(d, d)))));
  }
  DECANT_AVX512_INLINE void settle() noexcept {
    low = _mm512_add_pd(low, low_half(some));
    high = _mm512_add_pd(high, high_half(some));
    square_low = _mm512_add_pd(square_low, low_half(squares));
    square_high = _mm512_add_pd(square_high, high_half(squares));
    some = squares = _mm512_setzero_ps();
  }
};

template <class Besides>
DECANT_AVX512_INLINE row_summary peaks_and(const float* row, std::size_t n, float* out, Besides& besides) noexcept {
  __m512 sum[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  __m512 top = _mm512_set1_ps(portable::minus_infinity);
  const __m512 one = _mm512_set1_ps(1);
  const auto peak = [&](const float* block) DECANT_AVX512 __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 64; j += 16) prefetch(block + j);
    const __m512 a = load(block), b = load(block + 16), c = load(block + 32), d = load(block + 48);
    // As products with 1, which other units add up than those that are busy with the largest.
    sum[0] = _mm512_fmadd_ps(a, one, sum[0]);
    sum[1] = _mm512_fmadd_ps(b, one, sum[1]);
    sum[0] = _mm512_fmadd_ps(c, one, sum[0]);
    sum[1] = _mm512_fmadd_ps(d, one, sum[1]);
    besides.take(a, b, c, d);
    return _mm512_max_ps(_mm512_max_ps(a, b), _mm512_max_ps(c, d));
  };
  std::size_t i = 0;
  for (; i + 1024 <= n; i += 1024) {
    __m512 quarters[4];
#pragma GCC unroll 4
    for (std::size_t q = 0; q < 4; ++q) {
      const float* from = row + i + 256 * q;
      quarters[q] = largest_quarters(peak(from), peak(from + 64), peak(from + 128), peak(from + 192));
    }
    besides.settle();
    const __m512 largest = flushed(largest_lanes(quarters[0], quarters[1], quarters[2], quarters[3]));
    top = _mm512_max_ps(top, largest);
    _mm512_storeu_ps(out + i / 64, largest);
  }
  for (; i + 64 <= n; i += 64) {
    const __m512 all = peak(row + i), quarters = largest_quarters(all, all, all, all);
    const __m512 largest = flushed(largest_lanes(quarters, quarters, quarters, quarters));
    top = _mm512_max_ps(top, largest);
    _mm_store_ss(out + i / 64, _mm512_castps512_ps128(largest));
  }
  besides.settle();
  alignas(64) float lanes[32];
  for (std::size_t j = 0; j < 2; ++j) _mm512_store_ps(lanes + 16 * j, sum[j]);
  row_summary summary{portable::minus_infinity, row_content::finite};
  for (const float lane : lanes) summary.content = worse(summary.content, content_of(lane));
  const __m512 quarters = largest_quarters(top, top, top, top);
  summary.max = _mm512_cvtss_f32(largest_lanes(quarters, quarters, quarters, quarters));
  if (i == n) return summary;
  const row_summary rest = portable::peaks(row + i, n - i, out + i / 64);
  return {rest.max > summary.max ? rest.max : summary.max, worse(summary.content, rest.content)};
}

DECANT_AVX512 inline row_summary peaks(const float* row, std::size_t n, float* out) noexcept {
  peaks_alone nothing;
  return peaks_and(row, n, out, nothing);
}
/// Of sixteen-bit floats, with 16 lanes: half the bytes, which narrow vectors read fast enough.
template <class Half>
  requires(sizeof(Half) == 2)
inline row_summary peaks(const Half* row, std::size_t n, float* out) noexcept {
  return avx2::peaks(row, n, out);
}

DECANT_AVX512 inline row_summary peaks_and_mass(const float* row, std::size_t n, float* out, const rough_parameters& p,
                                                double& mass) noexcept {
  peaks_and_rough_mass besides{_mm512_set1_ps(p.slope), _mm512_set1_ps(p.offset)};
  const row_summary summary = peaks_and(row, n, out, besides);
  mass = folded(besides.low, besides.high);
  return summary;
}

DECANT_AVX512 inline row_summary peaks_and_spread(const float* row, std::size_t n, float* out, float reference,
                                                  portable::moment_sums& sums) noexcept {
  peaks_and_moments besides{_mm512_set1_ps(reference)};
  const row_summary summary = peaks_and(row, n, out, besides);
  sums = {folded(besides.low, besides.high), folded(besides.square_low, besides.square_high)};
  return summary;
}

DECANT_AVX512 inline std::size_t count_at_least(const float* values, std::size_t n, float threshold) noexcept {
  const __m512 t = _mm512_set1_ps(threshold);
  std::size_t count = 0, i = 0;
  for (; i + 64 <= n; i += 64) {
    const auto part = [&](std::size_t j) DECANT_AVX512 {
      return static_cast<std::uint64_t>(_mm512_cmp_ps_mask(load(values + i + j), t, _CMP_GE_OQ)) << j;
    };
    count += static_cast<std::size_t>(std::popcount(part(0) | part(16) | part(32) | part(48)));
  }
  return count + portable::count_at_least(values + i, n - i, threshold);
}

DECANT_AVX512 inline std::uint64_t at_least(const float* values, float threshold) noexcept {
  const __m512 t = _mm512_set1_ps(threshold);
  std::uint64_t mask = 0;
  for (std::size_t j = 0; j < 64; j += 16) {
    mask |= static_cast<std::uint64_t>(_mm512_cmp_ps_mask(load(values + j), t, _CMP_GE_OQ)) << j;
  }
  return mask;
}

template <class Element>
DECANT_AVX512 inline void widen(const Element* from, float* to) noexcept {
  for (std::size_t j = 0; j < 64; j += 16) _mm512_storeu_ps(to + j, load(from + j));
}

/// exp2_weight in 16 lanes.
DECANT_AVX512_INLINE __m512 exp2_weights(__m512 y) noexcept {
  const __mmask16 there = _mm512_cmp_ps_mask(y, _mm512_set1_ps(-126.0F), _CMP_GE_OQ);
  const __m512 n = _mm512_roundscale_ps(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 f = kept(_mm512_sub_ps(y, n));
  __m512 p = _mm512_set1_ps(0x1.5bba14p-10F);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.3cea88p-7F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.c6b752p-5F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.ebf9bcp-3F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.62e42ap-1F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0F));
  return _mm512_maskz_scalef_ps(there, p, n);
}

DECANT_AVX512_INLINE __m512 exponents(__m512 z, __m512 reference, __m512 narrow) noexcept {
  return kept(_mm512_mul_ps(kept(_mm512_sub_ps(z, reference)), narrow));
}

DECANT_AVX512 inline void weights(const float* values, std::uint64_t keep, const weight_parameters& p,
                                  block_weights& out) noexcept {
  const __m512 reference = _mm512_set1_ps(p.reference), narrow = _mm512_set1_ps(p.narrow);
  for (std::size_t j = 0; j < 64; j += 16) {
    const __m512 w = _mm512_maskz_mov_ps(static_cast<__mmask16>(keep >> j),
                                         exp2_weights(exponents(load(values + j), reference, narrow)));
    _mm512_storeu_pd(out.data() + j, low_half(w));
    _mm512_storeu_pd(out.data() + j + 8, high_half(w));
  }
}

DECANT_AVX512 inline void float_weights(const float* values, std::size_t n, const weight_parameters& p,
                                        float* out) noexcept {
  const __m512 reference = _mm512_set1_ps(p.reference), narrow = _mm512_set1_ps(p.narrow);
  for (std::size_t i = 0; i < n; i += 16) {
    _mm512_storeu_ps(out + i, exp2_weights(exponents(load(values + i), reference, narrow)));
  }
}

/// math::exp in 8 lanes, for x <= 0.
DECANT_AVX512_INLINE __m512d exp_of_negative(__m512d x) noexcept {
  using c = exp_constants;
  const __mmask8 there = _mm512_cmp_pd_mask(x, _mm512_set1_pd(c::lowest), _CMP_GE_OQ);
  const __m512d shifted =
      kept(_mm512_add_pd(kept(_mm512_mul_pd(x, _mm512_set1_pd(c::per_sixteenth))), _mm512_set1_pd(c::to_nearest)));
  const __m512d k = kept(_mm512_sub_pd(shifted, _mm512_set1_pd(c::to_nearest)));
  const __m512d high = kept(_mm512_mul_pd(k, _mm512_set1_pd(c::high)));
  const __m512d low = kept(_mm512_mul_pd(k, _mm512_set1_pd(c::low)));
  const __m512d r = kept(_mm512_sub_pd(kept(_mm512_sub_pd(x, high)), low));
  __m512d p = _mm512_set1_pd(c::leading);
  for (const double a : c::coefficients) p = kept(_mm512_add_pd(kept(_mm512_mul_pd(p, r)), _mm512_set1_pd(a)));
  const __m512d q = kept(_mm512_add_pd(r, kept(_mm512_mul_pd(kept(_mm512_mul_pd(r, r)), p))));
  const __m512i bits = _mm512_castpd_si512(shifted);
  const __m512d sixteenth = _mm512_permutex2var_pd(_mm512_load_pd(sixteenths), bits, _mm512_load_pd(sixteenths + 8));
  const __m512d y = kept(_mm512_add_pd(sixteenth, kept(_mm512_mul_pd(sixteenth, q))));
  const __m512i exponent = _mm512_slli_epi64(_mm512_andnot_si512(_mm512_set1_epi64(15), bits), 48);
  return _mm512_castsi512_pd(_mm512_maskz_add_epi64(there, _mm512_castpd_si512(y), exponent));
}

DECANT_AVX512 inline double block_sum(const double* w) noexcept {
  __m512d a[8];
#pragma GCC unroll 8
  for (std::size_t j = 0; j < 8; ++j) a[j] = _mm512_loadu_pd(w + 8 * j);
  return folded(kept(_mm512_add_pd(kept(_mm512_add_pd(a[0], a[2])), kept(_mm512_add_pd(a[4], a[6])))),
                kept(_mm512_add_pd(kept(_mm512_add_pd(a[1], a[3])), kept(_mm512_add_pd(a[5], a[7])))));
}

DECANT_AVX512 inline void exps(const float* values, std::size_t n, float reference, double scale,
                               double* out) noexcept {
  const __m512d top = _mm512_set1_pd(static_cast<double>(reference)), factor = _mm512_set1_pd(scale);
  for (std::size_t i = 0; i < n; i += 8) {
    const __m512d z = _mm512_cvtps_pd(_mm256_loadu_ps(values + i));
    _mm512_storeu_pd(out + i, exp_of_negative(kept(_mm512_mul_pd(kept(_mm512_sub_pd(z, top)), factor))));
  }
}

DECANT_AVX512 inline portable::mass_sums exact_mass(const float* values, std::size_t n, float reference,
                                                    double scale) noexcept {
  const __m512d top = _mm512_set1_pd(static_cast<double>(reference)), factor = _mm512_set1_pd(scale);
  __m512d mass[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()}, weighted[2] = {mass[0], mass[0]};
  for (std::size_t i = 0; i < n; i += 16) {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < 2; ++j) {
      const __m512d z = _mm512_cvtps_pd(_mm256_loadu_ps(values + i + 8 * j));
      const __m512d below = kept(_mm512_mul_pd(kept(_mm512_sub_pd(z, top)), factor));
      const __m512d w = exp_of_negative(below);
      mass[j] = kept(_mm512_add_pd(mass[j], w));
      const __mmask8 there = _mm512_cmp_pd_mask(w, _mm512_setzero_pd(), _CMP_GT_OQ);
      weighted[j] = kept(_mm512_add_pd(weighted[j], kept(_mm512_maskz_mul_pd(there, w, below))));
    }
  }
  alignas(64) double masses[16], weighteds[16];
  for (std::size_t j = 0; j < 2; ++j) {
    _mm512_store_pd(masses + 8 * j, mass[j]);
    _mm512_store_pd(weighteds + 8 * j, weighted[j]);
  }
  return {portable::lane_sum(masses), portable::lane_sum(weighteds)};
}

/// 2^y within 2e-9 of itself, 0 where that is far below the smallest double.
DECANT_AVX512_INLINE __m512d near_exp2(__m512d y) noexcept {
  const __m512d f = _mm512_reduce_pd(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512d p = _mm512_set1_pd(near_exp2_coefficients[0]);
#pragma GCC unroll 8
  for (std::size_t i = 1; i < std::size(near_exp2_coefficients); ++i) {
    p = _mm512_fmadd_pd(p, f, _mm512_set1_pd(near_exp2_coefficients[i]));
  }
  return _mm512_scalef_pd(p, _mm512_sub_pd(y, f));
}

DECANT_AVX512 inline portable::split_mass near_mass(const float* values, std::size_t n, float reference, double scale,
                                                    float high) noexcept {
  const double base2 = scale * per_doubling;
  const __m512d factor = _mm512_set1_pd(base2), top = _mm512_set1_pd(static_cast<double>(reference));
  const __m256 threshold = _mm256_set1_ps(high);
  __m512d mass[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()}, above[2] = {mass[0], mass[0]};
  for (std::size_t i = 0; i < n; i += 16) {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < 2; ++j) {
      const __m256 z = _mm256_loadu_ps(values + i + 8 * j);
      const __m512d w = near_exp2(_mm512_mul_pd(_mm512_sub_pd(_mm512_cvtps_pd(z), top), factor));
      mass[j] = _mm512_add_pd(mass[j], w);
      above[j] = _mm512_mask_add_pd(above[j], _mm256_cmp_ps_mask(z, threshold, _CMP_GE_OQ), above[j], w);
    }
  }
  return {folded(mass[0], mass[1]), folded(above[0], above[1])};
}

DECANT_AVX512 inline double sum_at_least(const float* values, const double* w, std::size_t n,
                                         float threshold) noexcept {
  const __m256 t = _mm256_set1_ps(threshold);
  __m512d sum[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
  for (std::size_t i = 0; i < n; i += 16) {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < 2; ++j) {
      const __mmask8 reaches = _mm256_cmp_ps_mask(_mm256_loadu_ps(values + i + 8 * j), t, _CMP_GE_OQ);
      sum[j] = _mm512_mask_add_pd(sum[j], reaches, sum[j], _mm512_loadu_pd(w + i + 8 * j));
    }
  }
  return folded(sum[0], sum[1]);
}

/// portable::quick_exp2 in 16 lanes.
DECANT_AVX512_INLINE __m512 quick_exp2(__m512 y) noexcept {
  const __m512 n = _mm512_roundscale_ps(y, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  const __m512 f = kept(_mm512_sub_ps(y, n));  // which may round to 1
  __m512 p = _mm512_set1_ps(quick_exp2_coefficients[0]);
#pragma GCC unroll 5
  for (std::size_t i = 1; i < 6; ++i) p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(quick_exp2_coefficients[i]));
  return _mm512_scalef_ps(p, n);
}

template <bool with_exponents>
DECANT_AVX512_INLINE portable::mass_sums quick_sums(const float* values, std::size_t n,
                                                    const quick_parameters& p) noexcept {
  const __m512 slope = _mm512_set1_ps(p.slope), offset = _mm512_set1_ps(p.offset), least = _mm512_set1_ps(-126);
  __m512d low = _mm512_setzero_pd(), high = low, weighted_low = low, weighted_high = low;
  __m512 w[4], h[4];
  const auto add_block = [&](const float* from) DECANT_AVX512 __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) {
      const __m512 y = _mm512_max_ps(_mm512_fmadd_ps(load(from + 16 * k), slope, offset), least);
      const __m512 weight = quick_exp2(y);
      w[k] = kept(_mm512_add_ps(w[k], weight));
      if constexpr (with_exponents) h[k] = kept(_mm512_fmadd_ps(weight, y, h[k]));
    }
  };
  const auto clear = [&]() DECANT_AVX512 __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) w[k] = h[k] = _mm512_setzero_ps();
  };
  const auto settle = [&]() DECANT_AVX512 __attribute__((always_inline)) {
    const __m512 mass = kept(_mm512_add_ps(kept(_mm512_add_ps(w[0], w[1])), kept(_mm512_add_ps(w[2], w[3]))));
    low = kept(_mm512_add_pd(low, low_half(mass)));
    high = kept(_mm512_add_pd(high, high_half(mass)));
    if constexpr (with_exponents) {
      const __m512 sum = kept(_mm512_add_ps(kept(_mm512_add_ps(h[0], h[1])), kept(_mm512_add_ps(h[2], h[3]))));
      weighted_low = kept(_mm512_add_pd(weighted_low, low_half(sum)));
      weighted_high = kept(_mm512_add_pd(weighted_high, high_half(sum)));
    }
  };
  std::size_t i = 0;
  for (; i + 256 <= n; i += 256) {
    clear();
    for (std::size_t b = 0; b < 256; b += 64) add_block(values + i + b);
    settle();
  }
  for (; i < n; i += 64) {
    clear();
    add_block(values + i);
    settle();
  }
  alignas(64) double masses[16], weighteds[16];
  _mm512_store_pd(masses, low);
  _mm512_store_pd(masses + 8, high);
  _mm512_store_pd(weighteds, weighted_low);
  _mm512_store_pd(weighteds + 8, weighted_high);
  return portable::without_excess({portable::lane_sum(masses), portable::lane_sum(weighteds)}, p);
}

DECANT_AVX512 inline double quick_mass(const float* values, std::size_t n, const quick_parameters& p) noexcept {
  return quick_sums<false>(values, n, p).mass;
}

DECANT_AVX512 inline portable::mass_sums quick_masses(const float* values, std::size_t n,
                                                      const quick_parameters& p) noexcept {
  return quick_sums<true>(values, n, p);
}

/// portable::swift_weight in 16 lanes.
DECANT_AVX512_INLINE __m512 swift_weights(__m512 z, __m512 slope, __m512 base, __m512 least) noexcept {
  z = _mm512_max_ps(z, least);
  const __m512 whole = kept(_mm512_fmadd_ps(z, slope, base));
  const __m512 f = _mm512_fmsub_ps(z, slope, kept(_mm512_sub_ps(whole, base)));
  __m512 w = _mm512_set1_ps(swift_exp2_coefficients[0]);
#pragma GCC unroll 5
  for (std::size_t i = 1; i < 6; ++i) w = _mm512_fmadd_ps(w, f, _mm512_set1_ps(swift_exp2_coefficients[i]));
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(whole), 23);
  return kept(_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(w), exponent)));
}

DECANT_AVX512 inline row_summary peaks_and_swift_mass(const float* values, std::size_t n, float* out,
                                                      const swift_parameters& p, double& mass) noexcept {
  const __m512 slope = _mm512_set1_ps(p.slope), base = _mm512_set1_ps(p.base), least = _mm512_set1_ps(p.least);
  __m512d low = _mm512_setzero_pd(), high = low;
  __m512 content = _mm512_setzero_ps(), top = _mm512_set1_ps(portable::minus_infinity);
  for (std::size_t i = 0; i < n; i += 512) {
    const std::size_t blocks = n - i < 512 ? (n - i) / 64 : 8;
    __m512 some = _mm512_setzero_ps();
    alignas(64) float largest[8][16];
    for (std::size_t b = 0; b < blocks; ++b) {
      const float* block = values + i + 64 * b;
#pragma GCC unroll 4
      for (std::size_t j = 0; j < 64; j += 16) prefetch(block + j);
      const __m512 c[4] = {load(block), load(block + 16), load(block + 32), load(block + 48)};
      content = kept(_mm512_add_ps(
          content, kept(_mm512_add_ps(kept(_mm512_add_ps(c[0], c[1])), kept(_mm512_add_ps(c[2], c[3]))))));
      _mm512_store_ps(largest[b], _mm512_max_ps(_mm512_max_ps(c[0], c[1]), _mm512_max_ps(c[2], c[3])));
#pragma GCC unroll 2
      for (std::size_t j = 0; j < 4; j += 2) {
        const __m512 first = swift_weights(c[j], slope, base, least);
        some = kept(_mm512_add_ps(some, kept(_mm512_add_ps(first, swift_weights(c[j + 1], slope, base, least)))));
      }
    }
    low = kept(_mm512_add_pd(low, low_half(some)));
    high = kept(_mm512_add_pd(high, high_half(some)));
    const auto peak = [&](std::size_t b) DECANT_AVX512
        __attribute__((always_inline)) { return _mm512_load_ps(largest[b < blocks ? b : 0]); };
    const __m512 front = largest_quarters(peak(0), peak(1), peak(2), peak(3));
    const __m512 back = largest_quarters(peak(4), peak(5), peak(6), peak(7));
    const __m512 peaks = flushed(largest_lanes(front, back, front, back));
    top = _mm512_max_ps(top, peaks);
    _mm512_store_ps(largest[0], peaks);
    for (std::size_t b = 0; b < blocks; ++b) out[i / 64 + b] = largest[0][b];
  }
  alignas(64) double lanes[16];
  _mm512_store_pd(lanes, low);
  _mm512_store_pd(lanes + 8, high);
  mass = portable::lane_sum(lanes);
  alignas(64) float contents[16];
  _mm512_store_ps(contents, content);
  row_summary summary{portable::minus_infinity, row_content::finite};
  for (const float lane : contents) summary.content = worse(summary.content, content_of(lane));
  const __m512 quarters = largest_quarters(top, top, top, top);
  summary.max = _mm512_cvtss_f32(largest_lanes(quarters, quarters, quarters, quarters));
  return summary;
}

DECANT_AVX512 inline portable::moment_sums moments(const float* values, std::size_t n, float reference) noexcept {
  const __m512d top = _mm512_set1_pd(static_cast<double>(reference));
  const __m512i minus_infinity = _mm512_set1_epi32(static_cast<int>(0xFF800000U));
  __m512d sum[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()}, squares[2] = {sum[0], sum[0]};
  for (std::size_t i = 0; i < n; i += 16) {
    const __m512 z = load(values + i);
    const __mmask16 there = _mm512_cmpneq_epi32_mask(_mm512_castps_si512(z), minus_infinity);
    for (std::size_t j = 0; j < 2; ++j) {
      const __m512d d =
          kept(_mm512_maskz_sub_pd(static_cast<__mmask8>(there >> (8 * j)), j == 0 ? low_half(z) : high_half(z), top));
      sum[j] = kept(_mm512_add_pd(sum[j], d));
      squares[j] = kept(_mm512_add_pd(squares[j], kept(_mm512_mul_pd(d, d))));
    }
  }
  alignas(64) double lanes[16], square_lanes[16];
  for (std::size_t j = 0; j < 2; ++j) {
    _mm512_store_pd(lanes + 8 * j, sum[j]);
    _mm512_store_pd(square_lanes + 8 * j, squares[j]);
  }
  return {portable::lane_sum(lanes), portable::lane_sum(square_lanes)};
}

/// Writes the lanes of z that lie in [low, high), with their ids; the next place to write.
DECANT_AVX512_INLINE std::size_t list_lanes(__m512 z, __m512i ids, __m512 low, __m512 high, std::size_t count,
                                            portable::listed_values out) noexcept {
  const __mmask16 inside = _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(z, low, _CMP_GE_OQ), z, high, _CMP_LT_OQ);
  _mm512_storeu_ps(out.values + count, _mm512_maskz_compress_ps(inside, z));
  _mm512_storeu_si512(out.ids + count, _mm512_maskz_compress_epi32(inside, ids));
  return count + static_cast<std::size_t>(std::popcount(static_cast<std::uint32_t>(inside)));
}

DECANT_AVX512 inline std::size_t collect(const float* row, const float* peaks, std::size_t blocks, float low,
                                         float high, std::int32_t first, portable::listed_values out) noexcept {
  const __m512 lowest = _mm512_set1_ps(low), end = _mm512_set1_ps(high);
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  std::size_t count = 0;
  for (std::size_t b = 0; b < blocks; b += 16) {
    const std::uint32_t there = blocks - b < 16 ? (1U << (blocks - b)) - 1 : 0xFFFFU;
    const __m512 tops = _mm512_maskz_loadu_ps(static_cast<__mmask16>(there), peaks + b);
    std::uint32_t hit = _mm512_mask_cmp_ps_mask(static_cast<__mmask16>(there), tops, lowest, _CMP_GE_OQ);
    for (; hit != 0; hit &= hit - 1) {
      const std::size_t at = 64 * (b + static_cast<std::size_t>(std::countr_zero(hit)));
      const __m512i ids = _mm512_add_epi32(lane, _mm512_set1_epi32(first + static_cast<std::int32_t>(at)));
#pragma GCC unroll 4
      for (int k = 0; k < 64; k += 16) {
        count = list_lanes(load(row + at + k), _mm512_add_epi32(ids, _mm512_set1_epi32(k)), lowest, end, count, out);
      }
    }
  }
  for (std::size_t i = 0; i < count; i += 16) _mm512_storeu_ps(out.values + i, flushed(load(out.values + i)));
  return count;
}

DECANT_AVX512 inline std::size_t filter(const std::int32_t* ids, const float* values, std::size_t n, float low,
                                        float high, portable::listed_values out) noexcept {
  const __m512 lowest = _mm512_set1_ps(low), end = _mm512_set1_ps(high);
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; i += 16) {
    count = list_lanes(load(values + i), _mm512_loadu_si512(ids + i), lowest, end, count, out);
  }
  return count;
}

using avx2::set_bits;

DECANT_STRICT_END

}  // namespace decant::math::avx512

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#endif
