// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include <decant/core/token.hpp>

namespace decant {

/// Runs of tokens by their first token: of each first token the last `capacity` different ones, newest first.
///
/// Complexity: O(capacity * length) for an insertion, O(1) to look up; memory for the runs held.
/// Reference: Fu, Bailis, Stoica, Zhang 2024 (lookahead decoding), arXiv 2402.02057, section 3.2.
class ngram_pool {
 public:
  explicit ngram_pool(std::size_t capacity) : capacity_(capacity) {}

  /// Remembers a run of at least two tokens as the newest.
  void insert(std::span<const token_id> run) {
    if (run.size() < 2 || capacity_ == 0) return;
    auto& known = runs_[run[0]];
    const auto rest = run.subspan(1);
    auto place = std::ranges::find_if(known, [&](const auto& other) { return std::ranges::equal(other, rest); });
    if (place == known.end() && known.size() < capacity_) place = known.emplace(known.end());
    if (place == known.end()) --place;  // the oldest makes way
    place->assign(rest.begin(), rest.end());
    std::rotate(known.begin(), place, place + 1);
  }

  /// What has followed a token, newest first; valid until the next insertion.
  [[nodiscard]] std::span<const std::vector<token_id>> after(token_id token) const {
    const auto found = runs_.find(token);
    return found == runs_.end() ? std::span<const std::vector<token_id>>() : found->second;
  }

  void clear() { runs_.clear(); }

 private:
  std::size_t capacity_;
  std::unordered_map<token_id, std::vector<std::vector<token_id>>> runs_;
};

}  // namespace decant
