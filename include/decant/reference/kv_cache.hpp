// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include <decant/core/errors.hpp>
#include <decant/reference/checkpoint.hpp>

namespace decant {

/// A view of some rows and columns of a row-major matrix.
using matrix_view = Eigen::Map<row_matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
using const_matrix_view = Eigen::Map<const row_matrix, Eigen::Unaligned, Eigen::OuterStride<>>;

/// The keys (after rotary embedding) and values of one layer, row by row, with the position in the text that each row
/// came from. Rows are in ascending order of position; positions may be missing, because a pass skipped the layer or
/// because a policy evicted them.
///
/// Views are valid until the next call that adds or removes rows.
class kv_layer {
 public:
  kv_layer(Eigen::Index n_kv_heads, Eigen::Index head_size) : heads_(n_kv_heads), head_size_(head_size) {}

  /// Rows held.
  [[nodiscard]] Eigen::Index size() const noexcept { return static_cast<Eigen::Index>(positions_.size()); }
  [[nodiscard]] Eigen::Index heads() const noexcept { return heads_; }
  [[nodiscard]] Eigen::Index head_size() const noexcept { return head_size_; }
  /// Columns: heads() * head_size().
  [[nodiscard]] Eigen::Index dim() const noexcept { return heads_ * head_size_; }

  /// The position of each row, ascending.
  [[nodiscard]] std::span<const std::int32_t> positions() const noexcept { return positions_; }

  /// All heads side by side: [size x dim]. The mutable views let a policy replace numbers in place.
  [[nodiscard]] const_matrix_view keys() const { return all(keys_.data()); }
  [[nodiscard]] const_matrix_view values() const { return all(values_.data()); }
  [[nodiscard]] matrix_view keys() { return all(keys_.data()); }
  [[nodiscard]] matrix_view values() { return all(values_.data()); }

  /// One head: [size x head_size].
  [[nodiscard]] const_matrix_view keys(Eigen::Index head) const { return one(keys_.data(), head); }
  [[nodiscard]] const_matrix_view values(Eigen::Index head) const { return one(values_.data(), head); }
  [[nodiscard]] matrix_view keys(Eigen::Index head) { return one(keys_.data(), head); }
  [[nodiscard]] matrix_view values(Eigen::Index head) { return one(values_.data(), head); }

  /// Adds rows of zeros for `count` positions from `first` on, to be filled through keys() and values(). Amortised
  /// O(count * dim); does not allocate within what was reserved. `first` is beyond the last position held.
  void append(std::size_t first, Eigen::Index count) {
    DECANT_ASSERT(positions_.empty() || static_cast<std::size_t>(positions_.back()) < first, "positions must ascend");
    for (Eigen::Index i = 0; i < count; ++i) {
      positions_.push_back(static_cast<std::int32_t>(first) + static_cast<std::int32_t>(i));
    }
    fit();
  }

  /// Forgets the rows of positions >= `length`.
  void truncate(std::size_t length) {
    while (!positions_.empty() && static_cast<std::size_t>(positions_.back()) >= length) positions_.pop_back();
    fit();
  }

  /// Keeps the given rows (indices, not positions; strictly ascending) and forgets the others. O(rows * dim).
  void keep(std::span<const Eigen::Index> rows) {
    Eigen::Index kept = 0;
    Eigen::Index previous = -1;
    for (const Eigen::Index row : rows) {
      DECANT_ASSERT(row > previous && row < size(), "rows to keep must be held, and ascend");
      previous = row;
      positions_[static_cast<std::size_t>(kept)] = positions_[static_cast<std::size_t>(row)];
      copy_row(keys_, row, kept);
      copy_row(values_, row, kept);
      ++kept;
    }
    positions_.resize(static_cast<std::size_t>(kept));
    fit();
  }

  /// Makes room, so that appending up to `rows` rows in all does not allocate.
  void reserve(std::size_t rows) {
    positions_.reserve(rows);
    keys_.reserve(rows * static_cast<std::size_t>(dim()));
    values_.reserve(rows * static_cast<std::size_t>(dim()));
  }

 private:
  void fit() {
    const std::size_t numbers = positions_.size() * static_cast<std::size_t>(dim());
    keys_.resize(numbers);
    values_.resize(numbers);
  }

  void copy_row(std::vector<float>& numbers, Eigen::Index from, Eigen::Index to) const {
    if (from != to) std::copy_n(numbers.begin() + from * dim(), dim(), numbers.begin() + to * dim());
  }

  [[nodiscard]] matrix_view all(float* numbers) { return {numbers, size(), dim(), stride()}; }
  [[nodiscard]] const_matrix_view all(const float* numbers) const { return {numbers, size(), dim(), stride()}; }

  [[nodiscard]] matrix_view one(float* numbers, Eigen::Index head) {
    return {numbers + offset(head), size(), head_size_, stride()};
  }
  [[nodiscard]] const_matrix_view one(const float* numbers, Eigen::Index head) const {
    return {numbers + offset(head), size(), head_size_, stride()};
  }

  [[nodiscard]] Eigen::OuterStride<> stride() const { return Eigen::OuterStride<>(dim()); }
  [[nodiscard]] Eigen::Index offset(Eigen::Index head) const {
    DECANT_ASSERT(head >= 0 && head < heads_, "no such key-value head");
    return size() > 0 ? head * head_size_ : 0;
  }

  Eigen::Index heads_;
  Eigen::Index head_size_;
  std::vector<std::int32_t> positions_;
  std::vector<float> keys_;
  std::vector<float> values_;
};

/// The keys and values of all layers. Copying it copies what it holds, not what it reserved.
class kv_cache {
 public:
  explicit kv_cache(const model_config& config)
      : layers_(static_cast<std::size_t>(config.n_layers), kv_layer(config.n_kv_heads, config.head_size())) {}

  [[nodiscard]] std::size_t n_layers() const noexcept { return layers_.size(); }

  [[nodiscard]] const kv_layer& layer(std::size_t index) const {
    DECANT_ASSERT(index < layers_.size(), "no such layer");
    return layers_[index];
  }
  [[nodiscard]] kv_layer& layer(std::size_t index) { return const_cast<kv_layer&>(std::as_const(*this).layer(index)); }

  /// Forgets positions >= `length` in every layer.
  void truncate(std::size_t length) {
    for (kv_layer& layer : layers_) layer.truncate(length);
  }

  /// Makes room for `rows` rows in every layer.
  void reserve(std::size_t rows) {
    for (kv_layer& layer : layers_) layer.reserve(rows);
  }

 private:
  std::vector<kv_layer> layers_;
};

}  // namespace decant
