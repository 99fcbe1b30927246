// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <decant/math/kernels.hpp>
#include <decant/math/strict.hpp>

namespace decant::math {

/// The sum of 64 slots in one fixed order: the bits do not depend on how it is computed.
inline double sum_block(const double* w) noexcept { return kernels().block_sum(w); }
inline double sum_block(const block_weights& w) noexcept { return sum_block(w.data()); }

/// A sparse tree of sums with 64 children a node: finds the leaf that a cumulative weight falls into.
///
/// The shape is fixed by the indices of the leaves alone, so that sums, and with them draws, have the same bits however
/// the weights were stored. Building is O(leaves), finding O(64 * depth); nothing allocates once the storage has grown.
class sum_tree {
 public:
  struct node {
    std::uint32_t index;  ///< leaves: the caller's index; above: index of the children / 64
    std::uint32_t begin;  ///< leaves: the caller's tag; above: the first child's place in the level below
    double value;
  };

  void clear() noexcept {
    for (auto& level : levels_) level.clear();
    height_ = 0;
  }

  /// Adds a leaf; indices must ascend.
  void push(std::uint32_t index, double value, std::uint32_t tag = 0) {
    if (levels_.empty()) levels_.emplace_back();
    levels_[0].push_back({index, tag, value});
  }

  /// Builds the sums above the leaves pushed since clear().
  void build() {
    height_ = 0;
    while (levels_[height_].size() > 1) {
      if (levels_.size() == height_ + 1) levels_.emplace_back();
      const auto& below = levels_[height_];
      auto& level = levels_[height_ + 1];
      level.clear();
      for (std::size_t begin = 0, end = 0; begin < below.size(); begin = end) {
        const std::uint32_t parent = below[begin].index / 64;
        end = begin;
        while (end < below.size() && below[end].index / 64 == parent) ++end;
        level.push_back({parent, static_cast<std::uint32_t>(begin), sum(std::span(below).subspan(begin, end - begin))});
      }
      ++height_;
    }
  }

  [[nodiscard]] double total() const noexcept { return levels_[height_][0].value; }
  [[nodiscard]] const node& leaf(std::size_t place) const noexcept { return levels_[0][place]; }

  /// The place of the leaf that holds `target` in [0, total); what is left of `target` inside it replaces it. A leaf of
  /// value 0 is never found.
  std::size_t find(double& target) const noexcept {
    std::size_t place = 0;
    for (std::size_t height = height_; height > 0; --height) {
      const auto siblings = children(height, place);
      std::size_t last = 0;
      double before = 0, cumulative = 0;
      for (std::size_t i = 0; i < siblings.size(); ++i) {
        if (!(siblings[i].value > 0)) continue;
        last = i;
        before = cumulative;
        cumulative = rounded(cumulative + siblings[i].value);
        if (target < cumulative) break;
      }
      target = rounded(target - before);
      place = levels_[height][place].begin + last;
    }
    return place;
  }

  /// Changes a leaf and the sums above it.
  void replace(std::size_t place, double value) noexcept {
    levels_[0][place].value = value;
    for (std::size_t height = 1; height <= height_; ++height) {
      place = parent_of(height, place);
      levels_[height][place].value = sum(children(height, place));
    }
  }

 private:
  [[nodiscard]] std::span<const node> children(std::size_t height, std::size_t place) const noexcept {
    const auto& below = levels_[height - 1];
    const std::size_t begin = levels_[height][place].begin;
    const std::size_t end = place + 1 < levels_[height].size() ? levels_[height][place + 1].begin : below.size();
    return std::span(below).subspan(begin, end - begin);
  }

  [[nodiscard]] std::size_t parent_of(std::size_t height, std::size_t child) const noexcept {
    const std::uint32_t wanted = levels_[height - 1][child].index / 64;
    const auto& level = levels_[height];
    std::size_t low = 0, high = level.size();
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      (level[middle].index <= wanted ? low : high) = middle;
    }
    return low;
  }

  static double sum(std::span<const node> siblings) noexcept {
    if (siblings.size() == 1) return siblings[0].value;
    block_weights slots{};
    for (const node& s : siblings) slots[s.index % 64] = s.value;
    return sum_block(slots);
  }

  std::vector<std::vector<node>> levels_;
  std::size_t height_ = 0;
};

/// The same tree where most leaves are there: sums and finds with the same bits as a sum_tree of the leaves that are
/// not 0. A leaf's place is its index.
class dense_sum_tree {
 public:
  /// Makes room for so many leaves and returns them, to be written before build().
  std::span<double> assign(std::size_t leaves) {
    if (levels_.empty()) levels_.emplace_back();
    levels_[0].resize((leaves + 63) / 64 * 64);
    std::fill(levels_[0].begin() + static_cast<std::ptrdiff_t>(leaves), levels_[0].end(), 0);
    return std::span(levels_[0]).first(leaves);
  }

  /// Builds the sums above the leaves.
  void build() {
    height_ = 0;
    for (std::size_t groups = levels_[0].size() / 64; groups > 0; groups = levels_[height_].size() / 64) {
      if (levels_.size() == height_ + 1) levels_.emplace_back();
      auto& level = levels_[height_ + 1];
      level.assign(groups == 1 ? 1 : (groups + 63) / 64 * 64, 0);
      for (std::size_t g = 0; g < groups; ++g) level[g] = sum_block(levels_[height_].data() + 64 * g);
      ++height_;
    }
  }

  [[nodiscard]] double total() const noexcept { return levels_[height_][0]; }
  [[nodiscard]] sum_tree::node leaf(std::size_t place) const noexcept {
    return {static_cast<std::uint32_t>(place), 0, levels_[0][place]};
  }

  /// As sum_tree::find.
  std::size_t find(double& target) const noexcept {
    std::size_t place = 0;
    for (std::size_t height = height_; height > 0; --height) {
      const double* siblings = levels_[height - 1].data() + 64 * place;
      std::size_t last = 0;
      double before = 0, cumulative = 0;
      for (std::size_t i = 0; i < 64; ++i) {
        if (!(siblings[i] > 0)) continue;
        last = i;
        before = cumulative;
        cumulative = rounded(cumulative + siblings[i]);
        if (target < cumulative) break;
      }
      target = rounded(target - before);
      place = 64 * place + last;
    }
    return place;
  }

  /// Changes a leaf and the sums above it.
  void replace(std::size_t place, double value) noexcept {
    levels_[0][place] = value;
    for (std::size_t height = 1; height <= height_; ++height) {
      place /= 64;
      levels_[height][place] = sum_block(levels_[height - 1].data() + 64 * place);
    }
  }

 private:
  std::vector<std::vector<double>> levels_;
  std::size_t height_ = 0;
};

}  // namespace decant::math
