// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
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
/// Satisfies Model and TreeModel. It keeps the tokens and no cache, so every evaluated token costs one call: for
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
    nodes_.clear();
    rows_.resize(1);
    fill(rows_[0], tokens_.size());
    return rows_[0];
  }

  /// Appends tokens; row(i) follows the i-th of them.
  void score(std::span<const token_id> tokens) {
    const std::size_t before = tokens_.size();
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    nodes_.clear();
    rows_.resize(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) fill(rows_[i], before + i + 1);
  }

  /// Scores a tree of continuations: see TreeModel.
  void score(std::span<const token_id> nodes, std::span<const std::int32_t> parents) {
    DECANT_ASSERT(nodes.size() == parents.size(), "a parent for each node");
    nodes_.assign(nodes.begin(), nodes.end());
    rows_.resize(nodes.size());
    const std::size_t held = tokens_.size();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      DECANT_ASSERT(parents[i] < static_cast<std::int32_t>(i), "parents come before their children");
      path_.clear();
      for (auto node = static_cast<std::int32_t>(i); node != no_parent;
           node = parents[static_cast<std::size_t>(node)]) {
        path_.push_back(nodes[static_cast<std::size_t>(node)]);
      }
      tokens_.insert(tokens_.end(), path_.rbegin(), path_.rend());
      fill(rows_[i], tokens_.size());
      tokens_.resize(held);
    }
  }

  /// Appends nodes of the last tree, which is forgotten.
  void keep(std::span<const std::size_t> path) {
    for (const std::size_t node : path) {
      DECANT_ASSERT(node < nodes_.size(), "keep names a node that was not scored");
      tokens_.push_back(nodes_[node]);
    }
    nodes_.clear();
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
    nodes_.clear();
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
  std::vector<token_id> nodes_, path_;  // the tree that was scored last, and room for one branch of it
};

template <class F>
stateless(F) -> stateless<F>;
template <class F>
stateless(F, std::size_t) -> stateless<F>;

}  // namespace decant
