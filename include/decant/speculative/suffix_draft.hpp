// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/math/scalar.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/suffix_automaton.hpp>

namespace decant {

/// How suffix_draft searches and what it proposes.
struct suffix_draft_options {
  std::size_t max_match = 64;  ///< longer matches count as this long
  double factor = 1;           ///< a match of m tokens drafts up to factor * m + offset tokens
  double offset = 0;
  double min_probability = 0.1;  ///< of a path, as the counts estimate it; less probable ones end
  bool tree = false;             ///< several continuations, the most probable first; else one chain
};

/// Drafts what most often followed the end of the text, in the text itself and in a corpus of earlier ones.
///
/// Effect: every suffix of the tokens that occurred before is a match; the more tokens it has, the longer its draft.
/// From a match the draft follows the counts: a token's probability is how often it followed, of all occurrences. Of
/// all matches that with the largest sum of path probabilities is proposed (the expected number of accepted tokens, if
/// the counts are right); among equals the longest, the text's own first. Ties of counts go to the lower id.
/// Deterministic.
/// Complexity: the text's automaton is kept from call to call and follows it: see suffix_automaton. A call then costs
/// O(matches * draft * different continuations), at most max_match matches, and one step a token of max_match in the
/// corpus. The corpus is shared and never changed; separate its texts with no_token.
/// Off: factor = offset = 0. Errors: parameter_error for max_match = 0, NaN or negative factor, offset or probability.
/// Reference: Oliaro et al. 2024 (SuffixDecoding), arXiv 2411.04975; Hu et al. 2024 (SAM decoding), arXiv 2411.10666.
class suffix_draft : public made_or_error<suffix_draft> {
 public:
  static constexpr std::string_view name = "suffix_draft";

  explicit suffix_draft(const suffix_draft_options& options = {},
                        std::shared_ptr<const suffix_automaton> corpus = nullptr)
      : options_(options), corpus_(std::move(corpus)) {
    detail::raise_if(validate(options_, corpus_));
  }

  static std::optional<parameter_fault> validate(const suffix_draft_options& options = {},
                                                 const std::shared_ptr<const suffix_automaton>& = nullptr) {
    if (options.max_match == 0) return parameter_fault{name, "max_match", 0, "must be at least 1"};
    constexpr std::string_view rule = "must be a number >= 0";
    if (!(options.factor >= 0)) return parameter_fault{name, "factor", options.factor, rule};
    if (!(options.offset >= 0)) return parameter_fault{name, "offset", options.offset, rule};
    if (!(options.min_probability >= 0)) {
      return parameter_fault{name, "min_probability", options.min_probability, rule};
    }
    return {};
  }

  void propose(const draft_request& request, draft& out) {
    out.set_mode(proposal::deterministic);
    best_.clear();
    best_score_ = 0;
    own_.follow_text(request.context.tokens);
    try_all(own_, {own_.link(own_.whole()), options_.max_match}, request);
    if (corpus_ != nullptr) {
      suffix_automaton::match match;
      const auto tokens = request.context.tokens;
      for (const token_id token : tokens.last(std::min(options_.max_match, tokens.size()))) {
        match = corpus_->follow(match, token);
      }
      try_all(*corpus_, match, request);
    }
    for (const path_node& n : best_) out.add(n.token, n.parent);
  }

  [[nodiscard]] const suffix_draft_options& options() const { return options_; }
  [[nodiscard]] std::string describe() const {
    return detail::call_text(name, {options_.factor, options_.offset, options_.min_probability});
  }

 private:
  struct path_node {
    token_id token;
    std::int32_t parent;
  };
  struct open_node {
    double probability;  // of the path
    std::size_t order;   // earlier ones first among equals
    suffix_automaton::state at;
    path_node node;
    std::size_t depth;

    bool operator<(const open_node& other) const {
      return probability != other.probability ? probability < other.probability : order > other.order;
    }
  };
  struct next_token {
    std::size_t count;
    token_id token;
    suffix_automaton::state at;
  };

  /// Tries a match and its suffixes; the first may be part of what its state stands for.
  void try_all(const suffix_automaton& automaton, suffix_automaton::match match, const draft_request& request) {
    while (match.at != suffix_automaton::none && match.at != suffix_automaton::root) {
      const suffix_automaton::state shorter = automaton.link(match.at);
      match.length = std::min(match.length, automaton.length(match.at));
      if (automaton.length(shorter) < options_.max_match) {
        follow_counts(automaton, match, request);
        if (score_ > best_score_) {
          best_score_ = score_;
          best_.swap(found_);
        }
      }
      match = {shorter, options_.max_match};
    }
  }

  /// Collects the continuations of a match, the most probable first.
  void follow_counts(const suffix_automaton& automaton, const suffix_automaton::match& match,
                     const draft_request& request) {
    found_.clear();
    open_.clear();
    score_ = 0;
    const double wanted = math::product(options_.factor, static_cast<double>(match.length)) + options_.offset;
    const auto limit = std::min(request.max_nodes, wanted < 1e9 ? static_cast<std::size_t>(wanted) : request.max_nodes);
    if (limit == 0) return;
    order_ = 0;
    open_next(automaton, match.at, 1, no_parent, 0, request);
    while (!open_.empty() && found_.size() < limit) {
      std::pop_heap(open_.begin(), open_.end());
      const open_node taken = open_.back();
      open_.pop_back();
      score_ += taken.probability;
      found_.push_back(taken.node);
      if (std::ranges::find(request.stop_tokens, taken.node.token) != request.stop_tokens.end()) continue;
      open_next(automaton, taken.at, taken.probability, static_cast<std::int32_t>(found_.size()) - 1, taken.depth,
                request);
    }
  }

  void open_next(const suffix_automaton& automaton, suffix_automaton::state at, double probability, std::int32_t parent,
                 std::size_t depth, const draft_request& request) {
    if (depth >= request.max_depth) return;
    next_.clear();
    automaton.visit_next(at, [&](token_id token, suffix_automaton::state to) {
      if (token >= 0) next_.push_back({automaton.count(to), token, to});
    });
    const auto more_frequent = [](const next_token& a, const next_token& b) {
      return a.count != b.count ? a.count > b.count : a.token < b.token;
    };
    if (options_.tree) {
      std::sort(next_.begin(), next_.end(), more_frequent);
    } else if (!next_.empty()) {
      next_[0] = *std::min_element(next_.begin(), next_.end(), more_frequent);
      next_.resize(1);
    }
    for (const next_token& next : next_) {
      const double share = static_cast<double>(next.count) / static_cast<double>(automaton.count(at));
      const double path = math::product(probability, share);
      if (path < options_.min_probability) return;
      open_.push_back({path, order_++, next.at, {next.token, parent}, depth + 1});
      std::push_heap(open_.begin(), open_.end());
    }
  }

  suffix_draft_options options_;
  std::shared_ptr<const suffix_automaton> corpus_;
  suffix_automaton own_;
  std::vector<path_node> found_, best_;
  double score_ = 0, best_score_ = 0;
  std::vector<open_node> open_;  // a heap
  std::vector<next_token> next_;
  std::size_t order_ = 0;
};

}  // namespace decant
