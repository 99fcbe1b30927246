// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <decant/core/token.hpp>

namespace decant {

/// How often each token occurs in a history: what penalties are computed from.
///
/// A hash table that grows with the history, not with the vocabulary, and keeps its storage from step to step. It
/// remembers what it has counted: a history that goes on costs its new tokens and a comparison, and the same one costs
/// the comparison alone.
class token_counts {
 public:
  struct item {
    token_id id;
    std::uint32_t count;
  };

  /// How often each token occurs in `tokens`: the distinct ones in order of first appearance, valid until the next
  /// call. O(size).
  std::span<const item> count(std::span<const token_id> tokens) {
    const bool goes_on = !counted_.empty() && counted_.size() <= tokens.size() &&
                         std::equal(counted_.begin(), counted_.end(), tokens.begin());
    if (!goes_on) {
      start(tokens.size());
    } else if (slots_.size() < 2 * tokens.size()) {
      make_slots(tokens.size());
      for (std::uint32_t i = 0; i < items_.size(); ++i) slots_[slot_of(items_[i].id)] = i;
    }
    if (counted_.capacity() < tokens.size()) counted_.reserve(2 * tokens.size());
    const auto fresh = tokens.subspan(counted_.size());
    for (const token_id token : fresh) ++count_of(token);
    counted_.insert(counted_.end(), fresh.begin(), fresh.end());
    return items_;
  }

  /// Forgets all counts and makes room for `most` distinct tokens, to count by hand. O(most).
  void start(std::size_t most) {
    make_slots(most);
    items_.clear();
    counted_.clear();
  }

  /// The count of a token, 0 at first, to be changed; until the next call. No more distinct ones than `start` was told.
  std::uint32_t& of(token_id token) {
    counted_.clear();  // what has been changed by hand is no count to go on from
    return count_of(token);
  }

  /// The tokens that have been asked about, in order of first appearance; until the next call.
  [[nodiscard]] std::span<const item> items() const { return items_; }

 private:
  static constexpr std::uint32_t empty = 0xFFFFFFFF;

  void make_slots(std::size_t most) {
    std::size_t capacity = 16;
    while (capacity < 2 * most) capacity *= 2;
    slots_.assign(capacity, empty);
  }

  std::uint32_t& count_of(token_id token) {
    const std::size_t slot = slot_of(token);
    if (slots_[slot] == empty) {
      slots_[slot] = static_cast<std::uint32_t>(items_.size());
      items_.push_back({token, 0});
    }
    return items_[slots_[slot]].count;
  }

  /// Where a token is, or would be.
  [[nodiscard]] std::size_t slot_of(token_id token) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = (static_cast<std::uint32_t>(token) * std::size_t{0x9E3779B1U}) & mask;
    while (slots_[slot] != empty && items_[slots_[slot]].id != token) slot = (slot + 1) & mask;
    return slot;
  }

  std::vector<std::uint32_t> slots_;
  std::vector<item> items_;
  std::vector<token_id> counted_;  // what they have been counted in, unless by hand
};

}  // namespace decant
