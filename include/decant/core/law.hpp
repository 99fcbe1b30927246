// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <decant/core/draws.hpp>
#include <decant/core/token.hpp>
#include <decant/math/sum_tree.hpp>

namespace decant {

/// A distribution over tokens as a value: it outlives the row that it was taken from.
///
/// Holds only tokens of positive weight. Two laws taken from rows that stand alike are equal bit for bit, and drawing
/// from one gives the token that drawing from the row would have given.
struct law {
  std::vector<token_id> ids;    ///< ascending
  std::vector<double> weights;  ///< positive, not normalised
  double total = 0;             ///< the sum of the weights, in the order of math::sum_tree

  /// For laws drawn by block rejection, else empty: an upper bound of the weight of ids 64 b .. 64 b + 63 together.
  std::vector<double> block_bounds;

  [[nodiscard]] bool empty() const noexcept { return ids.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return ids.size(); }

  /// The probability of a token, 0 for one that is not in the law. O(log size).
  [[nodiscard]] double probability(token_id token) const noexcept {
    const auto found = std::lower_bound(ids.begin(), ids.end(), token);
    return found != ids.end() && *found == token ? weights[static_cast<std::size_t>(found - ids.begin())] / total : 0;
  }

  /// Its natural logarithm, -inf for a token that is not in the law.
  [[nodiscard]] double log_probability(token_id token) const noexcept { return math::log(probability(token)); }

  void clear() noexcept {
    ids.clear();
    weights.clear();
    block_bounds.clear();
    total = 0;
  }

  friend bool operator==(const law&, const law&) = default;
};

namespace detail {

/// Draws from blocks of 64 ids. `fill(leaf, weights)` writes the 64 weights of a leaf of the tree, which is one block.
///
/// Inverse CDF (`reject` false): the leaves hold exact sums; the block is found from one number, then the slot.
///
/// Block rejection (`reject` true): the leaves hold upper bounds, so no weight outside the blocks tried is ever
/// computed. A block is drawn by its bound and accepted with probability sum / bound; on rejection its sum replaces its
/// bound. Whatever the state, the chance to accept and return a token is its weight times a constant: the law is exact.
template <class Tree, class Fill>
token_id draw_from_blocks(Tree& blocks, bool reject, const draw_stream& draws, purpose why, std::uint32_t index,
                          const Fill& fill) {
  math::block_weights weights;
  for (std::uint32_t trial = 0;; ++trial) {
    double target = math::product(draws.uniform(why, index, 2 * trial), blocks.total());
    const std::size_t place = blocks.find(target);
    const auto& leaf = blocks.leaf(place);
    fill(leaf, weights);
    if (reject) {
      const double sum = math::sum_block(weights);
      target = math::product(draws.uniform(why, index, 2 * trial + 1), leaf.value);
      if (!(target < sum)) {
        blocks.replace(place, sum);
        continue;
      }
    }
    double cumulative = 0;
    std::size_t last = 0;
    for (std::size_t slot = 0; slot < weights.size(); ++slot) {
      if (!(weights[slot] > 0)) continue;
      cumulative += weights[slot];
      last = slot;
      if (target < cumulative) break;
    }
    return static_cast<token_id>(std::size_t{leaf.index} * 64 + last);
  }
}

/// Pushes one leaf a block with the exact sum of its weights, unless that is 0; a leaf's tag is the place of its first
/// token. Asks few questions whose answers a processor cannot guess: how many tokens a block has is one.
template <class Weight>
void push_block_sums(math::sum_tree& blocks, std::span<const token_id> ids, std::span<const Weight> weights) {
  const std::size_t size = ids.size();
  // Where most blocks have one, the question is easy.
  const bool sparse = size == 0 || static_cast<std::size_t>(ids[size - 1] - ids[0]) / 64 > size;
  const auto slot = [&](std::size_t i) { return static_cast<std::uint32_t>(ids[i]) % 64; };
  const auto weight = [&](std::size_t i) { return static_cast<double>(weights[i]); };
  for (std::size_t begin = 0; begin < size;) {
    const token_id block = ids[begin] / 64;
    std::size_t count = 1;
    double sum = 0;
    if (!sparse && begin + 3 < size && ids[begin + 3] / 64 != block) {
      // At most three, in arithmetic: the two whose branches of the tree of block_sum join first, and the third.
      const std::size_t second = ids[begin + 1] / 64 == block, third = ids[begin + 2] / 64 == block;
      count += second + third;
      const double w[5] = {weight(begin), weight(begin + 1) * static_cast<double>(second),
                           weight(begin + 2) * static_cast<double>(third), weight(begin), w[1]};
      const std::uint32_t at_a = math::leaf_of_slot(slot(begin)), at_b = math::leaf_of_slot(slot(begin + 1)),
                          at_c = math::leaf_of_slot(slot(begin + 2));
      const std::uint32_t ab = at_a ^ at_b, bc = at_b ^ at_c, ca = at_c ^ at_a;
      const std::size_t bc_first = (bc < ab) & (bc < ca), ca_first = (ca < ab) & (ca < bc);
      const std::size_t last = (1 - bc_first) * (2 - ca_first);
      sum = math::rounded(math::rounded(w[last + 1] + w[last + 2]) + w[last]);
    } else {
      while (begin + count < size && ids[begin + count] / 64 == block) ++count;
      sum = math::sparse_block_sum(
          count, [&](std::size_t i) { return slot(begin + i); }, [&](std::size_t i) { return weight(begin + i); });
    }
    if (sum > 0) blocks.push(static_cast<std::uint32_t>(block), sum, static_cast<std::uint32_t>(begin));
    begin += count;
  }
}

}  // namespace detail

/// The sum of a law's weights in the order that draws use; call it after changing weights by hand. O(size).
inline double sum_of_weights(std::span<const token_id> ids, std::span<const double> weights,
                             math::sum_tree& workspace) {
  workspace.clear();
  if (ids.empty()) return 0;
  detail::push_block_sums(workspace, ids, weights);
  workspace.build();
  return workspace.total();
}

/// Draws a token from a law, no_token from an empty one. O(size); allocates only while `workspace` grows.
inline token_id draw(const law& from, const draw_stream& draws, purpose why, std::uint32_t index,
                     math::sum_tree& workspace) {
  if (from.empty()) return no_token;
  if (from.size() == 1) return from.ids[0];
  if (draws.hook() != nullptr) return from.ids[draws.hook()->choose(draws.key(why, index), from.weights, from.total)];
  workspace.clear();
  const bool reject = !from.block_bounds.empty();
  if (reject) {
    for (std::size_t b = 0; b < from.block_bounds.size(); ++b) {
      if (from.block_bounds[b] > 0) workspace.push(static_cast<std::uint32_t>(b), from.block_bounds[b]);
    }
  } else {
    detail::push_block_sums<double>(workspace, from.ids, from.weights);
  }
  workspace.build();
  return detail::draw_from_blocks(
      workspace, reject, draws, why, index, [&](const math::sum_tree::node& leaf, math::block_weights& out) {
        out.fill(0);
        const auto first = static_cast<token_id>(leaf.index * 64);
        auto place =
            reject
                ? static_cast<std::size_t>(std::lower_bound(from.ids.begin(), from.ids.end(), first) - from.ids.begin())
                : std::size_t{leaf.begin};
        for (; place < from.ids.size() && from.ids[place] - first < 64; ++place) {
          out[static_cast<std::size_t>(from.ids[place] - first)] = from.weights[place];
        }
      });
}

/// Draws a token from a law, with a workspace of its own.
inline token_id draw(const law& from, const draw_stream& draws, purpose why = purpose::sample,
                     std::uint32_t index = 0) {
  math::sum_tree workspace;
  return draw(from, draws, why, index, workspace);
}

}  // namespace decant
