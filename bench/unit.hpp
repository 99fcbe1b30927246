// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

#include <decant/math/isa.hpp>

#if DECANT_X86
#include <immintrin.h>
#endif

namespace bench {

/// The unit of all costs: the largest of a row in one streaming pass, with the widest vectors that the machine has.
/// Written out here, apart from what it measures.
using streaming_max_function = float (*)(const float*, std::size_t);

namespace detail {

inline float plain_max(const float* row, std::size_t size) {
  float lanes[32];
  std::fill_n(lanes, 32, -std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + 32 <= size; i += 32) {
    for (std::size_t j = 0; j < 32; ++j) lanes[j] = lanes[j] < row[i + j] ? row[i + j] : lanes[j];
  }
  float top = *std::max_element(lanes, lanes + 32);
  for (; i < size; ++i) top = std::max(top, row[i]);
  return top;
}

#if DECANT_X86

// g++ 12 takes the undefined vectors inside its own intrinsics for mistakes.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

// Eight running maxima hide the latency of the instruction.
__attribute__((target("avx512f"))) inline float avx512_max(const float* row, std::size_t size) {
  __m512 tops[8];
  for (__m512& top : tops) top = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + 128 <= size; i += 128) {
    tops[0] = _mm512_max_ps(tops[0], _mm512_loadu_ps(row + i));
    tops[1] = _mm512_max_ps(tops[1], _mm512_loadu_ps(row + i + 16));
    tops[2] = _mm512_max_ps(tops[2], _mm512_loadu_ps(row + i + 32));
    tops[3] = _mm512_max_ps(tops[3], _mm512_loadu_ps(row + i + 48));
    tops[4] = _mm512_max_ps(tops[4], _mm512_loadu_ps(row + i + 64));
    tops[5] = _mm512_max_ps(tops[5], _mm512_loadu_ps(row + i + 80));
    tops[6] = _mm512_max_ps(tops[6], _mm512_loadu_ps(row + i + 96));
    tops[7] = _mm512_max_ps(tops[7], _mm512_loadu_ps(row + i + 112));
  }
  for (int half = 4; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) tops[j] = _mm512_max_ps(tops[j], tops[j + half]);
  }
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, tops[0]);
  float top = *std::max_element(lanes, lanes + 16);
  for (; i < size; ++i) top = std::max(top, row[i]);
  return top;
}

__attribute__((target("avx2"))) inline float avx2_max(const float* row, std::size_t size) {
  __m256 tops[8];
  for (__m256& top : tops) top = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + 64 <= size; i += 64) {
    tops[0] = _mm256_max_ps(tops[0], _mm256_loadu_ps(row + i));
    tops[1] = _mm256_max_ps(tops[1], _mm256_loadu_ps(row + i + 8));
    tops[2] = _mm256_max_ps(tops[2], _mm256_loadu_ps(row + i + 16));
    tops[3] = _mm256_max_ps(tops[3], _mm256_loadu_ps(row + i + 24));
    tops[4] = _mm256_max_ps(tops[4], _mm256_loadu_ps(row + i + 32));
    tops[5] = _mm256_max_ps(tops[5], _mm256_loadu_ps(row + i + 40));
    tops[6] = _mm256_max_ps(tops[6], _mm256_loadu_ps(row + i + 48));
    tops[7] = _mm256_max_ps(tops[7], _mm256_loadu_ps(row + i + 56));
  }
  for (int half = 4; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) tops[j] = _mm256_max_ps(tops[j], tops[j + half]);
  }
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, tops[0]);
  float top = *std::max_element(lanes, lanes + 8);
  for (; i < size; ++i) top = std::max(top, row[i]);
  return top;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#endif

}  // namespace detail

inline streaming_max_function streaming_max() {
#if DECANT_X86
  const auto best = decant::math::best_isa();
  if (best == decant::math::isa::avx512) return detail::avx512_max;
  if (best == decant::math::isa::avx2) return detail::avx2_max;
#endif
  return detail::plain_max;
}

}  // namespace bench
