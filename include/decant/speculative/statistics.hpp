// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace decant {

/// What speculation came to, by counts; seconds are for information alone.
struct speculation_statistics {
  std::size_t rounds = 0;          ///< passes of the target that decided tokens
  std::size_t drafted_rounds = 0;  ///< those that had a draft to verify
  std::size_t tokens = 0;          ///< tokens decided, before a stop rule may have cut some off
  std::size_t nodes = 0;           ///< drafted tokens, all branches

  // By position in a draft, from 0.
  std::vector<std::size_t> proposed;  ///< rounds whose draft went as far
  std::vector<std::size_t> tried;     ///< those of them in which all tokens before were accepted
  std::vector<std::size_t> accepted;  ///< those in which this one was too

  bool fell_back = false;           ///< drafting was given up because the counts said that it loses
  std::size_t fell_back_after = 0;  ///< after so many tokens

  double draft_seconds = 0;   ///< in the drafter
  double target_seconds = 0;  ///< in the target's passes
  double verify_seconds = 0;  ///< in chains, rules and samplers

  /// How many tokens a pass of the target gave on average: 1 for plain decoding.
  [[nodiscard]] double tokens_per_pass() const {
    return rounds > 0 ? static_cast<double>(tokens) / static_cast<double>(rounds) : 0;
  }

  /// The rate a at which a drafted token is accepted, given that those before it were; 0 before any was tried.
  [[nodiscard]] double acceptance_rate() const {
    const std::size_t trials = sum(tried);
    return trials > 0 ? static_cast<double>(sum(accepted)) / static_cast<double>(trials) : 0;
  }

  /// What drafting one token cost, as a share of a pass of the target, by the clock; 0 before anything was drafted.
  [[nodiscard]] double measured_cost() const {
    const std::size_t depth = sum(proposed);
    if (depth == 0 || !(target_seconds > 0)) return 0;
    return draft_seconds / static_cast<double>(depth) / (target_seconds / static_cast<double>(rounds));
  }

  [[nodiscard]] std::size_t drafted_tokens_accepted() const { return sum(accepted); }
  [[nodiscard]] std::size_t drafted_tokens_tried() const { return sum(tried); }

  /// Counts a round whose draft was `depth` deep.
  void count(std::size_t nodes_drafted, std::size_t depth, std::size_t accepted_tokens, bool rejected) {
    ++rounds;
    drafted_rounds += depth > 0 ? 1U : 0U;
    nodes += nodes_drafted;
    tokens += accepted_tokens + 1;
    const auto add_up_to = [](std::vector<std::size_t>& counts, std::size_t end) {
      if (counts.size() < end) counts.resize(end);
      for (std::size_t i = 0; i < end; ++i) ++counts[i];
    };
    add_up_to(proposed, depth);
    // A draft that is accepted whole may be rare: its place is made when it is first drafted.
    tried.reserve(proposed.size());
    accepted.reserve(proposed.size());
    add_up_to(tried, accepted_tokens + (rejected ? 1 : 0));
    add_up_to(accepted, accepted_tokens);
  }

 private:
  static std::size_t sum(const std::vector<std::size_t>& counts) {
    std::size_t total = 0;
    for (const std::size_t count : counts) total += count;
    return total;
  }
};

}  // namespace decant
