// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/math/sum_tree.hpp>
#include <decant/speculative/chain_drafter.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/foreign_text.hpp>
#include <decant/speculative/retokeniser.hpp>
#include <decant/speculative/vocabulary_map.hpp>

namespace decant {

/// Drafts by a model with another vocabulary, at the level of tokens: from its law over what both vocabularies hold.
///
/// Effect: the text is tokenised anew for the draft model. Its row, without the tokens that the target does not have,
/// goes through the drafter's own decoder; the law, renamed, is a law over target tokens, from which the chain is drawn
/// and which it carries: verification is lossless. With equal vocabularies it drafts as draft_model does. The chain
/// also ends where no common token is left, and as chains do: below min_confidence, at a stop token, on a bad row, at
/// the end of the draft model's context.
/// Complexity: the whole text is encoded each round; then one pass of the draft model and one copied row a token. The
/// model must outlive the drafter and is its alone. Misuse: a decoder with state, a model whose vocabulary is not that
/// of the map.
/// Reference: Timor et al., ICML 2025, arXiv 2502.05202, "token-level intersection".
template <Model M, class D>
class intersection_draft {
 public:
  /// `to_draft` splits the bytes of target tokens for the draft model, and must split a longer text so that a text
  /// before it is still the beginning wherever it can.
  intersection_draft(M& model, D decoder, vocabulary_map map, retokeniser to_draft)
      : text_(model, std::move(decoder), std::move(to_draft)), map_(std::move(map)) {}

  void propose(const draft_request& request, draft& out) {
    out.set_mode(proposal::with_replacement);
    text_.begin(request.context);
    std::int32_t node = no_parent;
    for (std::size_t depth = 0; depth < std::min(request.max_depth, request.max_nodes) && text_.has_row(); ++depth) {
      law& from = out.children_law(node);
      text_.law_after(drafted_, [this](std::span<const float> row) { return common_row(row); });
      rename(drafted_, from);
      if (from.empty()) return;
      if (!detail::is_sure(from, request.min_confidence)) return from.clear();
      const draw_stream draws = request.draws.at(request.context.tokens.size() + depth);
      const token_id token = draw(from, draws, purpose::draft, 0, sums_);
      node = out.add(token, node);
      if (detail::stops(request, token)) return;
      text_.append(map_.to_draft(token));
    }
  }

 private:
  std::span<const float> common_row(std::span<const float> row) {
    DECANT_ASSERT(row.size() == map_.draft_size(), "the draft model's vocabulary is not that of the map");
    row_.assign(row.begin(), row.end());
    for (std::size_t i = 0; i < row_.size(); ++i) {
      if (map_.to_target(static_cast<token_id>(i)) == no_token) row_[i] = gone;
    }
    return row_;
  }

  /// The law of target tokens: tokens with the same bytes become one.
  void rename(const law& from, law& out) {
    renamed_.clear();
    for (std::size_t i = 0; i < from.size(); ++i) renamed_.emplace_back(map_.to_target(from.ids[i]), from.weights[i]);
    std::ranges::stable_sort(renamed_, {}, [](const auto& token) { return token.first; });
    out.clear();
    for (const auto& [token, weight] : renamed_) {
      if (!out.ids.empty() && out.ids.back() == token) {
        out.weights.back() += weight;
      } else {
        out.ids.push_back(token);
        out.weights.push_back(weight);
      }
    }
    out.total = sum_of_weights(out.weights);
  }

  detail::foreign_text<M, D> text_;
  vocabulary_map map_;
  std::vector<float> row_;
  law drafted_;
  std::vector<std::pair<token_id, double>> renamed_;
  math::sum_tree sums_;
};

}  // namespace decant
