// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/speculative/following_model.hpp>

namespace decant {

/// The rows of a draft model all over a tree of continuations: for dynamic_tree and sampled_tree.
///
/// Effect: see TreeRows. A TreeModel scores all nodes of the tree in one pass a layer; any other model is given one
/// path after another. The model is the drafter's alone, and must outlive it; it follows the text at the cost of what
/// has changed. Where its context ends, rows are those of no token at all.
template <Model M>
class model_rows {
 public:
  explicit model_rows(M& model) : follower_(model) {}

  /// Forgets the tree; the row that follows all these tokens, empty if there is no room for them.
  std::span<const float> start(std::span<const token_id> tokens) {
    size_ = tokens.size();
    nodes_.clear();
    parents_.clear();
    if (tokens.empty() || !follower_.fits(size_)) return {};
    return follower_.row_after(tokens);
  }

  /// Adds nodes; parents number all nodes since start, or are no_parent.
  void grow(std::span<const token_id> nodes, std::span<const std::int32_t> parents) {
    const std::size_t before = nodes_.size();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      DECANT_ASSERT(parents[i] >= no_parent && parents[i] < static_cast<std::int32_t>(nodes_.size()), "no such parent");
      nodes_.push_back(nodes[i]);
      parents_.push_back(parents[i]);
    }
    if (copies_.size() < nodes_.size()) copies_.resize(nodes_.size());
    bool room = true;
    for (std::size_t node = before; node < nodes_.size(); ++node) {
      find_path(node);
      room = room && follower_.fits(size_ + path_.size());
      if constexpr (!TreeModel<M>) copies_[node] = row_of_path();
    }
    scored_ = room;
    if constexpr (TreeModel<M>) {
      if (room) follower_.model().score(std::span<const token_id>(nodes_), std::span<const std::int32_t>(parents_));
    }
  }

  [[nodiscard]] std::span<const float> row(std::size_t node) {
    DECANT_ASSERT(node < nodes_.size(), "no such node");
    if constexpr (TreeModel<M>) {
      if (scored_) return follower_.trimmed(std::span<const float>(follower_.model().row(node)));
      copies_[node] = nothing();
    }
    return copies_[node];
  }

 private:
  [[nodiscard]] std::vector<float> nothing() const {
    return std::vector<float>(std::max<std::size_t>(1, follower_.model().vocabulary_size()), gone);
  }

  void find_path(std::size_t node) {
    path_.clear();
    for (auto n = static_cast<std::int32_t>(node); n != no_parent; n = parents_[static_cast<std::size_t>(n)]) {
      path_.push_back(nodes_[static_cast<std::size_t>(n)]);
    }
    std::reverse(path_.begin(), path_.end());
  }

  std::vector<float> row_of_path() {
    if (!follower_.fits(size_ + path_.size())) return nothing();
    M& model = follower_.model();
    const auto row = follower_.trimmed(std::span<const float>(model.evaluate(std::span<const token_id>(path_))));
    model.truncate(size_);
    return {row.begin(), row.end()};
  }

  detail::following_model<M> follower_;
  std::size_t size_ = 0;
  std::vector<token_id> nodes_, path_;
  std::vector<std::int32_t> parents_;
  std::vector<std::vector<float>> copies_;
  bool scored_ = false;
};

}  // namespace decant
