// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>

namespace decant::testing {

/// A HiddenStateModel of two functions of all tokens: one to a row of logits, one to the hidden state of the last
/// token, both to a std::vector<float>. For methods that look at hidden states, as `stateless` is for those that do
/// not.
///
/// Counts its passes and the tokens in them. Keeps the tokens and no cache. Misuse: no tokens to evaluate, a sequence
/// that is not live or stands twice in a pass, a row or hidden state that the last pass did not make.
template <class Row, class Hidden>
class hidden_state_model {
 public:
  hidden_state_model(std::size_t vocabulary_size, Row row, Hidden hidden)
      : vocabulary_size_(vocabulary_size), row_of_(std::move(row)), hidden_of_(std::move(hidden)) {}

  [[nodiscard]] std::size_t start() { return add({}); }
  [[nodiscard]] std::size_t fork(std::size_t sequence) { return add(held(sequence).tokens); }
  void drop(std::size_t sequence) { held(sequence).live = false; }

  void evaluate(std::span<const batch_item> items) {
    ++passes_;
    rows_.clear();
    hidden_.clear();
    for (const batch_item& item : items) {
      text& sequence = held(item.sequence);
      DECANT_ASSERT(!item.tokens.empty(), "evaluate needs a token");
      DECANT_ASSERT(std::exchange(sequence.pass, passes_) != passes_, "a sequence stands twice in one pass");
      auto& states = hidden_.emplace_back();
      for (const token_id token : item.tokens) {
        sequence.tokens.push_back(token);
        states.push_back(hidden_of_(std::span<const token_id>(sequence.tokens)));
      }
      rows_.push_back(row_of_(std::span<const token_id>(sequence.tokens)));
      evaluated_ += item.tokens.size();
    }
  }

  [[nodiscard]] std::span<const float> row(std::size_t i) const {
    DECANT_ASSERT(i < rows_.size(), "row outside the last pass");
    return rows_[i];
  }
  [[nodiscard]] std::span<const float> hidden(std::size_t i, std::size_t j) const {
    DECANT_ASSERT(i < hidden_.size() && j < hidden_[i].size(), "hidden state outside the last pass");
    return hidden_[i][j];
  }

  void truncate(std::size_t sequence, std::size_t count) {
    DECANT_ASSERT(count <= size(sequence), "truncate cannot grow");
    held(sequence).tokens.resize(count);
  }
  [[nodiscard]] std::size_t size(std::size_t sequence) const {
    return const_cast<hidden_state_model&>(*this).held(sequence).tokens.size();
  }
  [[nodiscard]] std::size_t vocabulary_size() const { return vocabulary_size_; }

  [[nodiscard]] std::size_t passes() const { return passes_; }
  [[nodiscard]] std::size_t evaluated() const { return evaluated_; }  ///< tokens, over all passes
  /// Sequences that are live.
  [[nodiscard]] std::size_t sequences() const {
    std::size_t count = 0;
    for (const text& sequence : texts_) count += sequence.live ? 1 : 0;
    return count;
  }

 private:
  struct text {
    std::vector<token_id> tokens;
    bool live = true;
    std::size_t pass = 0;  ///< the last one that it took part in
  };

  std::size_t add(std::vector<token_id> tokens) {
    texts_.push_back({std::move(tokens)});
    return texts_.size() - 1;
  }

  text& held(std::size_t sequence) {
    DECANT_ASSERT(sequence < texts_.size() && texts_[sequence].live, "no such sequence");
    return texts_[sequence];
  }

  std::size_t vocabulary_size_;
  Row row_of_;
  Hidden hidden_of_;
  std::vector<text> texts_;
  std::vector<std::vector<float>> rows_;
  std::vector<std::vector<std::vector<float>>> hidden_;
  std::size_t passes_ = 0, evaluated_ = 0;
};

}  // namespace decant::testing
