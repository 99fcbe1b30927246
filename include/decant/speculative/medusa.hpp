// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/token.hpp>
#include <decant/speculative/chain_drafter.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/head_rows.hpp>
#include <decant/speculative/tree_shape.hpp>

namespace decant {

/// Medusa: a static tree of what the target's own heads think likely. Needs a HeadedModel as target.
///
/// Effect: where the tokens held end, the target's own row has decided the next token; head d (ties by lower id) fills
/// depth d of the tree, every node there with the pick that the shape gives it. A path ends where a head has fewer
/// tokens, at a stop token, and above a depth whose head is less sure than min_confidence. Proposals are deterministic.
/// No draft before it has observed the target.
/// Complexity: each head once a round, and a selection of the picks.
/// With the greedy rule the output is the target's greedy one; with typical acceptance, which is the paper's choice for
/// sampling, it is not the target's law.
/// Reference: Cai, Li, Geng, Peng, Lee, Chen, Dao, "Medusa: simple LLM inference acceleration framework with multiple
/// decoding heads", ICML 2024, arXiv 2401.10774.
class medusa {
 public:
  explicit medusa(tree_shape shape) : shape_(std::move(shape)) {
    for (std::size_t d = 1; d <= shape_.max_depth(); ++d) widths_.push_back(shape_.picks(d));
    picks_.resize(widths_.size());
  }

  template <HeadedModel M>
  void observe(M& model, std::span<const std::size_t> rows) {
    rows_.observe(model, rows);
  }

  void propose(const draft_request& request, draft& out) {
    out.set_mode(proposal::deterministic);
    const std::size_t depth = choose_picks(request);
    numbers_.assign(shape_.nodes().size(), absent);
    for (std::size_t i = 0; i < shape_.nodes().size() && out.size() < request.max_nodes; ++i) {
      const tree_shape::node& node = shape_.nodes()[i];
      if (node.depth > depth || node.pick >= picks_[node.depth - 1].size()) continue;
      const std::int32_t parent =
          node.parent == no_parent ? no_parent : numbers_[static_cast<std::size_t>(node.parent)];
      if (parent == absent || (parent != no_parent && detail::stops(request, out.token(parent)))) continue;
      numbers_[i] = out.add(picks_[node.depth - 1][node.pick], parent);
    }
  }

  void reset() noexcept { rows_.reset(); }

  [[nodiscard]] const tree_shape& shape() const noexcept { return shape_; }

 private:
  static constexpr std::int32_t absent = -2;  // a node of the shape that has no token

  /// The picks of each depth; returns down to which there are any.
  std::size_t choose_picks(const draft_request& request) {
    const std::size_t deepest = std::min(widths_.size(), request.max_depth);
    for (std::size_t d = 0; d < deepest; ++d) {
      const auto row = rows_.row(d + 1);
      if (row.empty()) return d;
      const detail::bound_row bound(workspace_.row, row);
      const auto picks = workspace_.row.descending(widths_[d]);
      if (picks.empty() || detail::top_probability(workspace_.row) < request.min_confidence) return d;
      picks_[d].clear();
      for (const entry& e : workspace_.row.descending(widths_[d])) picks_[d].push_back(e.id);
    }
    return deepest;
  }

  tree_shape shape_;
  std::vector<std::size_t> widths_;           // by depth
  std::vector<std::vector<token_id>> picks_;  // by depth
  std::vector<std::int32_t> numbers_;         // of the shape's nodes in the draft
  detail::head_rows rows_;
  detail::row_workspace workspace_;
};

}  // namespace decant
