// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <Eigen/Core>

#include <decant/core/errors.hpp>
#include <decant/reference/checkpoint.hpp>
#include <decant/reference/kv_cache.hpp>

namespace decant {

/// The rows of one sequence: which pages hold them, in order, and how many there are.
struct paged_rows {
  std::vector<std::uint32_t> pages;
  std::size_t size = 0;
};

/// The keys (after rotary embedding) and values of many sequences, in pages of 16 positions with all layers each, which
/// sequences share as long as none writes to them.
///
/// Effect: forking a sequence counts its pages once more and copies none; appending to a shared page copies that page
/// first. Memory: the pages that are in use by any sequence, and those that once were; a page that nobody uses any more
/// is the next one given. Allocates only when more pages are in use than ever before, or a list of pages grows.
/// A `paged_rows` belongs to the kv_pages that filled it; copying it by assignment does not fork it.
/// Reference: Kwon et al., "Efficient memory management for large language model serving with PagedAttention", SOSP
/// 2023, arXiv 2309.06180.
class kv_pages {
 public:
  static constexpr std::size_t page_rows = 16;

  explicit kv_pages(const model_config& config)
      : n_layers_(static_cast<std::size_t>(config.n_layers)), dim_(static_cast<std::size_t>(config.kv_dim())) {}

  /// The pages that sequences hold, each counted once.
  [[nodiscard]] std::size_t pages_in_use() const noexcept { return pages_.size() - free_.size(); }
  /// The size of one page.
  [[nodiscard]] std::size_t page_bytes() const noexcept { return n_layers_ * 2 * page_rows * dim_ * sizeof(float); }

  /// Makes `to`, which must be empty, a second sequence with the rows of `from`. O(pages), copies no rows.
  void fork(const paged_rows& from, paged_rows& to) {
    DECANT_ASSERT(to.pages.empty(), "a fork needs an empty sequence");
    for (const std::uint32_t page : from.pages) ++users_[page];
    to.pages.assign(from.pages.begin(), from.pages.end());
    to.size = from.size;
  }

  /// Forgets the rows after the first `length`, and gives back the pages that held no others.
  void truncate(paged_rows& rows, std::size_t length) {
    DECANT_ASSERT(length <= rows.size, "cannot truncate to more rows than are held");
    release_beyond(rows, length);
    rows.size = length;
  }

  /// Makes room for `count` more rows that no other sequence can see, to be filled by write() and to count once
  /// `rows.size` says so. Copies at most one page.
  void make_room(paged_rows& rows, std::size_t count) {
    release_beyond(rows, rows.size);  // what a call that came to nothing has left
    if (rows.size % page_rows != 0 && users_[rows.pages.back()] > 1) {
      const std::uint32_t shared = rows.pages.back(), own = take();
      pages_[own] = pages_[shared];
      --users_[shared];
      rows.pages.back() = own;
    }
    while (rows.pages.size() < pages_for(rows.size + count)) rows.pages.push_back(take());
  }

  /// Stores the key and value [dim each] of one position in one layer. There must be room for it.
  void write(const paged_rows& rows, std::size_t layer, std::size_t position, std::span<const float> key,
             std::span<const float> value) {
    const std::uint32_t page = rows.pages[position / page_rows];
    DECANT_ASSERT(users_[page] == 1, "a shared page must not be written");
    std::copy(key.begin(), key.end(), at(page, 2 * layer, position));
    std::copy(value.begin(), value.end(), at(page, 2 * layer + 1, position));
  }

  /// Makes `out` the first `length` rows of one layer, side by side, for kernels that want them so. Its first `kept`
  /// rows are taken to be right already.
  void gather(const paged_rows& rows, std::size_t layer, std::size_t kept, std::size_t length, kv_layer& out) const {
    out.truncate(kept);
    if (length == kept) return;
    out.append(kept, static_cast<Eigen::Index>(length - kept));
    auto keys = out.keys();
    auto values = out.values();
    for (std::size_t position = kept; position < length;) {
      const std::size_t end = std::min(length, (position / page_rows + 1) * page_rows);
      const std::uint32_t page = rows.pages[position / page_rows];
      const std::size_t numbers = (end - position) * dim_;
      std::copy_n(at(page, 2 * layer, position), numbers, keys.data() + position * dim_);
      std::copy_n(at(page, 2 * layer + 1, position), numbers, values.data() + position * dim_);
      position = end;
    }
  }

 private:
  [[nodiscard]] static std::size_t pages_for(std::size_t rows) noexcept { return (rows + page_rows - 1) / page_rows; }

  /// Where the row of a position is in a page: `plane` is 2 * layer for keys, one more for values.
  [[nodiscard]] std::size_t offset(std::size_t plane, std::size_t position) const noexcept {
    return (plane * page_rows + position % page_rows) * dim_;
  }
  [[nodiscard]] float* at(std::uint32_t page, std::size_t plane, std::size_t position) {
    return pages_[page].data() + offset(plane, position);
  }
  [[nodiscard]] const float* at(std::uint32_t page, std::size_t plane, std::size_t position) const {
    return pages_[page].data() + offset(plane, position);
  }

  std::uint32_t take() {
    if (free_.empty()) {
      free_.reserve(pages_.size() + 1);  // so that giving back never allocates
      pages_.emplace_back(page_bytes() / sizeof(float));
      users_.push_back(1);
      return static_cast<std::uint32_t>(pages_.size() - 1);
    }
    const std::uint32_t page = free_.back();
    free_.pop_back();
    users_[page] = 1;
    return page;
  }

  void release_beyond(paged_rows& rows, std::size_t length) {
    while (rows.pages.size() > pages_for(length)) {
      const std::uint32_t page = rows.pages.back();
      rows.pages.pop_back();
      if (--users_[page] == 0) free_.push_back(page);
    }
  }

  std::size_t n_layers_, dim_;
  std::vector<std::vector<float>> pages_;
  std::vector<std::uint32_t> users_;  // of each page
  std::vector<std::uint32_t> free_;
};

}  // namespace decant
