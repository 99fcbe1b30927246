// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <decant/core/token.hpp>

namespace decant {

/// How often each token occurs in a history: what penalties are computed from.
///
/// A hash table that grows with the history, not with the vocabulary, and keeps its storage from step to step.
class token_counts {
 public:
  struct item {
    token_id id;
    std::uint32_t count;
  };

  /// Counts `tokens` anew. Returns the distinct ones in order of first appearance, valid until the next call. O(size).
  std::span<const item> count(std::span<const token_id> tokens) {
    start(tokens.size());
    for (const token_id token : tokens) ++of(token);
    return items_;
  }

  /// Forgets all counts and makes room for `most` distinct tokens, to count by hand. O(most).
  void start(std::size_t most) {
    std::size_t capacity = 16;
    while (capacity < 2 * most) capacity *= 2;
    slots_.assign(capacity, empty);
    items_.clear();
  }

  /// The count of a token, 0 at first, to be changed; until the next call. No more distinct ones than `start` was told.
  std::uint32_t& of(token_id token) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = (static_cast<std::uint32_t>(token) * std::size_t{0x9E3779B1U}) & mask;
    while (slots_[slot] != empty && items_[slots_[slot]].id != token) slot = (slot + 1) & mask;
    if (slots_[slot] == empty) {
      slots_[slot] = static_cast<std::uint32_t>(items_.size());
      items_.push_back({token, 0});
    }
    return items_[slots_[slot]].count;
  }

  /// The tokens that have been asked about, in order of first appearance; until the next call.
  [[nodiscard]] std::span<const item> items() const { return items_; }

 private:
  static constexpr std::uint32_t empty = 0xFFFFFFFF;
  std::vector<std::uint32_t> slots_;
  std::vector<item> items_;
};

}  // namespace decant
