// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/math/sum_tree.hpp>
#include <decant/speculative/chain_drafter.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/following_model.hpp>
#include <decant/speculative/retokeniser.hpp>

namespace decant {

/// Drafts by a model with any other vocabulary, at the level of strings: what it writes is split anew for the target,
/// and accepted as far as the target says the same.
///
/// Effect: the draft model continues the text in its own tokens, as many as the request has room for; the bytes of
/// these become target tokens, a chain. How probable they were is not known, so the proposal is deterministic: it does
/// not depend on any number that verification draws, and is accepted with the probability that the target gives it.
/// The vocabularies need not share a token. The text that was accepted is never split anew: the draft begins at its
/// end.
/// Complexity: the whole text is encoded each round, then one pass of the draft model a token of its own. The model
/// must outlive the drafter and is its alone. Misuse: a decoder with state.
/// Reference: Timor et al., ICML 2025, arXiv 2502.05202, "string-level exact match".
template <Model M, class D>
class string_draft {
 public:
  /// `to_draft` splits the bytes of target tokens for the draft model, `to_target` those of its tokens for the target.
  string_draft(M& model, D decoder, retokeniser to_draft, retokeniser to_target)
      : follower_(model),
        decoder_(std::move(decoder)),
        to_draft_(std::move(to_draft)),
        to_target_(std::move(to_target)) {
    DECANT_ASSERT(!decoder_.keeps_state(), "a decoder with state cannot draft: nobody tells it what was accepted");
  }

  void propose(const draft_request& request, draft& out) {
    out.set_mode(proposal::deterministic);
    const auto tokens = request.context.tokens;
    const std::size_t prompt = to_draft_(tokens.first(request.context.prompt_size), text_).size();
    tokens_ = to_draft_(tokens, text_);
    if (tokens_.empty()) return;
    const std::size_t limit = std::min(request.max_depth, request.max_nodes);
    const std::size_t before = tokens_.size();
    for (std::size_t i = 0; i < limit && follower_.fits(tokens_.size()); ++i) {
      const step_context context = context_after(tokens_, std::min(prompt, tokens_.size()), request.context.draws);
      decoder_.law_of(follower_.row_after(tokens_), context, from_);
      if (from_.empty() || !detail::is_sure(from_, request.min_confidence)) break;
      const draw_stream draws = request.draws.at(tokens.size() + i);
      tokens_.push_back(draw(from_, draws, purpose::draft, static_cast<std::uint32_t>(i), sums_));
    }
    std::int32_t node = no_parent;
    for (const token_id token : to_target_(std::span(tokens_).subspan(before), text_)) {
      if (out.size() == limit) return;
      node = out.add(token, node);
      if (detail::stops(request, token)) return;
    }
  }

 private:
  detail::following_model<M> follower_;
  D decoder_;
  retokeniser to_draft_, to_target_;
  std::string text_;
  std::vector<token_id> tokens_;  // in the draft model's vocabulary
  law from_;
  math::sum_tree sums_;
};

}  // namespace decant
