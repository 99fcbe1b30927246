// SPDX-License-Identifier: MIT
#pragma once

#include <decant/math/isa.hpp>

#if DECANT_X86

#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include <decant/math/half.hpp>
#include <decant/math/kernels_portable.hpp>
#include <decant/math/sum_tree.hpp>

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

/// Denormals as zeros of their sign.
DECANT_AVX512_INLINE __m512 flushed(__m512 x) noexcept {
  const __m512i bits = _mm512_castps_si512(x);
  const __mmask16 small = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7F800000));
  return _mm512_castsi512_ps(_mm512_mask_and_epi32(bits, small, bits, _mm512_set1_epi32(INT32_MIN)));
}

/// Lane j of the result: the largest lane of m[j].
DECANT_AVX512_INLINE __m512 largest_lanes(const __m512 (&m)[16]) noexcept {
  __m512 pairs[8], fours[4], eights[2];
  for (std::size_t i = 0; i < 8; ++i) {
    pairs[i] = _mm512_max_ps(_mm512_unpacklo_ps(m[2 * i], m[2 * i + 1]), _mm512_unpackhi_ps(m[2 * i], m[2 * i + 1]));
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(pairs[2 * i]), b = _mm512_castps_pd(pairs[2 * i + 1]);
    fours[i] = _mm512_max_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const __m512 a = fours[2 * i], b = fours[2 * i + 1];
    eights[i] = _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
  }
  return _mm512_max_ps(_mm512_shuffle_f32x4(eights[0], eights[1], 0x88),
                       _mm512_shuffle_f32x4(eights[0], eights[1], 0xDD));
}

template <class Element>
DECANT_AVX512 inline row_summary peaks(const Element* row, std::size_t n, float* out) noexcept {
  __m512 sum[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
  __m512 top = _mm512_set1_ps(portable::minus_infinity);
  std::size_t i = 0;
  for (; i + 1024 <= n; i += 1024) {
    __m512 m[16];
    for (std::size_t b = 0; b < 16; ++b) {
      const Element* block = row + i + 64 * b;
      const __m512 a0 = load(block), a1 = load(block + 16), a2 = load(block + 32), a3 = load(block + 48);
      m[b] = _mm512_max_ps(_mm512_max_ps(a0, a1), _mm512_max_ps(a2, a3));
      sum[0] = _mm512_add_ps(sum[0], a0);
      sum[1] = _mm512_add_ps(sum[1], a1);
      sum[2] = _mm512_add_ps(sum[2], a2);
      sum[3] = _mm512_add_ps(sum[3], a3);
    }
    const __m512 largest = flushed(largest_lanes(m));
    top = _mm512_max_ps(top, largest);
    _mm512_storeu_ps(out + i / 64, largest);
  }
  alignas(64) float lanes[64];
  for (std::size_t j = 0; j < 4; ++j) _mm512_store_ps(lanes + 16 * j, sum[j]);
  row_summary summary{portable::minus_infinity, row_content::finite};
  for (const float lane : lanes) summary.content = worse(summary.content, content_of(lane));
  _mm512_store_ps(lanes, top);
  for (std::size_t j = 0; j < 16; ++j) summary.max = lanes[j] > summary.max ? lanes[j] : summary.max;
  if (i == n) return summary;
  const row_summary rest = portable::peaks(row + i, n - i, out + i / 64);
  return {rest.max > summary.max ? rest.max : summary.max, worse(summary.content, rest.content)};
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

/// The eight even-placed doubles: lanes 0..7, or 8..15, of 16 floats.
DECANT_AVX512_INLINE __m512d low_half(__m512 x) noexcept { return _mm512_cvtps_pd(_mm512_castps512_ps256(x)); }
DECANT_AVX512_INLINE __m512d high_half(__m512 x) noexcept { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)); }

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

DECANT_AVX512 inline double weight_sum(const float* values, std::uint64_t keep, const weight_parameters& p) noexcept {
  const __m512 reference = _mm512_set1_ps(p.reference), narrow = _mm512_set1_ps(p.narrow);
  __m512 w[4];
  for (std::size_t j = 0; j < 4; ++j) {
    w[j] = _mm512_maskz_mov_ps(static_cast<__mmask16>(keep >> (16 * j)),
                               exp2_weights(exponents(load(values + 16 * j), reference, narrow)));
  }
  const __m512d low = kept(_mm512_add_pd(kept(_mm512_add_pd(low_half(w[0]), low_half(w[1]))),
                                         kept(_mm512_add_pd(low_half(w[2]), low_half(w[3])))));
  const __m512d high = kept(_mm512_add_pd(kept(_mm512_add_pd(high_half(w[0]), high_half(w[1]))),
                                          kept(_mm512_add_pd(high_half(w[2]), high_half(w[3])))));
  alignas(64) double lane[8];
  _mm512_store_pd(lane, kept(_mm512_add_pd(low, high)));
  for (std::size_t half = 4; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) lane[j] = rounded(lane[j] + lane[j + half]);
  }
  return lane[0];
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

DECANT_AVX512 inline portable::mass_sums exact_mass(const float* values, std::size_t n, float reference, double scale,
                                                    float high) noexcept {
  const __m512d top = _mm512_set1_pd(static_cast<double>(reference)), factor = _mm512_set1_pd(scale);
  __m512d mass[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()}, weighted[2] = {mass[0], mass[0]},
          above[2] = {mass[0], mass[0]};
  for (std::size_t i = 0; i < n; i += 16) {
    const __m512 z = load(values + i);
    const __mmask16 reaches = _mm512_cmp_ps_mask(z, _mm512_set1_ps(high), _CMP_GE_OQ);
    for (std::size_t j = 0; j < 2; ++j) {
      const __m512d below = kept(_mm512_mul_pd(kept(_mm512_sub_pd(j == 0 ? low_half(z) : high_half(z), top)), factor));
      const __m512d w = exp_of_negative(below);
      mass[j] = kept(_mm512_add_pd(mass[j], w));
      above[j] = kept(_mm512_mask_add_pd(above[j], static_cast<__mmask8>(reaches >> (8 * j)), above[j], w));
      const __mmask8 there = _mm512_cmp_pd_mask(w, _mm512_setzero_pd(), _CMP_GT_OQ);
      weighted[j] = kept(_mm512_add_pd(weighted[j], kept(_mm512_maskz_mul_pd(there, w, below))));
    }
  }
  alignas(64) double masses[16], weighteds[16], aboves[16];
  for (std::size_t j = 0; j < 2; ++j) {
    _mm512_store_pd(masses + 8 * j, mass[j]);
    _mm512_store_pd(weighteds + 8 * j, weighted[j]);
    _mm512_store_pd(aboves + 8 * j, above[j]);
  }
  portable::mass_sums sums;
  for (std::size_t j = 0; j < 16; ++j) {
    sums.mass = rounded(sums.mass + masses[j]);
    sums.weighted = rounded(sums.weighted + weighteds[j]);
    sums.above = rounded(sums.above + aboves[j]);
  }
  return sums;
}

DECANT_AVX512 inline double quick_mass(const float* values, std::size_t n, const weight_parameters& p) noexcept {
  const __m512 reference = _mm512_set1_ps(p.reference), narrow = _mm512_set1_ps(p.narrow);
  __m512d low = _mm512_setzero_pd(), high = low;
  for (std::size_t i = 0; i < n; i += 64) {
    __m512 w[4];
    for (std::size_t k = 0; k < 4; ++k) {
      w[k] = exp2_weights(exponents(load(values + i + 16 * k), reference, narrow));
    }
    const __m512 sum = kept(_mm512_add_ps(kept(_mm512_add_ps(w[0], w[1])), kept(_mm512_add_ps(w[2], w[3]))));
    low = kept(_mm512_add_pd(low, low_half(sum)));
    high = kept(_mm512_add_pd(high, high_half(sum)));
  }
  alignas(64) double lanes[16];
  _mm512_store_pd(lanes, low);
  _mm512_store_pd(lanes + 8, high);
  double total = 0;
  for (const double lane : lanes) total = rounded(total + lane);
  return total;
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
  portable::moment_sums sums;
  for (std::size_t j = 0; j < 16; ++j) {
    sums.sum = rounded(sums.sum + lanes[j]);
    sums.squares = rounded(sums.squares + square_lanes[j]);
  }
  return sums;
}

DECANT_AVX512 inline portable::bracket_sums bracket(const float* values, std::size_t n, const weight_parameters& p,
                                                    float low, float high, std::uint32_t* places) noexcept {
  const __m512 reference = _mm512_set1_ps(p.reference), narrow = _mm512_set1_ps(p.narrow);
  const __m512 lowest = _mm512_set1_ps(low), above = _mm512_set1_ps(high);
  __m512d mass_low = _mm512_setzero_pd(), mass_high = mass_low;
  __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  portable::bracket_sums found;
  for (std::size_t i = 0; i < n; i += 64) {
    __m512 w[4];
    for (std::size_t k = 0; k < 4; ++k) {
      const __m512 z = load(values + i + 16 * k);
      const __mmask16 over = _mm512_cmp_ps_mask(z, above, _CMP_GE_OQ);
      const __mmask16 inside = _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(z, lowest, _CMP_GE_OQ), z, above, _CMP_LT_OQ);
      w[k] = _mm512_maskz_mov_ps(over, exp2_weights(exponents(z, reference, narrow)));
      _mm512_storeu_si512(places + found.count, _mm512_maskz_compress_epi32(inside, place));
      found.count += static_cast<std::size_t>(std::popcount(static_cast<std::uint32_t>(inside)));
      place = _mm512_add_epi32(place, _mm512_set1_epi32(16));
    }
    const __m512 m = kept(_mm512_add_ps(kept(_mm512_add_ps(w[0], w[1])), kept(_mm512_add_ps(w[2], w[3]))));
    mass_low = kept(_mm512_add_pd(mass_low, low_half(m)));
    mass_high = kept(_mm512_add_pd(mass_high, high_half(m)));
  }
  alignas(64) double mass[16];
  _mm512_store_pd(mass, mass_low);
  _mm512_store_pd(mass + 8, mass_high);
  for (const double m : mass) found.mass = rounded(found.mass + m);
  return found;
}

DECANT_STRICT_END

}  // namespace decant::math::avx512

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#endif
