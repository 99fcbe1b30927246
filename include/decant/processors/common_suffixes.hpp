// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <decant/core/token.hpp>

namespace decant {

/// For every i from 0 to the size: how many tokens the first i of them and all of them have in common at their ends.
///
/// lengths[i] is the longest m for which tokens i - m .. i - 1 are the last m tokens; lengths[size] is the size.
/// Linear: the Z function of the tokens read backwards. Allocates only while `lengths` grows. Reference: Gusfield,
/// "Algorithms on strings, trees, and sequences", 1997, section 1.4.
inline void common_suffixes(std::span<const token_id> tokens, std::vector<std::uint32_t>& lengths) {
  const std::size_t n = tokens.size();
  lengths.assign(n + 1, 0);
  lengths[n] = static_cast<std::uint32_t>(n);
  // [low, high) is the leftmost run of tokens found so far that stands at the end too; before `high` it tells us what
  // to expect, below `low` nothing is known.
  std::size_t low = n, high = n;
  for (std::size_t end = n; end-- > 0;) {
    std::size_t length = 0;
    if (end > low) {
      const std::size_t known = lengths[n - (high - end)];
      length = known < end - low ? known : end - low;
    }
    while (length < end && tokens[end - 1 - length] == tokens[n - 1 - length]) ++length;
    lengths[end] = static_cast<std::uint32_t>(length);
    if (end - length < low) {
      low = end - length;
      high = end;
    }
  }
}

}  // namespace decant
