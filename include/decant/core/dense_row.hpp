// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <decant/core/errors.hpp>
#include <decant/core/listed_row.hpp>
#include <decant/core/swift_sum.hpp>
#include <decant/core/token.hpp>
#include <decant/math/half.hpp>
#include <decant/math/kernels.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/strict.hpp>

namespace decant::detail {

DECANT_STRICT_BEGIN

/// All logits of a vocabulary, in memory that is the caller's: what candidates works on until few tokens are left.
///
/// Values are read where they are. Edits go into a mutable row itself, with an undo log, or into private copies of
/// blocks of 64 where the row is const or 16 bits wide, or into a workspace row once everything has been rewritten.
/// What is gone besides -inf is told by a bit mask, and by a bound: the last token that is kept in descending order.
///
/// Peaks, the largest value of every block, come from one pass over the row and are kept up to date by edits. They say
/// which blocks can hold what is asked for, so that everything after that pass touches few of them. Denormals read as
/// 0.
class dense_row {
 public:
  static constexpr float lowest = -std::numeric_limits<float>::max();

  template <class Element>
  void bind(const Element* row, std::size_t size) {
    clear();
    row_ = {};
    place(row);
    size_ = size;
  }
  void bind_mutable(float* row, std::size_t size) {
    bind(static_cast<const float*>(row), size);
    mutable_row_ = row;
  }

  /// Puts back what edits have changed in a mutable row, and forgets the row.
  void release() noexcept {
    for (std::size_t i = undo_.size(); i-- > 0;) mutable_row_[undo_[i].id] = undo_[i].logit;
    clear();
    row_ = {};
    size_ = 0;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t blocks() const noexcept { return (size_ + 63) / 64; }
  [[nodiscard]] const float* mutable_data() const noexcept { return mutable_row_; }

  // ---- values

  /// The value of a token, -inf if it is gone.
  [[nodiscard]] float operator[](token_id id) const noexcept {
    const auto i = static_cast<std::size_t>(id);
    if (!mask_.empty() && (mask_[i / 64] >> (i % 64) & 1) == 0) return opaque_gone();
    const float z = plain(i);
    return bounded_ && !inside_bound(id, z) ? opaque_gone() : z;
  }

  /// Whether a token that is not gone has a value that is NaN or +inf.
  [[nodiscard]] bool holds_bad() const noexcept {
    float buffer[64];
    for (std::size_t b = 0; b < blocks(); ++b) {
      if (!mask_.empty() && mask_[b] == 0) continue;
      const block at = block_at(b, buffer);
      for (std::uint64_t keep = at.keep; keep != 0; keep &= keep - 1) {
        if (math::is_bad(at.values + std::countr_zero(keep))) return true;
      }
    }
    return false;
  }

  /// Asks for the memory that a token's value is in.
  void prefetch(token_id id) const noexcept { prefetch_value(static_cast<std::size_t>(id)); }

  /// Asks for the memory that an edit of a token will need.
  void prefetch_edit(token_id id) const noexcept {
    const auto i = static_cast<std::size_t>(id);
    if (in_workspace_ || mutable_row_ != nullptr || is_patched(i / 64)) return prefetch_value(i);
    const std::size_t first = i / 64 * 64, line = row_.f32 != nullptr ? 16 : 32;
    for (std::size_t j = first; j < first + 64; j += line) prefetch_value(j);
  }

  /// 64 values, raw (denormals as they are), and which of them count: those of the vocabulary that neither mask nor
  /// bound excludes. A value that counts may still be -inf.
  struct block {
    const float* values;
    std::uint64_t keep;
  };

  /// `buffer` is used where the values are not floats in memory; it must live as long as the block is used.
  [[nodiscard]] block block_at(std::size_t b, float (&buffer)[64]) const noexcept {
    bend_block(b);
    const std::size_t begin = b * 64, length = std::min<std::size_t>(64, size_ - begin);
    block found{buffer, length == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << length) - 1};
    if (is_patched(b)) {
      found.values = patches_.data() + std::size_t{patch_of_[b]} * 64;
    } else if (length < 64) {
      for (std::size_t i = 0; i < 64; ++i) buffer[i] = i < length ? row_[begin + i] : opaque_gone();
    } else if (row_.f32 != nullptr) {
      found.values = row_.f32 + begin;
    } else if (row_.bf16 != nullptr) {
      math::kernels().widen_bf16(row_.bf16 + begin, buffer);
    } else {
      math::kernels().widen_f16(row_.f16 + begin, buffer);
    }
    if (!mask_.empty()) found.keep &= mask_[b];
    if (bounded_ && found.keep != 0) found.keep &= inside_bound(b, found.values);
    return found;
  }

  /// The values of blocks `begin` .. `end` - 1 of a row that excludes nothing, padded with -inf: where they are, or
  /// written to a buffer that has room for them.
  [[nodiscard]] const float* values_of(std::size_t begin, std::size_t end, float* buffer) const noexcept {
    bend_all();
    const std::size_t whole = std::min(end, size_ / 64);
    if (row_.f32 == nullptr) {
      float wide[64];
      for (std::size_t b = begin; b < end; ++b) std::copy_n(block_at(b, wide).values, 64, buffer + 64 * (b - begin));
      return buffer;
    }
    std::size_t patched = patched_.empty() ? blocks() : next_patched(begin);
    if (whole == end && patched >= end) return row_.f32 + 64 * begin;
    std::copy(row_.f32 + 64 * begin, row_.f32 + std::min(size_, 64 * end), buffer);
    if (whole < end) std::fill(buffer + (size_ - 64 * begin), buffer + 64 * (end - begin), gone);
    for (; patched < end; patched = next_patched(patched + 1)) {
      std::copy_n(patches_.data() + std::size_t{patch_of_[patched]} * 64, 64, buffer + 64 * (patched - begin));
    }
    return buffer;
  }

  /// Calls f(id, z) for every token that is not gone, in ascending id.
  template <class F>
  void each(F f) const {
    for (std::size_t b = 0; b < blocks(); ++b) {
      if (!may_hold(b, lowest)) continue;
      each_in_block(b, f);
    }
  }

  template <class F>
  void each_in_block(std::size_t b, F f) const {
    each_in_block(b, ~std::uint64_t{0}, f);
  }
  /// The same for those of its tokens whose bits are set.
  template <class F>
  void each_in_block(std::size_t b, std::uint64_t chosen, F f) const {
    float buffer[64];
    const block at = block_at(b, buffer);
    for (std::uint64_t keep = at.keep & chosen; keep != 0; keep &= keep - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(keep));
      const float z = math::flush_denormal(at.values[i]);
      if (!is_gone(z)) f(static_cast<token_id>(b * 64 + i), z);
    }
  }

  /// Calls f(id, z) for every token with z >= threshold, in ascending id. The row must have been measured, and be good.
  template <class F>
  void each_at_least(float threshold, F f) const {
    const float raw = raw_threshold(threshold);
    each_block_at_least(threshold, [&](std::size_t b, const block& at) {
      for (std::uint64_t keep = at.keep & math::kernels().at_least(at.values, raw); keep != 0; keep &= keep - 1) {
        const auto i = static_cast<std::size_t>(std::countr_zero(keep));
        f(static_cast<token_id>(b * 64 + i), math::flush_denormal(at.values[i]));
      }
      return true;
    });
  }

  /// Appends the tokens of blocks `begin` .. `end` - 1 with low <= z < high to a list. The row must have been measured,
  /// and be good. Kernels go over runs of blocks that are plain floats.
  void collect(float low, float high, std::size_t begin, std::size_t end, listed_row& out) const {
    const float raw_low = raw_threshold(low), raw_high = raw_threshold(high);
    const bool all_special =
        !unbent_.empty() || row_.f32 == nullptr || !mask_.empty() || (bounded_ && low <= bound_.logit);
    for (std::size_t b = begin; b < end;) {
      std::size_t plain = b;
      if (!all_special) {
        const std::size_t whole = std::min(end, size_ / 64);
        plain = std::min(whole, next_patched(b, low));
      }
      if (plain > b) {
        const auto first = static_cast<token_id>(64 * b);
        const std::size_t reached = math::kernels().count_at_least(peaks_.data() + b, plain - b, raw_low);
        out.extend(math::kernels().collect(row_.f32 + 64 * b, peaks_.data() + b, plain - b, raw_low, raw_high, first,
                                           out.room(64 * reached)));
        b = plain;
        continue;
      }
      if (peaks_[b] >= low) collect_block(b, raw_low, raw_high, out);
      ++b;
    }
  }
  void collect(float low, float high, listed_row& out) const { collect(low, high, 0, blocks(), out); }

  /// How many tokens have z >= threshold. Measured, and good. Once there are more than `enough`, it may stop counting.
  [[nodiscard]] std::size_t count_at_least(float threshold,
                                           std::size_t enough = std::numeric_limits<std::size_t>::max()) const {
    const auto& kernels = math::kernels();
    const float raw = raw_threshold(threshold);
    if (is_plain() && 4 * kernels.count_at_least(peaks_.data(), peaks_.size(), threshold) > blocks()) {
      return kernels.count_at_least(row_.f32, size_, raw);
    }
    std::size_t count = 0;
    each_block_at_least(threshold, [&](std::size_t, const block& at) {
      count += static_cast<std::size_t>(std::popcount(at.keep & kernels.at_least(at.values, raw)));
      return count <= enough;
    });
    return count;
  }

  /// What to compare raw values with instead of a flushed one: denormals count as 0, also below it.
  static constexpr float raw_threshold(float threshold) noexcept {
    return threshold == 0 ? std::bit_cast<float>(0x807FFFFFU) : threshold;
  }

  /// Whether the values are floats in memory, one after the other, and nothing but -inf is gone.
  [[nodiscard]] bool is_plain() const noexcept {
    return row_.f32 != nullptr && patched_.empty() && unbent_.empty() && !excludes();
  }

  /// Whether a mask or a bound says what is gone.
  [[nodiscard]] bool excludes() const noexcept { return !mask_.empty() || bounded_; }

  // ---- peaks

  /// Makes the peaks, if they are not up to date: one pass. What it found is a bound: `suspicious` may be a false
  /// alarm.
  math::row_summary measure() {
    if (measured_) return summary_;
    prepare_peaks();
    if (sparse_mask()) {
      summary_ = {gone, math::row_content::some_gone};
      for (std::size_t b = 0; b < blocks(); ++b) {
        peaks_[b] = gone;
        if (mask_[b] != 0) measure_block(b);
      }
    } else {
      bend_all();
      const auto& kernels = math::kernels();
      summary_ = row_.f32 != nullptr    ? kernels.peaks_f32(row_.f32, size_, peaks_.data())
                 : row_.bf16 != nullptr ? kernels.peaks_bf16(row_.bf16, size_, peaks_.data())
                                        : kernels.peaks_f16(row_.f16, size_, peaks_.data());
      if (mask_.empty() && patched_.empty()) return summary_;
      if (mask_.empty()) {
        measure_patches();
      } else {
        for (std::size_t b = 0; b < blocks(); ++b) {
          if (mask_[b] != whole_block(b) || is_patched(b)) measure_block(b);
        }
      }
    }
    find_max();
    return summary_;
  }

  /// Whether the values are floats, edited or not, of which nothing but -inf is gone: more can be summed along a pass.
  [[nodiscard]] bool is_all_floats() const noexcept { return row_.f32 != nullptr && !excludes(); }
  [[nodiscard]] bool measured() const noexcept { return measured_; }

  /// Measures such a row, again if it has been, and sums its rough weights along the way.
  double measure_with_mass(const math::rough_parameters& rough) {
    double mass = 0;
    measure_floats([&](const float* values, std::size_t size, float* peaks) {
      double part = 0;
      const math::row_summary seen = math::kernels().peaks_and_mass(values, size, peaks, rough, part);
      mass += part;
      return seen;
    });
    if (size_ % 64 == 0) return mass;
    float buffer[64], peak = 0;
    double rest = 0;
    math::kernels().peaks_and_mass(block_at(blocks() - 1, buffer).values, 64, &peak, rough, rest);
    return mass + rest;
  }
  /// The same with a sum that is taken stretch by stretch.
  void measure_with(swift_sum& sum) {
    prepare_peaks();
    summary_ = {gone, math::row_content::finite};
    const auto found = [&](const math::row_summary& seen) {
      summary_ = {std::max(summary_.max, seen.max), worse(summary_.content, seen.content)};
    };
    const std::size_t even = size_ / 64 * 64;
    for (std::size_t i = 0; i < even; i += swift_sum::stretch) {
      found(sum.add(row_.f32 + i, std::min(swift_sum::stretch, even - i), peaks_.data() + i / 64));
    }
    if (even == size_) return;
    found(math::kernels().peaks_f32(row_.f32 + even, size_ - even, peaks_.data() + even / 64));
    float buffer[64], peak = 0;
    sum.add(block_at(blocks() - 1, buffer).values, 64, &peak);
  }
  /// The same for their moments about a reference.
  math::portable::moment_sums measure_with_moments(float reference) {
    math::portable::moment_sums sums;
    measure_floats([&](const float* values, std::size_t size, float* peaks) {
      math::portable::moment_sums part;
      const math::row_summary seen = math::kernels().peaks_and_spread(values, size, peaks, reference, part);
      sums.sum += part.sum;
      sums.squares += part.squares;
      return seen;
    });
    for (std::size_t i = size_ / 64 * 64; i < size_; ++i) {
      const double d = static_cast<double>(plain(i)) - static_cast<double>(reference);
      sums.sum += d;
      sums.squares += math::product(d, d);
    }
    return sums;
  }

  /// The largest value of every block of a measured row, -inf where there is none, padded with -inf to a multiple
  /// of 64. Under a bound it may belong to a token that is gone.
  [[nodiscard]] std::span<const float> peaks() const noexcept { return peaks_; }

  /// The first token whose value is `max`. Measured, good, and there is one.
  [[nodiscard]] token_id first_of(float max) const noexcept {
    token_id found = no_token;
    float buffer[64];
    for (std::size_t first = 0; found == no_token && first < peaks_.size(); first += 64) {
      const std::uint64_t hit = math::kernels().at_least(peaks_.data() + first, max);
      if (hit == 0) continue;
      const std::size_t b = first + static_cast<std::size_t>(std::countr_zero(hit));
      const block at = block_at(b, buffer);
      const std::uint64_t largest = at.keep & math::kernels().at_least(at.values, raw_threshold(max));
      found = static_cast<token_id>(b * 64 + static_cast<std::size_t>(std::countr_zero(largest)));
    }
    return found;
  }

  /// The id of token number `count`, from 1, of those whose value is `value`; there are so many. Measured, and good.
  [[nodiscard]] token_id nth_at(float value, std::size_t count) const {
    const auto& kernels = math::kernels();
    const float low = raw_threshold(value), high = raw_threshold(math::next_above(value));
    token_id found = no_token;
    each_block_at_least(value, [&](std::size_t b, const block& at) {
      std::uint64_t equal = at.keep & kernels.at_least(at.values, low) & ~kernels.at_least(at.values, high);
      const auto more = static_cast<std::size_t>(std::popcount(equal));
      if (more < count) {
        count -= more;
        return true;
      }
      while (--count > 0) equal &= equal - 1;
      found = static_cast<token_id>(64 * b + static_cast<std::size_t>(std::countr_zero(equal)));
      return false;
    });
    return found;
  }

  // ---- what is gone

  /// Tokens after `last` in descending order are gone from here on.
  void set_bound(entry last) noexcept {
    bounded_ = true;
    bound_ = last;
  }
  [[nodiscard]] bool bounded() const noexcept { return bounded_; }
  [[nodiscard]] float bound() const noexcept { return bound_.logit; }
  /// Whether the token of a block's peak is inside the bound.
  [[nodiscard]] bool peak_is_kept(std::size_t b) const noexcept {
    return peaks_[b] > bound_.logit || (peaks_[b] == bound_.logit && b <= static_cast<std::size_t>(bound_.id) / 64);
  }

  /// Tokens whose bit is not set are gone; ids beyond the mask too.
  void mask(std::span<const std::uint64_t> allowed) {
    if (bounded_) rewrite([](token_id, float z) { return z; });
    const std::size_t given = std::min(allowed.size(), blocks());
    if (mask_.empty()) {
      mask_.assign(allowed.begin(), allowed.begin() + static_cast<std::ptrdiff_t>(given));
      mask_.resize(blocks(), 0);
      mask_.back() &= whole_block(blocks() - 1);
    } else {
      for (std::size_t b = 0; b < given; ++b) mask_[b] &= allowed[b];
      std::fill(mask_.begin() + static_cast<std::ptrdiff_t>(given), mask_.end(), 0);
    }
    measured_ = false;
  }

  // ---- edits

  /// Stores a value. (Under a bound the row is rewritten first: an edited token must not be judged by a bound that it
  /// was let through before.)
  void put(token_id id, const float& z) {
    const auto i = static_cast<std::size_t>(id);
    if (bounded_) rewrite([](token_id, float value) { return value; });
    if (in_workspace_) {
      bend_block(i / 64);
      workspace_[i] = z;
    } else if (mutable_row_ != nullptr) {
      undo_.push_back({id, mutable_row_[i]});
      mutable_row_[i] = z;
    } else {
      patch(i / 64)[i % 64] = z;
    }
    if (measured_) measure_again(i / 64);
  }

  /// Stores f(item, z) in place of the value z of every item's token, unless it is gone. Whether any was there.
  template <class Items, class F>
  bool change_each(const Items& items, F f) {
    bool changed = false;
    if (mutable_row_ == nullptr || in_workspace_ || measured_ || bounded_ || !mask_.empty()) {
      for (const auto& item : items) {
        const token_id id = id_of(item);
        const float z = (*this)[id];
        if (is_gone(z)) continue;
        put(id, math::flush_denormal(f(item, z)));
        changed = true;
      }
      return changed;
    }
    // What comes first in most chains: nothing but the row itself to look after.
    for (const auto& item : items) {
      const token_id id = id_of(item);
      float& stored = mutable_row_[id];
      if (const float z = math::flush_denormal(stored); !is_gone(z)) {
        undo_.push_back({id, stored});
        stored = math::flush_denormal(f(item, z));
        changed = true;
      }
    }
    return changed;
  }

  /// Makes the workspace the row, with f(id, z) for every id, gone ones passed as -inf.
  template <class F>
  void rewrite(F f) {
    bend_all();
    workspace_.resize(64 * blocks());
    float buffer[64];
    for (std::size_t b = 0; b < blocks(); ++b) {
      const block at = block_at(b, buffer);
      float* to = workspace_.data() + 64 * b;
      for (std::size_t i = 0, length = std::min<std::size_t>(64, size_ - 64 * b); i < length; ++i) {
        const float z = (at.keep >> i & 1) != 0 ? math::flush_denormal(at.values[i]) : opaque_gone();
        to[i] = math::flush_denormal(f(static_cast<token_id>(64 * b + i), z));
      }
    }
    use_workspace();
  }

  /// The same where the values to start from are listed, by ascending id.
  template <class F>
  void rewrite_listed(std::span<const token_id> ids, std::span<const float> values, F f) {
    workspace_.resize(64 * blocks());
    for (std::size_t i = 0, at = 0; i < size_; ++i) {
      const auto id = static_cast<token_id>(i);
      const bool listed = at < ids.size() && ids[at] == id;
      workspace_[i] = math::flush_denormal(f(id, listed ? values[at] : opaque_gone()));
      at += listed;
    }
    use_workspace();
  }

  /// Makes the workspace the row, with the values whose bits are set raised: of a row that excludes nothing.
  void raise(std::span<const std::uint64_t> chosen, const math::raise_parameters& how) {
    bend_all();
    workspace_.resize(64 * blocks());
    constexpr std::size_t stretch = 128;  // blocks
    stretch_.resize(64 * stretch);
    for (std::size_t b = 0; b < blocks(); b += stretch) {
      const std::size_t end = std::min(blocks(), b + stretch);
      math::kernels().raise(values_of(b, end, stretch_.data()), 64 * (end - b), &chosen[b], how, &workspace_[64 * b]);
    }
    use_workspace();
  }

  /// Bends all values of a good row that has been measured; none is above the reference. Blocks are bent when they are
  /// looked at, and peaks at once: order stays, so they tell as before which blocks that will be.
  void bend(const math::bend_parameters& how) {
    bend_all();
    workspace_.resize(64 * blocks());
    if (excludes() || !measured_ || summary_.content == math::row_content::suspicious) {
      float buffer[64], left[64];
      for (std::size_t b = 0; b < blocks(); ++b) {
        const block at = block_at(b, buffer);
        for (std::size_t i = 0; i < 64; ++i) left[i] = (at.keep >> i & 1) != 0 ? at.values[i] : opaque_gone();
        math::kernels().bend(left, 64, how, workspace_.data() + 64 * b);
      }
      return use_workspace();
    }
    bend_ = how;
    straight_ = row_;
    std::swap(straight_patched_, patched_);
    std::swap(straight_patch_of_, patch_of_);
    std::swap(straight_patches_, patches_);
    patched_.clear();
    patches_.clear();
    unbent_.assign((blocks() + 63) / 64, ~std::uint64_t{0});
    row_ = {};
    place(workspace_.data());
    in_workspace_ = true;
    math::kernels().bend(peaks_.data(), peaks_.size(), how, peaks_.data());
    summary_.max = math::portable::bent(summary_.max, how);
  }

 private:
  /// The caller's row, or the workspace row, in whichever width it has.
  struct view {
    const float* f32 = nullptr;
    const bfloat16* bf16 = nullptr;
    const float16* f16 = nullptr;

    [[nodiscard]] float operator[](std::size_t i) const noexcept {
      return f32 != nullptr ? f32[i] : bf16 != nullptr ? math::to_float(bf16[i]) : math::to_float(f16[i]);
    }
  };

  void place(const float* row) noexcept { row_.f32 = row; }
  void place(const bfloat16* row) noexcept { row_.bf16 = row; }
  void place(const float16* row) noexcept { row_.f16 = row; }

  /// Nothing of a row that went before.
  void clear() noexcept {
    undo_.clear();
    mutable_row_ = nullptr;
    in_workspace_ = false;
    clear_exclusions();
  }
  void clear_exclusions() noexcept {
    measured_ = bounded_ = false;
    mask_.clear();
    patched_.clear();
    patches_.clear();
    unbent_.clear();
  }

  void use_workspace() noexcept {
    row_ = {};
    row_.f32 = workspace_.data();
    in_workspace_ = true;
    clear_exclusions();
  }

  void prefetch_value(std::size_t i) const noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(row_.f32 != nullptr    ? static_cast<const void*>(row_.f32 + i)
                       : row_.bf16 != nullptr ? static_cast<const void*>(row_.bf16 + i)
                                              : static_cast<const void*>(row_.f16 + i));
#else
    static_cast<void>(i);
#endif
  }

  /// A value with patches applied, before mask and bound.
  [[nodiscard]] float plain(std::size_t i) const noexcept {
    bend_block(i / 64);
    if (is_patched(i / 64)) {
      return math::flush_denormal(patches_[std::size_t{patch_of_[i / 64]} * 64 + i % 64]);
    }
    return math::flush_denormal(row_[i]);
  }

  /// After an edit in a block of a measured row.
  [[gnu::noinline]] void measure_again(std::size_t b) {
    const float old = peaks_[b];
    measure_block(b);
    if (peaks_[b] >= summary_.max) {
      summary_.max = peaks_[b];
    } else if (old == summary_.max) {
      find_max();
    }
  }

  /// Bends a block if that is still to be done.
  void bend_block(std::size_t b) const noexcept {
    if (unbent_.empty() || (unbent_[b / 64] >> (b % 64) & 1) == 0) return;
    unbent_[b / 64] &= ~(std::uint64_t{1} << (b % 64));
    const std::size_t begin = 64 * b, length = std::min<std::size_t>(64, size_ - begin);
    float buffer[64];
    const float* values = buffer;
    if (!straight_patched_.empty() && (straight_patched_[b / 64] >> (b % 64) & 1) != 0) {
      values = straight_patches_.data() + std::size_t{straight_patch_of_[b]} * 64;
    } else if (length == 64 && straight_.f32 != nullptr) {
      values = straight_.f32 + begin;
    } else {
      for (std::size_t i = 0; i < 64; ++i) buffer[i] = i < length ? straight_[begin + i] : opaque_gone();
    }
    math::kernels().bend(values, 64, bend_, workspace_.data() + begin);
  }
  void bend_all() const noexcept {
    if (unbent_.empty()) return;
    for (std::size_t b = 0; b < blocks(); ++b) bend_block(b);
    unbent_.clear();
  }

  /// The private copy of a block of a row that must not be written.
  float* patch(std::size_t b) {
    if (patched_.empty()) {
      patch_of_.resize(blocks());
      patched_.assign((blocks() + 63) / 64, 0);
    }
    if (!is_patched(b)) {
      float buffer[64];
      const float* values = block_at(b, buffer).values;
      patch_of_[b] = static_cast<std::uint32_t>(patches_.size() / 64);
      patched_[b / 64] |= std::uint64_t{1} << (b % 64);
      patches_.insert(patches_.end(), values, values + 64);
    }
    return patches_.data() + std::size_t{patch_of_[b]} * 64;
  }

  void prepare_peaks() {
    measured_ = true;
    peaks_.resize((blocks() + 63) / 64 * 64);
    std::fill(peaks_.begin() + static_cast<std::ptrdiff_t>(blocks()), peaks_.end(), gone);
  }

  /// Makes the peaks of a row of floats by f(values, size, peaks), for as many blocks at a time as lie side by side.
  template <class F>
  void measure_floats(F f) {
    bend_all();
    prepare_peaks();
    summary_ = {gone, math::row_content::finite};
    for (std::size_t b = 0, next = 0; b < blocks(); b = next) {
      next = patched_.empty() ? blocks() : next_patched(b);
      const bool patched = next == b;
      next += patched;
      const float* values = patched ? patches_.data() + std::size_t{patch_of_[b]} * 64 : row_.f32 + 64 * b;
      const math::row_summary seen = f(values, std::min(size_, 64 * next) - 64 * b, &peaks_[b]);
      summary_.max = std::max(summary_.max, seen.max);
      summary_.content = worse(summary_.content, seen.content);
    }
  }

  void collect_block(std::size_t b, float raw_low, float raw_high, listed_row& out) const {
    float buffer[64];
    const block at = block_at(b, buffer);
    const auto& kernels = math::kernels();
    std::uint64_t keep = at.keep & kernels.at_least(at.values, raw_low) & ~kernels.at_least(at.values, raw_high);
    for (; keep != 0; keep &= keep - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(keep));
      out.add(static_cast<token_id>(b * 64 + i), math::flush_denormal(at.values[i]));
    }
  }

  [[nodiscard]] bool is_patched(std::size_t b) const noexcept {
    return !patched_.empty() && (patched_[b / 64] >> (b % 64) & 1) != 0;
  }
  /// The first patched block from b on whose peak reaches a threshold: kernels pass over the others.
  [[nodiscard]] std::size_t next_patched(std::size_t b, float threshold) const noexcept {
    if (patched_.empty()) return blocks();
    b = next_patched(b);
    while (b < blocks() && !(peaks_[b] >= threshold)) b = next_patched(b + 1);
    return b;
  }
  /// The first patched block from b on, blocks() if there is none.
  [[nodiscard]] std::size_t next_patched(std::size_t b) const noexcept {
    if (b >= blocks()) return blocks();
    std::uint64_t word = patched_[b / 64] >> (b % 64);
    if (word != 0) return b + static_cast<std::size_t>(std::countr_zero(word));
    for (std::size_t w = b / 64 + 1; w < patched_.size(); ++w) {
      if (patched_[w] != 0) return 64 * w + static_cast<std::size_t>(std::countr_zero(patched_[w]));
    }
    return blocks();
  }

  /// Calls f(number, block) for the blocks of a measured row whose peak reaches a threshold, until f says no.
  template <class F>
  void each_block_at_least(float threshold, F f) const {
    float buffer[64];
    for (std::size_t first = 0; first < blocks(); first += 64) {
      for (std::uint64_t hit = math::kernels().at_least(peaks_.data() + first, threshold); hit != 0; hit &= hit - 1) {
        const std::size_t b = first + static_cast<std::size_t>(std::countr_zero(hit));
        if (!f(b, block_at(b, buffer))) return;
      }
    }
  }

  /// Whether a block can hold a token with z >= threshold.
  [[nodiscard]] bool may_hold(std::size_t b, float threshold) const noexcept {
    if (!mask_.empty() && mask_[b] == 0) return false;
    return !measured_ || summary_.content == math::row_content::suspicious ||
           peaks_[b] >= (bounded_ ? bound_.logit : threshold);
  }

  [[nodiscard]] bool inside_bound(token_id id, float z) const noexcept {
    return z > bound_.logit || (z == bound_.logit && id <= bound_.id);
  }
  /// The same for a block of raw values; bits of what was gone before may be set.
  [[nodiscard]] std::uint64_t inside_bound(std::size_t b, const float* values) const noexcept {
    std::uint64_t inside = math::kernels().at_least(values, raw_threshold(bound_.logit));
    const auto border = static_cast<std::size_t>(bound_.id) / 64;
    if (b < border) return inside;
    // Of the tokens at the bound itself, those up to its id count.
    for (std::uint64_t left = inside; left != 0; left &= left - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(left));
      if (!inside_bound(static_cast<token_id>(b * 64 + i), math::flush_denormal(values[i]))) {
        inside &= ~(std::uint64_t{1} << i);
      }
    }
    return inside;
  }

  /// All bits of a block that the vocabulary has.
  [[nodiscard]] std::uint64_t whole_block(std::size_t b) const noexcept {
    const std::size_t length = std::min<std::size_t>(64, size_ - b * 64);
    return length == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << length) - 1;
  }

  /// Whether so little is allowed that looking at those blocks alone is less than a pass.
  [[nodiscard]] bool sparse_mask() const noexcept {
    if (mask_.empty()) return false;
    const auto used = std::ranges::count_if(mask_, [](std::uint64_t word) { return word != 0; });
    return static_cast<std::size_t>(used) * 4 < mask_.size();
  }

  void find_max() noexcept {
    float tops[64];  // for as many peaks at a time
    summary_.max = gone;
    for (std::size_t first = 0; first < peaks_.size(); first += 4096) {
      const std::size_t count = std::min<std::size_t>(4096, peaks_.size() - first);
      summary_.max = std::max(summary_.max, math::kernels().peaks_f32(peaks_.data() + first, count, tops).max);
    }
  }

  /// The peaks of all private copies, which lie side by side.
  void measure_patches() {
    patch_peaks_.resize(patches_.size() / 64);
    const auto seen = math::kernels().peaks_f32(patches_.data(), patches_.size(), patch_peaks_.data());
    summary_.content = worse(summary_.content, seen.content);
    for (std::size_t b = next_patched(0); b < blocks(); b = next_patched(b + 1)) peaks_[b] = patch_peaks_[patch_of_[b]];
  }

  /// The peak of one block, looked at token by token.
  void measure_block(std::size_t b) {
    float buffer[64], top = gone;
    const block at = block_at(b, buffer);
    if (at.keep == ~std::uint64_t{0}) {
      const math::row_summary seen = math::kernels().peaks_f32(at.values, 64, &peaks_[b]);
      summary_.content = worse(summary_.content, seen.content);
      return;
    }
    for (std::uint64_t keep = at.keep; keep != 0; keep &= keep - 1) {
      const float z = at.values[static_cast<std::size_t>(std::countr_zero(keep))];
      if (!math::is_finite(z)) summary_.content = worse(summary_.content, math::content_of(z));
      top = z > top ? z : top;
    }
    if (at.keep != whole_block(b)) summary_.content = worse(summary_.content, math::row_content::some_gone);
    peaks_[b] = math::flush_denormal(top);
  }

  view row_;
  float* mutable_row_ = nullptr;
  std::size_t size_ = 0;
  bool measured_ = false, bounded_ = false, in_workspace_ = false;
  math::row_summary summary_{};
  entry bound_{};

  std::vector<float> peaks_;
  std::vector<entry> undo_;              // what stood in the mutable row, oldest first
  std::vector<std::uint64_t> patched_;   // a bit a block: whether it has a private copy; empty while none has
  std::vector<std::uint32_t> patch_of_;  // per block, if so: its place in patches_
  std::vector<float> patches_;           // blocks of 64
  std::vector<float> patch_peaks_, stretch_;
  std::vector<std::uint64_t> mask_;       // bit set: allowed; empty while all are
  mutable std::vector<float> workspace_;  // the row, once it has been rewritten

  // A row that is bent: as it stood before, and how it is bent.
  mutable std::vector<std::uint64_t> unbent_;  // a bit a block: whether it is still to be bent; empty if none is
  math::bend_parameters bend_{};
  view straight_;
  std::vector<std::uint64_t> straight_patched_;
  std::vector<std::uint32_t> straight_patch_of_;
  std::vector<float> straight_patches_;
};

DECANT_STRICT_END

}  // namespace decant::detail
