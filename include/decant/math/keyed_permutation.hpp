// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include <decant/math/splitmix64.hpp>

namespace decant::math {

/// A pseudo-random permutation of 0 .. size - 1 for each seed, which answers for one element without listing the rest.
///
/// A Feistel network of six rounds of SplitMix64 over a grid just larger than the set; what falls outside walks on
/// until it is inside, which is rare from some thousand elements up. O(1), some 20 ns, and no memory. Not a cipher: who
/// sees many answers may find the seed. `size` from 1 to 2^32; asking for an element outside is misuse that is not
/// looked for. Reference: Luby, Rackoff, "How to construct pseudorandom permutations", SIAM J. Comput. 17(2), 1988;
/// Black, Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002 (cycle walking).
class keyed_permutation {
 public:
  constexpr keyed_permutation(std::uint64_t size, std::uint64_t seed) noexcept : size_(size), seed_(seed) {
    const auto bits = static_cast<std::uint64_t>(std::bit_width(size - 1));
    shift_ = std::max(smallest, bits / 2);
    mask_ = (std::uint64_t{1} << shift_) - 1;
    rows_ = std::max(std::uint64_t{1} << smallest, (size + mask_) >> shift_);
  }

  /// Where an element goes.
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t element) const noexcept {
    do {
      element = network(element);
    } while (element >= size_);
    return element;
  }

 private:
  static constexpr std::uint64_t smallest = 4;  // bits a side, so that the sides mix: tiny sets walk longer instead

  [[nodiscard]] constexpr std::uint64_t network(std::uint64_t element) const noexcept {
    std::uint64_t row = element >> shift_, column = element & mask_;
    for (std::uint64_t round = 0; round < 6; round += 2) {
      row = shifted(row, splitmix64(seed_, round << 32 | column) >> 32);
      column ^= splitmix64(seed_, (round + 1) << 32 | row) >> 32 & mask_;
    }
    return row << shift_ | column;
  }

  /// The row that 32 bits lead to.
  [[nodiscard]] constexpr std::uint64_t shifted(std::uint64_t row, std::uint64_t bits) const noexcept {
    row += bits * rows_ >> 32;
    return row < rows_ ? row : row - rows_;
  }

  std::uint64_t size_, seed_, rows_ = 0, mask_ = 0, shift_ = 0;
};

}  // namespace decant::math
