// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/generate/output.hpp>
#include <decant/speculative/chain_drafter.hpp>
#include <decant/speculative/draft.hpp>

namespace decant {

/// LayerSkip's self-speculation: the target drafts by leaving after some of its layers, through its own classifier.
///
/// Effect: a chain drawn from early rows, as LayeredModel peeks at them. The target holds what it held before; when it
/// is then given the draft, it goes on from the states in which its first layers left those tokens, so the first layers
/// run once for each of them. Depth n_layers() drafts what the target would have drawn, and is accepted. The chain ends
/// below min_confidence and at a stop token. Refers to the target, which must be the round's and outlive this; whatever
/// the depth, the rule that verifies keeps the target's law. Pays off with models that were trained with early exits;
/// any others draft badly. Complexity: a pass through `depth` layers, and the classifier, for each token of the draft.
/// Misuse: a depth that is 0 or beyond the last layer, a decoder with state.
/// Reference: Elhoushi et al., "LayerSkip: enabling early exit inference and self-speculative decoding", ACL 2024,
/// arXiv 2404.16710.
template <LayeredModel M, class D>
class layer_skip {
 public:
  layer_skip(M& target, D decoder, std::size_t depth) : target_(&target), chain_(std::move(decoder)), depth_(depth) {
    DECANT_ASSERT(depth >= 1 && depth <= target.n_layers(), "the exit must be after one of the layers");
  }

  void propose(const draft_request& request, draft& out) {
    std::size_t seen = target_->size();
    DECANT_ASSERT(seen < request.context.tokens.size(), "a draft begins where a token waits for its pass");
    chain_.run(request, out, request.min_confidence, [&](std::span<const token_id> history) -> std::span<const float> {
      const auto more = history.subspan(seen);
      seen = history.size();
      return detail::without_padding(*target_, target_->peek(more, depth_));
    });
  }

  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }

 private:
  M* target_;
  detail::chain_drafter<D> chain_;
  std::size_t depth_;
};

}  // namespace decant
