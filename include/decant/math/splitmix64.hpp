// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace decant::math {

/// Number `index` of the SplitMix64 sequence of a seed: 64 bits, a pure function, about 1 ns.
///
/// For one number a token under a key that Philox has made: where a Philox block a token would cost too much.
/// Equidistributed over the indices of one seed; seeds themselves should be well mixed.
/// Reference: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
constexpr std::uint64_t splitmix64(std::uint64_t seed, std::uint64_t index) noexcept {
  std::uint64_t x = seed + 0x9E3779B97F4A7C15U * (index + 1);
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9U;
  x = (x ^ x >> 27) * 0x94D049BB133111EBU;
  return x ^ x >> 31;
}

}  // namespace decant::math
