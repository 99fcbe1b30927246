// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/generate/output.hpp>
#include <decant/speculative/chain_drafter.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/exit_threshold.hpp>

namespace decant {

namespace detail {

/// The tokens of a text that a model does not hold yet.
inline std::span<const token_id> not_held(std::span<const token_id> tokens, std::size_t held) {
  DECANT_ASSERT(held < tokens.size(), "a draft begins where a token waits for its pass");
  return tokens.subspan(held);
}

/// Takes a model back to the tokens that it held, however the scope is left.
template <class M>
class as_found {
 public:
  explicit as_found(M& model) : model_(model), size_(model.size()) {}
  as_found(const as_found&) = delete;
  as_found& operator=(const as_found&) = delete;
  ~as_found() { model_.truncate(size_); }

 private:
  M& model_;
  std::size_t size_;
};

}  // namespace detail

/// Draft & Verify, self-speculation by layer skipping: the target drafts itself, without some of its sub-layers.
///
/// Effect: drafts on the target's own cache and leaves the target as it found it; only the tokens of the draft lack the
/// skipped parts, and verification makes their keys and values anew. The chain ends where the largest probability of a
/// row (before the decoder) is below the exit threshold, which follows the acceptance rate: see exit_threshold. Nothing
/// to skip: the draft is what the target itself would have drawn, and is accepted.
/// Refers to the target, which must be the round's and outlive this; whatever is skipped, the rule that verifies keeps
/// the target's law.
/// Complexity: a pass without the skipped parts for each token of the draft.
/// Errors: parameter_error for options of exit_threshold. Misuse: flags that are not one a sub-layer, a decoder with
/// state.
/// Reference: Zhang, Wang, Li, Shou, Chen, Chen, Mehrotra, "Draft & Verify: lossless large language model acceleration
/// via self-speculative decoding", ACL 2024, arXiv 2309.08168.
template <SkippableModel M, class D>
class draft_and_verify {
 public:
  draft_and_verify(M& target, D decoder, std::vector<bool> skip, const exit_threshold_options& options = {})
      : target_(&target), chain_(std::move(decoder)), threshold_(options) {
    set_skip(std::move(skip));
  }

  void propose(const draft_request& request, draft& out) {
    const detail::as_found restore(*target_);
    chain_.run(request, out, std::max(threshold_.value(), request.min_confidence),
               [&](std::span<const token_id> history) -> std::span<const float> {
                 const auto waiting = detail::not_held(history, target_->size());
                 return detail::without_padding(*target_, target_->evaluate_skipping(waiting, skip_));
               });
  }

  void feedback(const round_outcome& outcome) { threshold_.update(outcome.accepted(), outcome.proposed); }

  /// Which sub-layers the draft leaves out, as SkippableModel counts them.
  void set_skip(std::vector<bool> skip) {
    DECANT_ASSERT(skip.size() == target_->sub_layers(), "skip needs one flag a sub-layer");
    skip_ = std::move(skip);
  }
  [[nodiscard]] const std::vector<bool>& skip() const noexcept { return skip_; }
  [[nodiscard]] const exit_threshold& threshold() const noexcept { return threshold_; }

 private:
  M* target_;
  detail::chain_drafter<D> chain_;
  exit_threshold threshold_;
  std::vector<bool> skip_;
};

}  // namespace decant
