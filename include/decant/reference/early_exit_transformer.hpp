// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/reference/checkpoint.hpp>
#include <decant/reference/dense_attention.hpp>
#include <decant/reference/eigen_rows.hpp>
#include <decant/reference/kv_cache.hpp>
#include <decant/reference/transformer_pass.hpp>

namespace decant {

/// A Llama-type transformer that can be left early and gone on with: a LayeredModel. Its rows are those of
/// `transformer`, bit for bit, whatever was peeked at before.
///
/// Effect: `peek` runs tokens through the first layers and keeps, beside their keys and values there, the residual
/// state in which each left (the exit query cache of LayerSkip). A pass over tokens that begin with the ones peeked at
/// takes up those states: its first layers run for the rest alone. What was peeked at beyond the common part is
/// forgotten, as it is when the depth changes or tokens held are truncated. A value: copying it forks the sequence.
/// Complexity: as transformer's, per layer that a token goes through. Misuse: as transformer's; a depth that is 0 or
/// beyond the last layer. Reference: Elhoushi et al. 2024, arXiv 2404.16710, section 4.3.
class early_exit_transformer {
 public:
  explicit early_exit_transformer(checkpoint model) : pass_(std::move(model)), cache_(pass_.config()) {}

  std::span<const float> evaluate(std::span<const token_id> tokens) {
    forward(tokens);
    classify(hidden_.bottomRows(1));
    return as_row(std::as_const(logits_).row(0));
  }

  void score(std::span<const token_id> tokens) {
    forward(tokens);
    classify(hidden_);
  }

  /// The logits of what follows the i-th token of the last `score`, or the last of an `evaluate`; as transformer's.
  [[nodiscard]] std::span<const float> row(std::size_t i) const {
    DECANT_ASSERT(index(i) < logits_.rows(), "no row of logits for this token");
    return as_row(logits_.row(index(i)));
  }

  /// Runs tokens through the first `depth` layers, and the last of them through final norm and classifier. Returns its
  /// row, valid until the next call; size() stays. The tokens follow those held, and those peeked at since.
  std::span<const float> peek(std::span<const token_id> tokens, std::size_t depth) {
    DECANT_ASSERT(depth >= 1 && depth <= n_layers(), "the exit must be after one of the layers");
    if (depth != depth_) forget_peeked(0);
    depth_ = depth;
    check(tokens, size_ + peeked_.size());
    run_first_layers(tokens);
    hidden_.resize(1, config().dim);
    pass_.normalise(states_.row(index(peeked_.size()) - 1), hidden_);
    classify(hidden_);
    return as_row(std::as_const(logits_).row(0));
  }

  /// Tokens held.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Tokens peeked at that a pass could go on with.
  [[nodiscard]] std::size_t peeked() const noexcept { return peeked_.size(); }
  [[nodiscard]] std::size_t vocabulary_size() const noexcept {
    return static_cast<std::size_t>(config().vocabulary_size);
  }
  [[nodiscard]] std::size_t sequence_length() const noexcept {
    return static_cast<std::size_t>(config().sequence_length);
  }
  [[nodiscard]] std::size_t n_layers() const noexcept { return static_cast<std::size_t>(config().n_layers); }
  [[nodiscard]] const model_config& config() const noexcept { return pass_.config(); }

  /// Forgets all tokens after the first `length`, and if there are any, what was peeked at.
  void truncate(std::size_t length) {
    DECANT_ASSERT(length <= size_, "cannot truncate to more tokens than are held");
    if (length == size_) return;
    size_ = length;
    forget_peeked(0);
  }

  /// The hidden state of the i-th token of the last call, after the final norm. [dim]
  [[nodiscard]] std::span<const float> hidden(std::size_t i) const {
    DECANT_ASSERT(index(i) < hidden_.rows(), "no hidden state for this token");
    return as_row(hidden_.row(index(i)));
  }

 private:
  static Eigen::Index index(std::size_t number) noexcept { return static_cast<Eigen::Index>(number); }

  void check(std::span<const token_id> tokens, std::size_t before) const {
    DECANT_ASSERT(!tokens.empty(), "no tokens to evaluate");
    DECANT_ASSERT(tokens.size() <= sequence_length() - before, "more tokens than the sequence length allows");
    for (const token_id token : tokens) {
      DECANT_ASSERT(token >= 0 && token < config().vocabulary_size, "token id outside the vocabulary");
    }
  }

  /// Keeps the first `count` tokens peeked at.
  void forget_peeked(std::size_t count) {
    peeked_.resize(count);
    cache_.truncate(size_ + count);
  }

  void forward(std::span<const token_id> tokens) {
    check(tokens, size_);
    const auto common = std::ranges::mismatch(peeked_, tokens);
    forget_peeked(static_cast<std::size_t>(common.in1 - peeked_.begin()));
    if (peeked_.empty()) depth_ = 0;
    if (peeked_.size() < tokens.size()) run_first_layers(tokens.subspan(peeked_.size()));
    const Eigen::Index count = index(tokens.size());
    pass_.begin(count);
    for (Eigen::Index i = 0; i < count; ++i) pass_.place(i, size_ + static_cast<std::size_t>(i)) = states_.row(i);
    for (std::size_t layer = depth_; layer < n_layers(); ++layer) run_layer(layer, size_);
    hidden_.resize(count, config().dim);
    pass_.final_norm(hidden_);
    size_ += tokens.size();
    peeked_.clear();
  }

  /// Adds to what was peeked at: tokens through `depth_` layers (none: their embeddings), states into states_.
  void run_first_layers(std::span<const token_id> tokens) {
    const std::size_t begin = peeked_.size();
    pass_.begin(index(tokens.size()));
    for (std::size_t i = 0; i < tokens.size(); ++i) pass_.embed(index(i), tokens[i], size_ + begin + i);
    for (std::size_t layer = 0; layer < depth_; ++layer) run_layer(layer, size_ + begin);
    peeked_.insert(peeked_.end(), tokens.begin(), tokens.end());
    const Eigen::Index count = index(peeked_.size());
    if (states_.rows() < count) states_.conservativeResize(std::max(count, 2 * states_.rows()), config().dim);
    states_.middleRows(index(begin), index(tokens.size())) = pass_.state();
  }

  /// One layer for the rows of the pass, the first of which is at position `first`.
  void run_layer(std::size_t layer, std::size_t first) {
    pass_.attention(layer, [&](const auto& queries, const auto& keys, const auto& values, const auto& out) {
      kv_layer& cache = cache_.layer(layer);
      cache.append(first, keys.rows());
      cache.keys().bottomRows(keys.rows()) = keys;
      cache.values().bottomRows(keys.rows()) = values;
      if (scratch_.size() < cache.size()) scratch_.resize(2 * cache.size());
      dense_attention(queries, cache, out, scratch_);
    });
    pass_.feed_forward(layer);
  }

  template <class Rows>
  void classify(const Rows& hidden) {
    logits_.resize(hidden.rows(), config().vocabulary_size);
    pass_.classify(hidden, logits_);
  }

  transformer_pass pass_;
  kv_cache cache_;
  std::size_t size_ = 0;

  // What was peeked at: the tokens after those held, and the state of each after depth_ layers (first rows in use).
  std::vector<token_id> peeked_;
  std::size_t depth_ = 0;
  row_matrix states_;

  row_matrix hidden_, logits_;  // of the last call
  Eigen::VectorXf scratch_;     // workspace
};

}  // namespace decant
