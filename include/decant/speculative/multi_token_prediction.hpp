// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include <decant/core/concepts.hpp>
#include <decant/core/token.hpp>
#include <decant/speculative/chain_drafter.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/head_rows.hpp>

namespace decant {

/// Multi-token prediction: draws each token of the draft from its own head, by a decoder. Needs a HeadedModel as
/// target.
///
/// Effect: the law of the i-th token is the decoder's of head i's row, in the context that the tokens drafted so far
/// make; the heads themselves do not see those, which costs acceptance and no exactness, since every law that a token
/// was truly drawn from may be verified. The chain ends with the heads, and as chains do: below min_confidence, at a
/// stop token. With a decoder that takes the argmax the proposal is deterministic (blockwise_heads).
/// Complexity: each head once a round, the decoder once a token. Misuse: a decoder with state.
/// Reference: Gloeckle, Idrissi, Rozière, Lopez-Paz, Synnaeve, "Better & faster large language models via multi-token
/// prediction", ICML 2024, arXiv 2404.19737.
template <class D>
class multi_token_prediction {
 public:
  explicit multi_token_prediction(D decoder) : chain_(std::move(decoder)) {}

  template <HeadedModel M>
  void observe(M& model, std::span<const std::size_t> rows) {
    rows_.observe(model, rows);
  }

  void propose(const draft_request& request, draft& out) {
    const std::size_t size = request.context.tokens.size();
    chain_.run(request, out, request.min_confidence,
               [&](std::span<const token_id> history) { return rows_.row(history.size() - size + 1); });
  }

  void reset() noexcept { rows_.reset(); }

 private:
  detail::chain_drafter<D> chain_;
  detail::head_rows rows_;
};

}  // namespace decant
