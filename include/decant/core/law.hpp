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
#include <decant/math/strict.hpp>
#include <decant/math/sum_tree.hpp>

namespace decant {

DECANT_STRICT_BEGIN

/// A distribution over tokens as a value: it outlives the row that it was taken from.
///
/// Holds only tokens of positive weight. Two laws taken from rows that stand alike are equal bit for bit, and drawing
/// from one gives the token that drawing from the row would have given.
struct law {
  std::vector<token_id> ids;    ///< ascending
  std::vector<double> weights;  ///< positive, not normalised
  double total = 0;             ///< the sum of the weights, in ascending id

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

/// The place of the first weight at which their running sum exceeds a target; of the last, should rounding let none.
[[nodiscard]] inline std::size_t place_of(double target, std::span<const double> weights) noexcept {
  double sum = 0;
  std::size_t place = 0;
  for (; place + 1 < weights.size(); ++place) {
    sum = math::rounded(sum + weights[place]);
    if (target < sum) break;
  }
  return place;
}

/// Draws by block rejection. The leaves of the tree, one a block of 64 ids, hold upper bounds of the blocks' weights,
/// so that no weight outside the blocks tried is ever computed; `fill(leaf, weights)` writes the 64 weights of one.
///
/// A block is drawn by its bound and accepted with probability sum / bound; on rejection its sum replaces its bound.
/// Whatever the state, the chance to accept and return a token is its weight times a constant: the law is exact.
template <class Tree, class Fill>
token_id draw_from_blocks(Tree& blocks, const draw_stream& draws, purpose why, std::uint32_t index, const Fill& fill) {
  math::block_weights weights;
  for (std::uint32_t trial = 0;; ++trial) {
    double target = math::product(draws.uniform(why, index, 2 * trial), blocks.total());
    const std::size_t place = blocks.find(target);
    const auto& leaf = blocks.leaf(place);
    fill(leaf, weights);
    const double sum = math::sum_block(weights);
    target = math::product(draws.uniform(why, index, 2 * trial + 1), leaf.value);
    if (!(target < sum)) {
      blocks.replace(place, sum);
      continue;
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

}  // namespace detail

/// The sum of a law's weights in the order that draws use; call it after changing weights by hand. O(size).
[[nodiscard]] inline double sum_of_weights(std::span<const double> weights) noexcept {
  double sum = 0;
  for (const double w : weights) sum = math::rounded(sum + w);
  return sum;
}

/// Draws a token from a law, no_token from an empty one. O(size); allocates only while `workspace` grows.
inline token_id draw(const law& from, const draw_stream& draws, purpose why, std::uint32_t index,
                     math::sum_tree& workspace) {
  if (from.empty()) return no_token;
  if (from.size() == 1) return from.ids[0];
  if (draws.hook() != nullptr) return from.ids[draws.hook()->choose(draws.key(why, index), from.weights, from.total)];
  if (from.block_bounds.empty()) {
    const double target = math::product(draws.uniform(why, index), from.total);
    return from.ids[detail::place_of(target, from.weights)];
  }
  workspace.clear();
  for (std::size_t b = 0; b < from.block_bounds.size(); ++b) {
    if (from.block_bounds[b] > 0) workspace.push(static_cast<std::uint32_t>(b), from.block_bounds[b]);
  }
  workspace.build();
  return detail::draw_from_blocks(
      workspace, draws, why, index, [&](const math::sum_tree::node& leaf, math::block_weights& out) {
        out.fill(0);
        const auto first = static_cast<token_id>(leaf.index * 64);
        auto place =
            static_cast<std::size_t>(std::lower_bound(from.ids.begin(), from.ids.end(), first) - from.ids.begin());
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

DECANT_STRICT_END

}  // namespace decant
