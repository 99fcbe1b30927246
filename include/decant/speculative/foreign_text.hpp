// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/core/token.hpp>
#include <decant/speculative/following_model.hpp>
#include <decant/speculative/retokeniser.hpp>

namespace decant::detail {

/// A text in the tokens of a draft model whose vocabulary is not the target's, and the laws of what that model writes
/// after it. The model is a reference and the drafter's alone. Misuse: a decoder with state.
template <Model M, class D>
class foreign_text {
 public:
  /// `to_draft` splits the bytes of target tokens for the draft model.
  foreign_text(M& model, D decoder, retokeniser to_draft)
      : follower_(model), decoder_(std::move(decoder)), to_draft_(std::move(to_draft)) {
    DECANT_ASSERT(!decoder_.keeps_state(), "a decoder with state cannot draft: nobody tells it what was accepted");
  }

  /// Takes the tokens of a context anew: encodes all of their bytes.
  void begin(const step_context& context) {
    draws_ = context.draws;
    prompt_size_ = to_draft_(context.tokens.first(context.prompt_size), bytes_).size();
    tokens_ = to_draft_(context.tokens, bytes_);
    prompt_size_ = std::min(prompt_size_, tokens_.size());
    taken_ = tokens_.size();
  }

  /// Whether there is a text, and the model has room for it.
  [[nodiscard]] bool has_row() const { return !tokens_.empty() && follower_.fits(tokens_.size()); }

  /// The law of the token after the text, in the draft model's vocabulary: what the decoder makes of `adapt(row)`.
  template <class Adapt>
  void law_after(law& out, Adapt adapt) {
    decoder_.law_of(adapt(follower_.row_after(tokens_)), context_after(tokens_, prompt_size_, draws_), out);
  }

  /// Writes on, in the draft model's tokens.
  void append(token_id token) { tokens_.push_back(token); }

  /// What was appended since begin.
  [[nodiscard]] std::span<const token_id> appended() const { return std::span(tokens_).subspan(taken_); }

 private:
  following_model<M> follower_;
  D decoder_;
  retokeniser to_draft_;
  std::string bytes_;
  std::vector<token_id> tokens_;  // in the draft model's vocabulary
  std::size_t prompt_size_ = 0, taken_ = 0;
  draw_stream draws_;
};

}  // namespace decant::detail
