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
/// Satisfies Model, ScoringModel and BatchModel. It keeps the tokens and no cache, so every evaluated token costs one
/// call: for tests, toy models and remote ones that take the whole text. The function is called with at least one token
/// and must not depend on anything else. The sequences of BatchModel are beside the text of Model; all forms give their
/// rows in one storage, valid until the next call that evaluates. Misuse: no tokens to evaluate, a sequence that was
/// not started or is dropped, one that stands twice in a pass.
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
    make_rows(1);
    fill(rows_[0], tokens_);
    return rows_[0];
  }

  /// Appends tokens; row(i) follows the i-th of them.
  void score(std::span<const token_id> tokens) {
    const std::size_t before = tokens_.size();
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    make_rows(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) fill(rows_[i], std::span(tokens_).first(before + i + 1));
  }

  /// A row of the last `score` or of the last pass over sequences.
  [[nodiscard]] std::span<float> row(std::size_t i) {
    DECANT_ASSERT(i < row_count_, "row outside the last call");
    return rows_[i];
  }

  [[nodiscard]] std::size_t size() const { return tokens_.size(); }
  [[nodiscard]] std::size_t vocabulary_size() const { return vocabulary_size_; }

  void truncate(std::size_t count) {
    DECANT_ASSERT(count <= tokens_.size(), "truncate cannot grow");
    tokens_.resize(count);
  }

  // ---- many sequences

  /// Makes an empty sequence and returns its number.
  [[nodiscard]] std::size_t start() {
    if (free_.empty()) {
      sequences_.emplace_back();
      return sequences_.size() - 1;
    }
    const std::size_t number = free_.back();
    free_.pop_back();
    sequences_[number].live = true;
    return number;
  }

  /// Makes a sequence with all tokens of another: a copy of them.
  [[nodiscard]] std::size_t fork(std::size_t sequence) {
    static_cast<void>(tokens_of(sequence));
    const std::size_t number = start();
    sequences_[number].tokens = sequences_[sequence].tokens;
    return number;
  }

  /// Ends a sequence; its number and its storage will serve again.
  void drop(std::size_t sequence) {
    tokens_of(sequence).clear();
    sequences_[sequence].live = false;
    free_.push_back(sequence);
  }

  /// Appends the tokens of every item to its sequence; row(i) follows the last of item i. One call an item.
  void evaluate(std::span<const batch_item> items) {
    ++pass_;
    make_rows(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto [number, more] = items[i];
      DECANT_ASSERT(!more.empty(), "evaluate needs a token");
      auto& tokens = tokens_of(number);
      DECANT_ASSERT(sequences_[number].pass != pass_, "a sequence stands twice in one pass");
      sequences_[number].pass = pass_;
      tokens.insert(tokens.end(), more.begin(), more.end());
      fill(rows_[i], tokens);
    }
  }

  [[nodiscard]] std::size_t size(std::size_t sequence) const { return tokens_of(sequence).size(); }

  void truncate(std::size_t sequence, std::size_t count) {
    DECANT_ASSERT(count <= size(sequence), "truncate cannot grow");
    tokens_of(sequence).resize(count);
  }

 private:
  struct held_sequence {
    std::vector<token_id> tokens{};
    bool live = true;
    std::size_t pass = 0;  ///< the last one that it took part in
  };

  [[nodiscard]] const std::vector<token_id>& tokens_of(std::size_t sequence) const {
    DECANT_ASSERT(sequence < sequences_.size() && sequences_[sequence].live, "no such sequence");
    return sequences_[sequence].tokens;
  }
  [[nodiscard]] std::vector<token_id>& tokens_of(std::size_t sequence) {
    return const_cast<std::vector<token_id>&>(std::as_const(*this).tokens_of(sequence));
  }

  /// Rows are kept beyond the count, so that their storage is.
  void make_rows(std::size_t count) {
    if (rows_.size() < count) rows_.resize(count);
    row_count_ = count;
  }

  void fill(std::vector<float>& row, std::span<const token_id> tokens) {
    auto&& logits = function_(tokens);
    row.assign(std::begin(logits), std::end(logits));
    vocabulary_size_ = row.size();
  }

  F function_;
  std::size_t vocabulary_size_;
  std::vector<token_id> tokens_;
  std::vector<held_sequence> sequences_;
  std::vector<std::size_t> free_;
  std::vector<std::vector<float>> rows_;
  std::size_t row_count_ = 0;
  std::size_t pass_ = 0;
};

template <class F>
stateless(F) -> stateless<F>;
template <class F>
stateless(F, std::size_t) -> stateless<F>;

}  // namespace decant
