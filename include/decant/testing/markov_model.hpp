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
#include <decant/core/token.hpp>

namespace decant::testing {

/// A language model that is a table: the row of logits depends on the last `order` tokens and on nothing else.
///
/// Satisfies Model and ScoringModel. Small enough to enumerate every sequence, so laws can be compared exactly. Rows
/// are const views into the table and stay valid as long as the model. O(order) a token. Missing tokens, at the
/// beginning of a text, count as one more symbol, `start()`. A context is a number in base vocabulary + 1, its last
/// token the lowest digit; row r of the table follows context number r. Misuse: a vocabulary of 0, a table of another
/// size than (vocabulary + 1)^order rows, a token outside the vocabulary.
class markov_model {
 public:
  markov_model(std::size_t vocabulary_size, std::size_t order, std::vector<float> table)
      : vocabulary_size_(vocabulary_size), order_(order), table_(std::move(table)) {
    DECANT_ASSERT(vocabulary_size > 0, "a model needs a vocabulary");
    DECANT_ASSERT(table_.size() == context_count(vocabulary_size, order) * vocabulary_size,
                  "the table needs (vocabulary + 1)^order rows of vocabulary logits");
  }

  /// How many rows the table of such a model has.
  static constexpr std::size_t context_count(std::size_t vocabulary_size, std::size_t order) noexcept {
    std::size_t count = 1;
    for (std::size_t i = 0; i < order; ++i) count *= vocabulary_size + 1;
    return count;
  }

  /// Appends tokens and returns the row after the last.
  std::span<const float> evaluate(std::span<const token_id> tokens) {
    append(tokens);
    return row_after(tokens_);
  }

  /// Appends tokens; row(i) follows the i-th of them.
  void score(std::span<const token_id> tokens) {
    scored_from_ = tokens_.size();
    append(tokens);
    scored_to_ = tokens_.size();
  }

  [[nodiscard]] std::span<const float> row(std::size_t i) const {
    DECANT_ASSERT(scored_from_ + i < scored_to_ && scored_to_ <= tokens_.size(), "row outside the last score call");
    return row_after(std::span<const token_id>(tokens_).first(scored_from_ + i + 1));
  }

  /// The row after any text, whatever the model holds. This is the model as a function: what references are written
  /// with.
  [[nodiscard]] std::span<const float> row_after(std::span<const token_id> tokens) const {
    const auto base = vocabulary_size_ + 1;
    std::size_t context = 0;
    for (std::size_t i = order_; i > 0; --i) {
      const std::size_t symbol = i <= tokens.size() ? checked(tokens[tokens.size() - i]) : start();
      context = context * base + symbol;
    }
    return std::span<const float>(table_).subspan(context * vocabulary_size_, vocabulary_size_);
  }

  [[nodiscard]] std::size_t size() const { return tokens_.size(); }
  [[nodiscard]] std::size_t vocabulary_size() const { return vocabulary_size_; }
  [[nodiscard]] std::size_t order() const { return order_; }

  /// The symbol that stands for a missing token in the number of a context.
  [[nodiscard]] std::size_t start() const { return vocabulary_size_; }

  void truncate(std::size_t count) {
    DECANT_ASSERT(count <= tokens_.size(), "truncate cannot grow");
    tokens_.resize(count);
  }

 private:
  [[nodiscard]] std::size_t checked(token_id token) const {
    DECANT_ASSERT(token >= 0 && static_cast<std::size_t>(token) < vocabulary_size_, "token id outside the vocabulary");
    return static_cast<std::size_t>(token);
  }

  void append(std::span<const token_id> tokens) {
    for (const token_id token : tokens) static_cast<void>(checked(token));
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }

  std::size_t vocabulary_size_, order_;
  std::vector<float> table_;
  std::vector<token_id> tokens_;
  std::size_t scored_from_ = 0, scored_to_ = 0;
};

/// A model with random rows: every distribution over the vocabulary is equally likely (a flat Dirichlet) for spread 1,
/// flatter below, more peaked above. Each token is impossible (-inf) with probability `zeros`, but never all of a row.
/// A pure function of its arguments, the same on every machine.
[[nodiscard]] inline markov_model random_markov_model(std::size_t vocabulary_size, std::size_t order,
                                                      std::uint64_t seed, double spread = 1, double zeros = 0) {
  const std::size_t rows = markov_model::context_count(vocabulary_size, order);
  std::vector<float> table(rows * vocabulary_size);
  for (std::size_t r = 0; r < rows; ++r) {
    const draw_stream draws(seed, r);
    const std::span<float> row = std::span(table).subspan(r * vocabulary_size, vocabulary_size);
    for (std::size_t v = 0; v < vocabulary_size; ++v) {
      // ln of an exponential variable; exponential variables over their sum are a flat Dirichlet.
      const double logit = -spread * draws.gumbel(purpose::user, static_cast<token_id>(v));
      row[v] = draws.chance(zeros, purpose::coin, static_cast<std::uint32_t>(v)) ? gone : static_cast<float>(logit);
    }
    if (std::ranges::all_of(row, is_gone)) row[r % vocabulary_size] = 0;
  }
  return {vocabulary_size, order, std::move(table)};
}

}  // namespace decant::testing
