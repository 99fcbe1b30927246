// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include <decant/math/splitmix64.hpp>

namespace decant::math {

/// A pseudo-random permutation of 0 .. size - 1 for each seed, which answers for one element without listing the rest.
///
/// A Feistel network over the next power of two; what falls outside walks on until it is inside, fewer than two steps
/// on average from 256 elements up. O(1) and no memory, some 10 ns an element. Not a cipher: who sees many answers may
/// find the seed. `size` from 1 to 2^32; asking for an element outside is misuse that is not looked for.
/// Reference: Luby, Rackoff, "How to construct pseudorandom permutations", SIAM J. Comput. 17(2), 1988; Black, Rogaway,
/// "Ciphers with arbitrary finite domains", CT-RSA 2002 (cycle walking).
class keyed_permutation {
 public:
  constexpr keyed_permutation(std::uint64_t size, std::uint64_t seed) noexcept : size_(size), seed_(seed) {
    const auto bits = std::max(smallest, static_cast<std::uint64_t>(std::bit_width(size - 1)));
    low_bits_ = bits / 2;
    high_mask_ = (std::uint64_t{1} << (bits - low_bits_)) - 1;
  }

  /// Where an element goes.
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t element) const noexcept {
    do {
      element = network(element);
    } while (element >= size_);
    return element;
  }

 private:
  static constexpr std::uint64_t smallest = 8;  // bits, so that two halves mix: tiny sets walk a little longer instead
  static constexpr std::uint64_t rounds = 6;

  [[nodiscard]] constexpr std::uint64_t network(std::uint64_t element) const noexcept {
    const std::uint64_t low_mask = (std::uint64_t{1} << low_bits_) - 1;
    std::uint64_t low = element & low_mask, high = element >> low_bits_;
    for (std::uint64_t round = 0; round < rounds; round += 2) {
      high ^= splitmix64(seed_, round << 32 | low) >> 32 & high_mask_;
      low ^= splitmix64(seed_, (round + 1) << 32 | high) >> 32 & low_mask;
    }
    return high << low_bits_ | low;
  }

  std::uint64_t size_, seed_, low_bits_ = 0, high_mask_ = 0;
};

}  // namespace decant::math
