// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <utility>

#include <decant/core/concepts.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/draft_and_verify.hpp>
#include <decant/speculative/exit_threshold.hpp>
#include <decant/speculative/skip_search.hpp>

namespace decant {

struct swift_options {
  skip_search_options search = {};
  exit_threshold_options exit = {};
  std::size_t window = 50;       ///< tokens of the output that a set is judged by
  std::size_t least_window = 8;  ///< no judgement before the output has so many
};

/// SWIFT: Draft & Verify that looks for what to skip while it generates.
///
/// Effect: after each round one more set of sub-layers is judged by how many of the last output tokens it would have
/// written (matchness), and drafts are made with the best one so far; see skip_search for the sets and for when the
/// search ends. What was found stays for the next generations. The search changes drafts and never the law of the
/// output. (The paper also drafts trees of the skipping model's top tokens; this drafts chains.) Refers to the target,
/// which must be the round's, copyable, and outlive this. Complexity: as draft_and_verify; until the search has ended,
/// also a copy of the target and a pass of `window` tokens a round. Errors: parameter_error for options of skip_search
/// and exit_threshold. Misuse: a decoder with state. Reference: Xia et al. 2025, arXiv 2410.06916.
template <SkippableModel M, class D>
  requires std::copy_constructible<M>
class swift {
 public:
  swift(M& target, D decoder, const swift_options& options = {})
      : target_(&target),
        options_(options),
        search_(target.sub_layers(), options.search),
        drafter_(target, std::move(decoder), search_.best(), options.exit) {}

  void propose(const draft_request& request, draft& out) {
    prompt_size_ = request.context.prompt_size;
    drafter_.propose(request, out);
  }

  void feedback(const round_outcome& outcome) {
    drafter_.feedback(outcome);
    const std::size_t held = std::min(target_->size() + 1, outcome.tokens.size());
    if (search_.done() || held <= prompt_size_) return;
    const std::size_t window = std::min(options_.window, held - prompt_size_);
    if (window < options_.least_window || window >= held) return;
    search_.report(matchness(*target_, outcome.tokens.first(held), window, search_.propose()));
    drafter_.set_skip(search_.best());
  }

  [[nodiscard]] const skip_search& search() const noexcept { return search_; }
  [[nodiscard]] const exit_threshold& threshold() const noexcept { return drafter_.threshold(); }

 private:
  M* target_;
  swift_options options_;
  skip_search search_;
  draft_and_verify<M, D> drafter_;
  std::size_t prompt_size_ = 0;
};

}  // namespace decant
