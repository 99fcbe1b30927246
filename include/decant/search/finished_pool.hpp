// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <decant/core/token.hpp>
#include <decant/generate/stopping.hpp>
#include <decant/search/hypothesis_links.hpp>

namespace decant {

/// A hypothesis that has ended.
struct finished_hypothesis {
  hypothesis_link link = root_link;
  double log_prob = 0;
  double diversity = 0;
  double coverage = 0;
  double score = 0;
  finish_reason finish = finish_reason::none;
  token_id end_token = no_token;
};

/// The best of the hypotheses that have ended, best first; of equals the earlier one. Adding is linear in the capacity.
class finished_pool {
 public:
  explicit finished_pool(std::size_t capacity) : capacity_(capacity) { kept_.reserve(capacity + 1); }

  /// Whether a hypothesis of this score would be kept.
  [[nodiscard]] bool keeps(double score) const { return !full() || score > worst(); }

  /// Keeps it, in the place of the worst one if there is no room. It must be worth keeping.
  void add(const finished_hypothesis& ended) {
    const auto place = std::upper_bound(kept_.begin(), kept_.end(), ended,
                                        [](const auto& a, const auto& b) { return a.score > b.score; });
    kept_.insert(place, ended);
    if (kept_.size() > capacity_) kept_.pop_back();
  }

  [[nodiscard]] bool full() const { return kept_.size() == capacity_; }
  /// The score of the worst one kept. There must be one.
  [[nodiscard]] double worst() const { return kept_.back().score; }
  [[nodiscard]] std::span<const finished_hypothesis> kept() const { return kept_; }

 private:
  std::size_t capacity_;
  std::vector<finished_hypothesis> kept_;
};

}  // namespace decant
