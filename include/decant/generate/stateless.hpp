// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// Makes a model of any function from all tokens to a row of logits: `stateless{[](std::span<const token_id> tokens)
/// {...}}`.
///
/// Satisfies Model and ScoringModel. It keeps the tokens and no cache, so every evaluated token costs one call: for
/// tests, toy models and remote ones that take the whole text. The function is called with at least one token and must
/// not depend on anything else.
template <class F>
class stateless {
 public:
  /// `vocabulary_size` 0: known once a row has been seen.
  explicit stateless(F function, std::size_t vocabulary_size = 0)
      : function_(std::move(function)), vocabulary_size_(vocabulary_size) {}

  /// Appends tokens and returns the row after the last. One call of the function.
  std::span<float> evaluate(std::span<const token_id> tokens) {
    DECANT_ASSERT(!tokens.empty(), "evaluate needs a token");
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    rows_.resize(1);
    fill(rows_[0], tokens_.size());
    return rows_[0];
  }

  /// Appends tokens; row(i) follows the i-th of them.
  void score(std::span<const token_id> tokens) {
    const std::size_t before = tokens_.size();
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    rows_.resize(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) fill(rows_[i], before + i + 1);
  }

  [[nodiscard]] std::span<float> row(std::size_t i) {
    DECANT_ASSERT(i < rows_.size(), "row outside the last score call");
    return rows_[i];
  }

  [[nodiscard]] std::size_t size() const { return tokens_.size(); }
  [[nodiscard]] std::size_t vocabulary_size() const { return vocabulary_size_; }

  void truncate(std::size_t count) {
    DECANT_ASSERT(count <= tokens_.size(), "truncate cannot grow");
    tokens_.resize(count);
  }

 private:
  void fill(std::vector<float>& row, std::size_t length) {
    auto&& logits = function_(std::span<const token_id>(tokens_).first(length));
    row.assign(std::begin(logits), std::end(logits));
    vocabulary_size_ = row.size();
  }

  F function_;
  std::size_t vocabulary_size_;
  std::vector<token_id> tokens_;
  std::vector<std::vector<float>> rows_;
};

template <class F>
stateless(F) -> stateless<F>;
template <class F>
stateless(F, std::size_t) -> stateless<F>;

}  // namespace decant
