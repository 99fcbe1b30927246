// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/errors.hpp>
#include <decant/reference/token_heads.hpp>
#include <decant/reference/transformer.hpp>

namespace decant {

/// A transformer with heads for later tokens: a HeadedModel. In all else it is the transformer.
///
/// head_row runs one head's blocks and the classifier; nothing runs for heads that are not asked for.
class headed_transformer : public transformer {
 public:
  /// Misuse: heads of another width than the model's.
  headed_transformer(transformer model, token_heads heads) : transformer(std::move(model)), heads_(std::move(heads)) {
    DECANT_ASSERT(heads_.dim() == config().dim, "the heads were made for a model of another width");
    state_.resize(static_cast<std::size_t>(config().dim));
    logits_.resize(vocabulary_size());
  }

  [[nodiscard]] std::size_t head_count() const noexcept { return heads_.count(); }
  [[nodiscard]] const token_heads& heads() const noexcept { return heads_; }

  /// What head `head` (from 1) says of the token `head` places after the one that follows the i-th of the last pass:
  /// [vocabulary_size], valid until the next call.
  [[nodiscard]] std::span<const float> head_row(std::size_t head, std::size_t i) {
    heads_.apply(head, hidden(i), state_);
    classify(state_, logits_);
    return logits_;
  }

 private:
  token_heads heads_;
  std::vector<float> state_, logits_;
};

}  // namespace decant
