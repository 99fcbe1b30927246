// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>

namespace decant {

/// The shape of a static draft tree: which picks of which head stand where. A node at depth d holds a pick of head d,
/// and all nodes at one depth draw on the same picks, whatever their parent.
///
/// Nodes are numbered parents first; any first n of them are a tree too.
/// Reference: Cai et al. 2024 (Medusa), arXiv 2401.10774, sections 2.2 and 2.3.3.
class tree_shape {
 public:
  struct node {
    std::int32_t parent = no_parent;
    std::uint32_t pick = 0;   ///< which of the head's tokens, 0 the most probable
    std::uint32_t depth = 1;  ///< of which head; children of the root have depth 1

    bool operator==(const node&) const = default;
  };

  /// The most probable token of each of the first `depth` heads.
  static tree_shape chain(std::size_t depth) { return cartesian(std::vector<std::size_t>(depth, 1)); }

  /// Every combination of the first widths[d] picks of head d + 1. As many nodes as that takes: 3, 2 makes 3 + 6.
  static tree_shape cartesian(std::span<const std::size_t> widths) {
    tree_shape shape;
    std::size_t begin = 0, parents = 1;
    for (std::size_t d = 0; d < widths.size(); ++d) {
      const std::size_t end = shape.nodes_.size();
      for (std::size_t p = 0; p < parents; ++p) {
        for (std::size_t pick = 0; pick < widths[d]; ++pick) shape.add(d == 0 ? no_parent : number(begin + p), pick);
      }
      begin = end;
      parents = shape.nodes_.size() - end;
    }
    return shape;
  }

  /// The `count` nodes that are most likely to be accepted, in that order, where shares[d][i] is how often pick i of
  /// head d + 1 is right, independently of the others: a node's value is the product of the shares on its path. Picks
  /// of a parent are added in order; of equal values the node that could be added first comes first. Fewer nodes where
  /// heads, picks or positive shares end. O(count^2).
  static tree_shape likely(const std::vector<std::vector<double>>& shares, std::size_t count) {
    struct candidate {
      double value;
      std::int32_t parent;
      std::size_t pick;
    };
    tree_shape shape;
    std::vector<double> values;  // of the nodes added
    std::vector<candidate> open;
    const auto offer = [&](std::int32_t parent, std::size_t pick) {
      const std::size_t head = parent == no_parent ? 0 : shape.nodes_[static_cast<std::size_t>(parent)].depth;
      if (head >= shares.size() || pick >= shares[head].size() || !(shares[head][pick] > 0)) return;
      const double above = parent == no_parent ? 1 : values[static_cast<std::size_t>(parent)];
      open.push_back({above * shares[head][pick], parent, pick});
    };
    offer(no_parent, 0);
    while (shape.nodes_.size() < count && !open.empty()) {
      const auto best = std::max_element(open.begin(), open.end(),
                                         [](const candidate& a, const candidate& b) { return a.value < b.value; });
      const candidate chosen = *best;
      open.erase(best);
      shape.add(chosen.parent, chosen.pick);
      values.push_back(chosen.value);
      offer(number(shape.nodes_.size() - 1), 0);
      offer(chosen.parent, chosen.pick + 1);
    }
    return shape;
  }

  [[nodiscard]] std::span<const node> nodes() const noexcept { return nodes_; }

  /// How many picks the tree takes of the head at `depth`, from 1.
  [[nodiscard]] std::size_t picks(std::size_t depth) const {
    std::size_t count = 0;
    for (const node& n : nodes_) {
      if (n.depth == depth) count = std::max<std::size_t>(count, n.pick + 1);
    }
    return count;
  }

  [[nodiscard]] std::size_t max_depth() const {
    std::size_t deepest = 0;
    for (const node& n : nodes_) deepest = std::max<std::size_t>(deepest, n.depth);
    return deepest;
  }

 private:
  static std::int32_t number(std::size_t place) { return static_cast<std::int32_t>(place); }

  void add(std::int32_t parent, std::size_t pick) {
    const std::uint32_t above = parent == no_parent ? 0 : nodes_[static_cast<std::size_t>(parent)].depth;
    nodes_.push_back({parent, static_cast<std::uint32_t>(pick), above + 1});
  }

  std::vector<node> nodes_;
};

}  // namespace decant
