// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <decant/core/listed_row.hpp>

namespace decant::detail {

/// Sorts tokens by logit, the largest first, and by ascending id among equals. Its memory is kept: nothing allocates
/// once it has grown.
///
/// A long list is dealt out by digits of its logits' images, which are integers in the order of floats: from the lowest
/// digit to the highest, each time in the order that the digits before have left. A digit that all share is passed
/// over, so that level rows cost little more than reading them.
class descending_sort {
 public:
  /// Writes the tokens of a list, none of which is gone.
  void operator()(const listed_row& list, std::vector<entry>& out) {
    const std::size_t size = list.size();
    out.resize(size);
    if (size < worth_dealing) {
      for (std::size_t i = 0; i < size; ++i) out[i] = list[i];
      return std::sort(out.begin(), out.end(), before);
    }
    dealt_.resize(size);
    counts_.assign(digits * values, 0);
    ends_.resize(values);
    for (std::size_t i = 0; i < size; ++i) {
      const entry e = out[i] = list[i];
#pragma GCC unroll 3
      for (std::size_t d = 0; d < digits; ++d) ++counts_[d * values + digit_of(e, d)];
    }
    for (std::size_t d = 0; d < digits; ++d) {
      std::uint32_t* counts = counts_.data() + d * values;
      if (counts[digit_of(out[0], d)] == size) continue;
      deal(out, d, counts);
      out.swap(dealt_);
    }
  }

 private:
  static constexpr std::size_t digits = 3, bits = 11, values = std::size_t{1} << bits;
  static constexpr std::size_t worth_dealing = 600;

  /// Deals tokens into dealt_ by a digit, of each value of which there are so many. From both ends towards the middle:
  /// of a digit that nearly all share, one place follows from the one before, and two chains of those run side by side.
  void deal(const std::vector<entry>& from, std::size_t d, std::uint32_t* counts) {
    std::uint32_t* first = counts;
    std::uint32_t place = 0;
    for (std::size_t i = 0; i < values; ++i) {
      const std::uint32_t count = counts[i];
      first[i] = place;
      ends_[i] = place += count;
    }
    std::size_t front = 0, back = from.size();
    while (front + 1 < back) {
      const entry low = from[front++], high = from[--back];
      dealt_[first[digit_of(low, d)]++] = low;
      dealt_[--ends_[digit_of(high, d)]] = high;
    }
    if (front < back) dealt_[first[digit_of(from[front], d)]] = from[front];
  }

  /// A digit of an integer that is the larger the smaller a logit is; both zeros have the same.
  static std::size_t digit_of(const entry& e, std::size_t d) noexcept {
    const auto raw = std::bit_cast<std::uint32_t>(e.logit);
    const std::uint32_t negative = raw >> 31, image = (raw ^ (0x7FFFFFFFU & (negative - 1))) - negative;
    return image >> (bits * d) & (values - 1);
  }

  std::vector<std::uint32_t> counts_, ends_;
  std::vector<entry> dealt_;
};

}  // namespace decant::detail
