// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

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

  /// Tables for each_below, kept from one permutation to the next.
  struct workspace {
    std::vector<std::int32_t> shifts, turns;
  };

  /// Calls f(element) for every element that goes below `bound` (at most `size`), in no particular order. What asking
  /// each element is told by six hashes, this looks up: the rounds backwards from where elements go, over a table a
  /// round. Some ns a call of f; `size` up to 2^31.
  template <class F>
  void each_below(std::uint64_t bound, workspace& tables, F f) const {
    const std::size_t columns = mask_ + 1, rows = rows_;
    tables.shifts.resize(3 * columns);
    tables.turns.resize(3 * rows);
    for (std::uint64_t round = 0; round < 6; round += 2) {
      std::int32_t *shifts = tables.shifts.data() + round / 2 * columns,
                   *turns = tables.turns.data() + round / 2 * rows;
      for (std::uint64_t c = 0; c < columns; ++c) shifts[c] = static_cast<std::int32_t>(shift_of(round, c));
      for (std::uint64_t r = 0; r < rows; ++r) turns[r] = static_cast<std::int32_t>(turn_of(round + 1, r));
    }
    const std::int32_t *shifts = tables.shifts.data(), *turns = tables.turns.data();
    const auto count = static_cast<std::int32_t>(rows_), last = static_cast<std::int32_t>(bound >> shift_);
    const auto back = [&](std::int32_t row, std::int32_t shift) {
      row -= shift;
      return row + (row >> 31 & count);
    };
    /// The element that comes to a row and to a column that is yet to be turned for the last time.
    const auto origin = [&](std::int32_t row, std::int32_t column) {
      row = back(row, shifts[2 * columns + static_cast<std::size_t>(column)]);
      column ^= turns[rows + static_cast<std::size_t>(row)];
      row = back(row, shifts[columns + static_cast<std::size_t>(column)]);
      column ^= turns[static_cast<std::size_t>(row)];
      row = back(row, shifts[static_cast<std::size_t>(column)]);
      return static_cast<std::uint64_t>(row) << shift_ | static_cast<std::uint64_t>(column);
    };
    const std::uint64_t all = rows_ << shift_;
    for (std::int32_t column = 0; column < static_cast<std::int32_t>(columns); ++column) {
      for (std::int32_t row = 0; row < last; ++row) {
        const std::uint64_t element = origin(row, column);
        if (element < size_) f(element);
      }
    }
    for (std::uint64_t answer = bound & ~mask_; answer < bound; ++answer) {
      const auto column = static_cast<std::int32_t>(answer & mask_) ^ turns[2 * rows + static_cast<std::size_t>(last)];
      const std::uint64_t element = origin(last, column);
      if (element < size_) f(element);
    }
    // What leaves the set walks on until it is back.
    for (std::uint64_t outside = size_; outside < all; ++outside) {
      const auto row = static_cast<std::int32_t>(outside >> shift_);
      const auto column = static_cast<std::int32_t>(outside & mask_) ^ turns[2 * rows + static_cast<std::size_t>(row)];
      const std::uint64_t element = origin(row, column);
      if (element < size_ && (*this)(element) < bound) f(element);
    }
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
      row += shift_of(round, column);
      if (row >= rows_) row -= rows_;
      column ^= turn_of(round + 1, row);
    }
    return row << shift_ | column;
  }

  /// By how many rows an element of a column goes on in a round, and what turns the column of one of a row.
  [[nodiscard]] constexpr std::uint64_t shift_of(std::uint64_t round, std::uint64_t column) const noexcept {
    return (splitmix64(seed_, round << 32 | column) >> 32) * rows_ >> 32;
  }
  [[nodiscard]] constexpr std::uint64_t turn_of(std::uint64_t round, std::uint64_t row) const noexcept {
    return splitmix64(seed_, round << 32 | row) >> 32 & mask_;
  }

  std::uint64_t size_, seed_, rows_ = 0, mask_ = 0, shift_ = 0;
};

}  // namespace decant::math
