// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/token.hpp>
#include <decant/math/scalar.hpp>
#include <decant/testing/reference_law.hpp>

#include "search/models.hpp"

// Search by its definition: whole sequences, copied at every step, over all tokens, with libm.

namespace search_test {

struct naive_hypothesis {
  ids tokens{};
  double log_prob = 0;
  double score = 0;
};

/// Whether the one at a place has the score of a neighbour but for rounding. A table's rows come again and again, so
/// that two texts may have the same probability, and the order in which it was summed up decides between them.
inline bool is_tied(const std::vector<naive_hypothesis>& all, std::size_t place) {
  const auto close = [&](std::size_t other) { return std::abs(all[other].score - all[place].score) < 1e-9; };
  return (place > 0 && close(place - 1)) || (place + 1 < all.size() && close(place + 1));
}

/// By a number, the greatest first; equal ones stay in their order. (With libstdc++ 12, clang warns of
/// std::stable_sort.)
inline void sort_best_first(std::vector<naive_hypothesis>& all, double naive_hypothesis::* number) {
  std::vector<naive_hypothesis> sorted;
  for (naive_hypothesis& one : all) {
    const auto place = std::upper_bound(sorted.begin(), sorted.end(), one,
                                        [&](const auto& a, const auto& b) { return a.*number > b.*number; });
    sorted.insert(place, std::move(one));
  }
  all = std::move(sorted);
}

using score_function = std::function<double(double log_prob, std::size_t length)>;

struct naive_search {
  row_function rows{};
  ids prompt{};
  ids ends{};
  std::size_t length = 1;  // maximum, in new tokens
  std::size_t least = 0;   // new tokens before an end
  score_function score = [](double log_prob, std::size_t) { return log_prob; };

  [[nodiscard]] bool is_end(token_id token) const { return std::ranges::find(ends, token) != ends.end(); }

  /// The log-probability of every token after some output; -inf for those that may not come.
  [[nodiscard]] std::vector<double> log_law(const ids& output) const {
    ids text = prompt;
    text.insert(text.end(), output.begin(), output.end());
    std::vector<double> law = decant::testing::reference::exact_law(rows(text));
    for (double& p : law) {
      if (p > 0) {
        p = std::log(p);
      } else {
        p = decant::testing::reference::minus_infinity;
      }
    }
    if (output.size() < least) {
      for (const token_id end : ends) law[static_cast<std::size_t>(end)] = decant::testing::reference::minus_infinity;
    }
    return law;
  }

  /// Every output that ends, or has the maximum length, best score first.
  [[nodiscard]] std::vector<naive_hypothesis> all() const {
    std::vector<naive_hypothesis> found;
    enumerate({}, found);
    sort_best_first(found, &naive_hypothesis::score);
    return found;
  }

  enum class stop { first_n, heuristic, exact, never };

  /// What a beam of some width keeps. `patience` times the width is how many first_n waits for.
  [[nodiscard]] std::vector<naive_hypothesis> beam(std::size_t width, stop when, double patience = 1) const {
    std::vector<naive_hypothesis> live(1), finished;
    std::size_t count = 0;
    for (std::size_t t = 1; t <= length && !live.empty(); ++t) {
      std::vector<naive_hypothesis> candidates;
      for (const naive_hypothesis& parent : live) {
        for (naive_hypothesis& child : children(parent)) candidates.push_back(std::move(child));
      }
      sort_best_first(candidates, &naive_hypothesis::log_prob);
      candidates.resize(std::min(candidates.size(), std::max<std::size_t>(2, 1 + ends.size()) * width));
      live.clear();
      for (std::size_t rank = 0; rank < candidates.size(); ++rank) {
        naive_hypothesis& candidate = candidates[rank];
        if (!is_end(candidate.tokens.back()) && t < length) {
          if (live.size() < width) live.push_back(candidate);
        } else if (rank < width) {
          finished.push_back(candidate);
          ++count;
        }
      }
      sort_best_first(finished, &naive_hypothesis::score);
      finished.resize(std::min(finished.size(), width));
      if (when == stop::first_n && static_cast<double>(count) >= patience * static_cast<double>(width)) break;
      if (finished.size() < width || live.empty()) continue;
      if (when == stop::heuristic && score(live[0].log_prob, t) <= finished.back().score) break;
      if (when == stop::exact && attainable(live, t) <= finished.back().score) break;
    }
    return finished;
  }

 private:
  [[nodiscard]] std::vector<naive_hypothesis> children(const naive_hypothesis& parent) const {
    std::vector<naive_hypothesis> list;
    const std::vector<double> law = log_law(parent.tokens);
    for (std::size_t v = 0; v < law.size(); ++v) {
      if (!decant::math::is_finite(law[v])) continue;
      naive_hypothesis child = parent;
      child.tokens.push_back(static_cast<token_id>(v));
      child.log_prob += law[v];
      child.score = score(child.log_prob, child.tokens.size());
      list.push_back(std::move(child));
    }
    return list;
  }

  void enumerate(const naive_hypothesis& parent, std::vector<naive_hypothesis>& found) const {
    for (const naive_hypothesis& child : children(parent)) {
      if (is_end(child.tokens.back()) || child.tokens.size() == length) {
        found.push_back(child);
      } else {
        enumerate(child, found);
      }
    }
  }

  /// The best score that a live hypothesis can still end with, if all its further tokens were certain.
  [[nodiscard]] double attainable(const std::vector<naive_hypothesis>& live, std::size_t now) const {
    double best = decant::testing::reference::minus_infinity;
    for (const naive_hypothesis& one : live) {
      for (std::size_t t = now; t <= length; ++t) best = std::max(best, score(one.log_prob, t));
    }
    return best;
  }
};

}  // namespace search_test
