// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <decant/math/isa.hpp>
#include <decant/math/kernels_avx2.hpp>
#include <decant/math/philox.hpp>
#include <decant/math/splitmix64.hpp>

// Upper halves of 64 numbers in a row that are hashes of their index: a maximum of many needs few of them in full.

namespace decant::math {

/// Philox blocks of one key whose counters differ in word 2 alone, and what their first rounds share.
class philox_sequence {
 public:
  constexpr philox_sequence(std::uint32_t word0, std::uint32_t word1, std::uint64_t key) noexcept
      : word0_(word0), word1_(word1), key_(key) {
    auto key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
    for (std::size_t round = 0; round < 10; ++round, key0 += 0x9E3779B9, key1 += 0xBB67AE85) {
      keys[0][round] = key0;
      keys[1][round] = key1;
    }
    // Words 2 and 3 of the first round's result, and so a product of the second, are the same for all.
    const std::uint64_t product0 = multiplier0 * word0;
    const std::uint64_t product1 = multiplier1 * (static_cast<std::uint32_t>(product0 >> 32) ^ keys[1][0]);
    keys[0][0] ^= word1;
    keys[0][1] ^= static_cast<std::uint32_t>(product1 >> 32);
    keys[1][1] ^= static_cast<std::uint32_t>(product0);
    keys[0][2] ^= static_cast<std::uint32_t>(product1);
  }

  /// The block of an index.
  [[nodiscard]] constexpr std::array<std::uint32_t, 4> operator()(std::uint32_t index) const noexcept {
    return philox4x32({word0_, word1_, index, 0}, key_);
  }

  static constexpr std::uint64_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
  /// The keys of ten rounds, to which the words that are the same for all have been added.
  std::uint32_t keys[2][10]{};

 private:
  std::uint32_t word0_, word1_;
  std::uint64_t key_;
};

namespace portable {

/// Writes word 1 of the 64 blocks from `first` on.
inline void philox_word1(const philox_sequence& blocks, std::uint32_t first, std::uint32_t* out) noexcept {
  for (std::uint32_t i = 0; i < 64; ++i) out[i] = blocks(first + i)[1];
}

/// Bit i: whether word 1 of block `first` + i is >= least.
inline std::uint64_t philox_at_least(const philox_sequence& blocks, std::uint32_t first, std::uint32_t least) noexcept {
  std::uint64_t found = 0;
  for (std::uint32_t i = 0; i < 64; ++i) found |= std::uint64_t{blocks(first + i)[1] >= least} << i;
  return found;
}

/// Bit i: whether the upper half of number `first` + i of a SplitMix64 sequence is >= least.
inline std::uint64_t splitmix_at_least(std::uint64_t seed, std::uint64_t first, std::uint32_t least) noexcept {
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < 64; ++i) found |= std::uint64_t{splitmix64(seed, first + i) >> 32 >= least} << i;
  return found;
}

}  // namespace portable

#if DECANT_X86

namespace avx2 {

/// Bit i: whether number i of eight is >= least.
DECANT_AVX2_INLINE std::uint64_t eight_at_least(__m256i x, __m256i least) noexcept {
  const __m256i reached = _mm256_cmpeq_epi32(_mm256_max_epu32(x, least), x);
  return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(reached)));
}
DECANT_AVX2_INLINE __m256i lower_halves(__m256i a, __m256i b) noexcept {
  return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}
DECANT_AVX2_INLINE __m256i upper(__m256i x) noexcept { return _mm256_srli_epi64(x, 32); }
DECANT_AVX2_INLINE __m256i both(__m256i a, __m256i b) noexcept { return _mm256_xor_si256(a, b); }

/// Word 1 of four blocks, in the lower halves; indices are in the lower halves, too. Upper halves hold anything: a
/// product of 32 bits does not see them.
DECANT_AVX2_INLINE __m256i four_word1(const philox_sequence& blocks, __m256i index) noexcept {
  const __m256i m0 = _mm256_set1_epi64x(static_cast<std::int64_t>(philox_sequence::multiplier0));
  const __m256i m1 = _mm256_set1_epi64x(static_cast<std::int64_t>(philox_sequence::multiplier1));
  const auto key = [&](std::size_t word, std::size_t round) DECANT_AVX2
      __attribute__((always_inline)) { return _mm256_set1_epi32(static_cast<int>(blocks.keys[word][round])); };
  __m256i p1 = _mm256_mul_epu32(index, m1), p0 = _mm256_mul_epu32(both(upper(p1), key(0, 0)), m0);
  __m256i c0 = both(p1, key(0, 1)), c2 = both(upper(p0), key(1, 1)), c3 = p0, c1;
  p0 = _mm256_mul_epu32(c0, m0);
  p1 = _mm256_mul_epu32(c2, m1);
  c0 = both(upper(p1), key(0, 2));
  c2 = both(both(upper(p0), c3), key(1, 2));
#pragma GCC unroll 5
  for (std::size_t round = 3; round < 8; ++round) {
    c1 = p1;
    c3 = p0;
    p0 = _mm256_mul_epu32(c0, m0);
    p1 = _mm256_mul_epu32(c2, m1);
    c0 = both(both(upper(p1), c1), key(0, round));
    c2 = both(both(upper(p0), c3), key(1, round));
  }
  c3 = p0;
  p0 = _mm256_mul_epu32(c0, m0);
  c2 = both(both(upper(p0), c3), key(1, 8));
  return _mm256_mul_epu32(c2, m1);
}

/// Calls f(i, words) for eight of 64 blocks at a time: word 1 of blocks `first` + i and the next seven.
template <class F>
DECANT_AVX2_INLINE void each_eight_word1(const philox_sequence& blocks, std::uint32_t first, F f) noexcept {
  const __m256i eight = _mm256_set1_epi64x(8);
  __m256i a = _mm256_add_epi64(_mm256_set1_epi64x(static_cast<std::int64_t>(first)), _mm256_setr_epi64x(0, 1, 4, 5));
  __m256i b = _mm256_add_epi64(a, _mm256_set1_epi64x(2));
  for (std::size_t i = 0; i < 64; i += 8) {
    f(i, lower_halves(four_word1(blocks, a), four_word1(blocks, b)));
    a = _mm256_add_epi64(a, eight);
    b = _mm256_add_epi64(b, eight);
  }
}

DECANT_AVX2 inline void philox_word1(const philox_sequence& blocks, std::uint32_t first, std::uint32_t* out) noexcept {
  each_eight_word1(blocks, first, [&](std::size_t i, __m256i words) DECANT_AVX2 __attribute__((always_inline)) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), words);
  });
}

DECANT_AVX2 inline std::uint64_t philox_at_least(const philox_sequence& blocks, std::uint32_t first,
                                                 std::uint32_t least) noexcept {
  const __m256i border = _mm256_set1_epi32(static_cast<int>(least));
  std::uint64_t found = 0;
  each_eight_word1(blocks, first, [&](std::size_t i, __m256i words) DECANT_AVX2 __attribute__((always_inline)) {
    found |= eight_at_least(words, border) << i;
  });
  return found;
}

/// What x * factor is made of: the product of the lower halves, and the sum of the mixed ones, whose upper half is
/// void.
struct partial_products {
  __m256i low, mixed;
};
DECANT_AVX2_INLINE partial_products products(__m256i x, std::uint64_t factor) noexcept {
  const __m256i low = _mm256_set1_epi64x(static_cast<std::int64_t>(factor & 0xFFFFFFFFU));
  const __m256i high = _mm256_set1_epi64x(static_cast<std::int64_t>(factor >> 32));
  return {_mm256_mul_epu32(x, low), _mm256_add_epi64(_mm256_mul_epu32(upper(x), low), _mm256_mul_epu32(x, high))};
}

/// The upper halves of four SplitMix64 numbers but for their last step, in the lower halves.
DECANT_AVX2_INLINE __m256i splitmix_upper(__m256i x) noexcept {
  const partial_products first = products(both(x, _mm256_srli_epi64(x, 30)), 0xBF58476D1CE4E5B9U);
  x = _mm256_add_epi64(first.low, _mm256_slli_epi64(first.mixed, 32));
  const partial_products second = products(both(x, _mm256_srli_epi64(x, 27)), 0x94D049BB133111EBU);
  return _mm256_add_epi64(upper(second.low), second.mixed);
}

DECANT_AVX2 inline std::uint64_t splitmix_at_least(std::uint64_t seed, std::uint64_t first,
                                                   std::uint32_t least) noexcept {
  constexpr std::uint64_t step = 0x9E3779B97F4A7C15U;
  const __m256i border = _mm256_set1_epi32(static_cast<int>(least));
  const __m256i eight = _mm256_set1_epi64x(static_cast<std::int64_t>(8 * step));
  const auto start = [&](std::uint64_t i) DECANT_AVX2 { return static_cast<std::int64_t>(seed + step * (first + i)); };
  __m256i a = _mm256_setr_epi64x(start(1), start(2), start(5), start(6));
  __m256i b = _mm256_setr_epi64x(start(3), start(4), start(7), start(8));
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < 64; i += 8) {
    const __m256i x = lower_halves(splitmix_upper(a), splitmix_upper(b));
    found |= eight_at_least(both(x, _mm256_srli_epi32(x, 31)), border) << i;
    a = _mm256_add_epi64(a, eight);
    b = _mm256_add_epi64(b, eight);
  }
  return found;
}

}  // namespace avx2

namespace avx512 {

// What is bound by products of 32 bits gains little from wider registers.
using avx2::philox_at_least;
using avx2::philox_word1;
using avx2::splitmix_at_least;

}  // namespace avx512

#endif

}  // namespace decant::math
