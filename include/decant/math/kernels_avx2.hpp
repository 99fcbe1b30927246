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

/// Denormals as zeros of their sign.
DECANT_AVX2_INLINE __m256 flushed(__m256 x) noexcept {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i exponent = _mm256_and_si256(bits, _mm256_set1_epi32(0x7F800000));
  const __m256i small = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
  const __m256i magnitude = _mm256_and_si256(small, _mm256_set1_epi32(INT32_MAX));
  return _mm256_castsi256_ps(_mm256_andnot_si256(magnitude, bits));
}

/// Lane j of the result: the largest lane of m[j].
DECANT_AVX2_INLINE __m256 largest_lanes(const __m256 (&m)[8]) noexcept {
  __m256 pairs[4], fours[2];
  for (std::size_t i = 0; i < 4; ++i) {
    pairs[i] = _mm256_max_ps(_mm256_unpacklo_ps(m[2 * i], m[2 * i + 1]), _mm256_unpackhi_ps(m[2 * i], m[2 * i + 1]));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const __m256d a = _mm256_castps_pd(pairs[2 * i]), b = _mm256_castps_pd(pairs[2 * i + 1]);
    fours[i] = _mm256_max_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)), _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
  }
  return _mm256_max_ps(_mm256_permute2f128_ps(fours[0], fours[1], 0x20),
                       _mm256_permute2f128_ps(fours[0], fours[1], 0x31));
}

template <class Element>
DECANT_AVX2 inline row_summary peaks(const Element* row, std::size_t n, float* out) noexcept {
  __m256 sum[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
  __m256 top = _mm256_set1_ps(portable::minus_infinity);
  std::size_t i = 0;
  for (; i + 512 <= n; i += 512) {
    __m256 m[8];
    for (std::size_t b = 0; b < 8; ++b) {
      const Element* block = row + i + 64 * b;
      const __m256 a0 = load(block), a1 = load(block + 8), a2 = load(block + 16), a3 = load(block + 24);
      sum[0] = _mm256_add_ps(sum[0], a0);
      sum[1] = _mm256_add_ps(sum[1], a1);
      sum[2] = _mm256_add_ps(sum[2], a2);
      sum[3] = _mm256_add_ps(sum[3], a3);
      const __m256 front = _mm256_max_ps(_mm256_max_ps(a0, a1), _mm256_max_ps(a2, a3));
      const __m256 a4 = load(block + 32), a5 = load(block + 40), a6 = load(block + 48), a7 = load(block + 56);
      sum[0] = _mm256_add_ps(sum[0], a4);
      sum[1] = _mm256_add_ps(sum[1], a5);
      sum[2] = _mm256_add_ps(sum[2], a6);
      sum[3] = _mm256_add_ps(sum[3], a7);
      m[b] = _mm256_max_ps(front, _mm256_max_ps(_mm256_max_ps(a4, a5), _mm256_max_ps(a6, a7)));
    }
    const __m256 largest = flushed(largest_lanes(m));
    top = _mm256_max_ps(top, largest);
    _mm256_storeu_ps(out + i / 64, largest);
  }
  for (; i + 64 <= n; i += 64) {
    __m256 all = load(row + i);
    sum[0] = _mm256_add_ps(sum[0], all);
    for (std::size_t j = 8; j < 64; j += 8) {
      const __m256 a = load(row + i + j);
      sum[j / 8 % 4] = _mm256_add_ps(sum[j / 8 % 4], a);
      all = _mm256_max_ps(all, a);
    }
    const __m256 largest = flushed(largest_lanes({all, all, all, all, all, all, all, all}));
    top = _mm256_max_ps(top, largest);
    _mm_store_ss(out + i / 64, _mm256_castps256_ps128(largest));
  }
  alignas(32) float lanes[32];
  for (std::size_t j = 0; j < 4; ++j) _mm256_store_ps(lanes + 8 * j, sum[j]);
  row_summary summary{portable::minus_infinity, row_content::finite};
  for (const float lane : lanes) summary.content = worse(summary.content, content_of(lane));
  _mm256_store_ps(lanes, top);
  for (std::size_t j = 0; j < 8; ++j) summary.max = lanes[j] > summary.max ? lanes[j] : summary.max;
  if (i == n) return summary;
  const row_summary rest = portable::peaks(row + i, n - i, out + i / 64);
  return {rest.max > summary.max ? rest.max : summary.max, worse(summary.content, rest.content)};
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
  __m256i counts = _mm256_setzero_si256();
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    counts = _mm256_sub_epi32(counts, _mm256_castps_si256(_mm256_cmp_ps(load(values + i), t, _CMP_GE_OQ)));
  }
  alignas(32) std::uint32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), counts);
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

DECANT_AVX2_INLINE __m256d low_half(__m256 x) noexcept { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
DECANT_AVX2_INLINE __m256d high_half(__m256 x) noexcept { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }

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
/// (a + b) + (c + d), as float sums of four are taken.
DECANT_AVX2_INLINE __m256 sum_of_four(__m256 a, __m256 b, __m256 c, __m256 d) noexcept {
  return kept(_mm256_add_ps(kept(_mm256_add_ps(a, b)), kept(_mm256_add_ps(c, d))));
}

DECANT_AVX2 inline double weight_sum(const float* values, std::uint64_t keep, const weight_parameters& p) noexcept {
  alignas(32) double lane[16];
  const __m256 reference = _mm256_set1_ps(p.reference), narrow = _mm256_set1_ps(p.narrow);
  for (std::size_t j = 0; j < 2; ++j) {
    __m256 w[4];
    for (std::size_t k = 0; k < 4; ++k) {
      w[k] = _mm256_and_ps(lanes_of(keep >> (16 * k + 8 * j)),
                           exp2_weights(exponents(load(values + 16 * k + 8 * j), reference, narrow)));
    }
    const __m256d low = kept(_mm256_add_pd(kept(_mm256_add_pd(low_half(w[0]), low_half(w[1]))),
                                           kept(_mm256_add_pd(low_half(w[2]), low_half(w[3])))));
    const __m256d high = kept(_mm256_add_pd(kept(_mm256_add_pd(high_half(w[0]), high_half(w[1]))),
                                            kept(_mm256_add_pd(high_half(w[2]), high_half(w[3])))));
    _mm256_store_pd(lane + 8 * j, low);
    _mm256_store_pd(lane + 8 * j + 4, high);
  }
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) lane[j] = rounded(lane[j] + lane[j + half]);
  }
  return lane[0];
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

DECANT_AVX2 inline portable::mass_sums exact_mass(const float* values, std::size_t n, float reference, double scale,
                                                  float high) noexcept {
  const __m256d top = _mm256_set1_pd(static_cast<double>(reference)), factor = _mm256_set1_pd(scale);
  const __m128 threshold = _mm_set1_ps(high);
  wide_sum mass = zero_sum(), weighted = zero_sum(), above = zero_sum();
  for (std::size_t i = 0; i < n; i += 16) {
    for (std::size_t j = 0; j < 4; ++j) {
      const __m256d below = kept(_mm256_mul_pd(kept(_mm256_sub_pd(quarter(values + i, j), top)), factor));
      const __m256d w = exp_of_negative(below);
      mass.lane[j] = kept(_mm256_add_pd(mass.lane[j], w));
      const __m128 reaches = _mm_cmp_ps(_mm_loadu_ps(values + i + 4 * j), threshold, _CMP_GE_OQ);
      const __m256i reached = _mm256_cvtepi32_epi64(_mm_castps_si128(reaches));
      above.lane[j] = kept(_mm256_add_pd(above.lane[j], _mm256_and_pd(_mm256_castsi256_pd(reached), w)));
      const __m256d there = _mm256_cmp_pd(w, _mm256_setzero_pd(), _CMP_GT_OQ);
      weighted.lane[j] = kept(_mm256_add_pd(weighted.lane[j], kept(_mm256_mul_pd(w, _mm256_and_pd(there, below)))));
    }
  }
  alignas(32) double masses[16], weighteds[16], aboves[16];
  store(mass, masses);
  store(weighted, weighteds);
  store(above, aboves);
  portable::mass_sums sums;
  for (std::size_t j = 0; j < 16; ++j) {
    sums.mass = rounded(sums.mass + masses[j]);
    sums.weighted = rounded(sums.weighted + weighteds[j]);
    sums.above = rounded(sums.above + aboves[j]);
  }
  return sums;
}

DECANT_AVX2 inline double quick_mass(const float* values, std::size_t n, const weight_parameters& p) noexcept {
  const __m256 reference = _mm256_set1_ps(p.reference), narrow = _mm256_set1_ps(p.narrow);
  wide_sum mass = zero_sum();
  for (std::size_t i = 0; i < n; i += 64) {
    __m256 sums[2];
    for (std::size_t j = 0; j < 2; ++j) {
      __m256 w[4];
      for (std::size_t k = 0; k < 4; ++k) {
        w[k] = exp2_weights(exponents(load(values + i + 16 * k + 8 * j), reference, narrow));
      }
      sums[j] = sum_of_four(w[0], w[1], w[2], w[3]);
    }
    add(mass, sums[0], sums[1]);
  }
  alignas(32) double lanes[16];
  store(mass, lanes);
  double total = 0;
  for (const double lane : lanes) total = rounded(total + lane);
  return total;
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
  portable::moment_sums sums;
  for (std::size_t j = 0; j < 16; ++j) {
    sums.sum = rounded(sums.sum + lanes[j]);
    sums.squares = rounded(sums.squares + square_lanes[j]);
  }
  return sums;
}

DECANT_AVX2 inline portable::bracket_sums bracket(const float* values, std::size_t n, const weight_parameters& p,
                                                  float low, float high, std::uint32_t* places) noexcept {
  const __m256 reference = _mm256_set1_ps(p.reference), narrow = _mm256_set1_ps(p.narrow);
  const __m256 lowest = _mm256_set1_ps(low), above = _mm256_set1_ps(high);
  wide_sum mass = zero_sum();
  portable::bracket_sums found;
  for (std::size_t i = 0; i < n; i += 64) {
    __m256 m[2];
    for (std::size_t j = 0; j < 2; ++j) {
      __m256 w[4];
      for (std::size_t k = 0; k < 4; ++k) {
        const __m256 z = load(values + i + 16 * k + 8 * j);
        const __m256 over = _mm256_cmp_ps(z, above, _CMP_GE_OQ);
        w[k] = _mm256_and_ps(over, exp2_weights(exponents(z, reference, narrow)));
      }
      m[j] = sum_of_four(w[0], w[1], w[2], w[3]);
    }
    add(mass, m[0], m[1]);
    std::uint64_t inside = mask_at_least(values + i, lowest) & ~mask_at_least(values + i, above);
    for (; inside != 0; inside &= inside - 1) {
      places[found.count++] = static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(std::countr_zero(inside));
    }
  }
  alignas(32) double masses[16];
  store(mass, masses);
  for (const double m : masses) found.mass = rounded(found.mass + m);
  return found;
}

DECANT_STRICT_END

}  // namespace decant::math::avx2

#endif
