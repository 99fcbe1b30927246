// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <decant/core/concepts.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/law.hpp>
#include <decant/math/sum_tree.hpp>
#include <decant/speculative/chain_drafter.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/foreign_text.hpp>
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
      : text_(model, std::move(decoder), std::move(to_draft)), to_target_(std::move(to_target)) {}

  void propose(const draft_request& request, draft& out) {
    out.set_mode(proposal::deterministic);
    text_.begin(request.context);
    const std::size_t limit = std::min(request.max_depth, request.max_nodes);
    for (std::size_t i = 0; i < limit && text_.has_row(); ++i) {
      text_.law_after(from_, [](std::span<const float> row) { return row; });
      if (from_.empty() || !detail::is_sure(from_, request.min_confidence)) break;
      const draw_stream draws = request.draws.at(request.context.tokens.size() + i);
      text_.append(draw(from_, draws, purpose::draft, static_cast<std::uint32_t>(i), sums_));
    }
    if (text_.appended().empty()) return;
    std::int32_t node = no_parent;
    for (const token_id token : to_target_(text_.appended(), bytes_)) {
      if (out.size() == limit) return;
      node = out.add(token, node);
      if (detail::stops(request, token)) return;
    }
  }

 private:
  detail::foreign_text<M, D> text_;
  retokeniser to_target_;
  std::string bytes_;
  law from_;
  math::sum_tree sums_;
};

}  // namespace decant
