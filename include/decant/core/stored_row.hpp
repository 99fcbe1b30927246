// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/dense_row.hpp>
#include <decant/core/descending_sort.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/listed_row.hpp>
#include <decant/core/row_registry.hpp>
#include <decant/core/token.hpp>
#include <decant/math/half.hpp>
#include <decant/math/kernels.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/strict.hpp>

namespace decant::detail {

DECANT_STRICT_BEGIN

/// The lowest layer of candidates: what is stored of a row, in dense or in compact form, and how tokens are found in it
/// by the order of their stored values. Knows nothing of scales and distributions.
///
/// Narrowings bisect: a value that enough blocks' peaks reach bounds the largest tokens from below, those are listed,
/// and the list is cut by counting. What costs a pass is done once and remembered until the next edit.
class stored_row {
 public:
  /// A narrowing that leaves at most this many tokens lists them; also where draws change method.
  static constexpr std::size_t compact_limit = 4096;

  stored_row(const stored_row&) = delete;
  stored_row& operator=(const stored_row&) = delete;

 protected:
  static constexpr std::size_t whole_row = std::numeric_limits<std::size_t>::max();
  static constexpr float beyond = listed_row::beyond;

  stored_row() = default;
  explicit stored_row(std::size_t list_limit) : list_limit_(list_limit) {}
  ~stored_row() { release(); }

  // ---- binding

  void bind_span(std::span<float> row, std::size_t vocabulary_size) {
    dense_.bind_mutable(row.data(), begin(row.size(), vocabulary_size));
    const auto answer = row_registry::enter(row.data());
    DECANT_ASSERT(answer != row_registry::answer::already_bound, "two candidates on one mutable row");
    registered_ = answer == row_registry::answer::watched;
  }
  template <class Element>
  void bind_span(std::span<const Element> row, std::size_t vocabulary_size) {
    dense_.bind(row.data(), begin(row.size(), vocabulary_size));
  }
  void bind_span(std::span<bfloat16> row, std::size_t vocabulary_size) {
    bind_span(std::span<const bfloat16>(row), vocabulary_size);
  }
  void bind_span(std::span<float16> row, std::size_t vocabulary_size) {
    bind_span(std::span<const float16>(row), vocabulary_size);
  }

  /// Ends with the row before; the number of ids that the new one has.
  std::size_t begin(std::size_t row_size, std::size_t vocabulary_size) {
    release();
    if (vocabulary_size == whole_row) vocabulary_size = row_size;
    DECANT_ASSERT(vocabulary_size > 0, "a row needs at least one logit");
    DECANT_ASSERT(vocabulary_size <= row_size, "the vocabulary is larger than the row");
    vocabulary_size_ = vocabulary_size;
    compact_ = false;
    return vocabulary_size;
  }

  /// Ends the work on a row and restores it if it was edited.
  void release() noexcept {
    if (registered_) row_registry::leave(dense_.mutable_data());
    registered_ = false;
    dense_.release();
    vocabulary_size_ = 0;
    status_ = row_status::ok;
    forget_facts();
    list_.clear();
  }

  void check(token_id id) const {
    DECANT_ASSERT(id >= 0 && static_cast<std::size_t>(id) < vocabulary_size_, "token id outside the vocabulary");
  }

  // ---- values

  [[nodiscard]] float stored(token_id id) const noexcept {
    if (!compact_) return dense_[id];
    const std::size_t place = list_.find(id);
    return place < list_.size() ? list_.values()[place] : opaque_gone();
  }

  /// Calls f(id, z) for every token that is not gone, ascending.
  template <class F>
  void each(F f) const {
    if (!compact_) return dense_.each(f);
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (const entry e = list_[i]; !is_gone(e.logit)) f(e.id, e.logit);
    }
  }

  void put(token_id id, const float& logit) {
    const float z = math::flush_denormal(logit);
    if (compact_) {
      list_.values()[list_.find(id)] = z;
    } else {
      dense_.put(id, z);
    }
    forget_facts();
  }

  /// Stores f(item, z) in place of the value z of every item's token, unless it is gone.
  template <class Items, class F>
  void change_each(const Items& items, F f) {
    bool changed = false;
    if (!compact_) {
      changed = dense_.change_each(items, f);
    } else {
      for (const auto& item : items) {
        const std::size_t place = list_.find(id_of(item));
        if (place == list_.size() || is_gone(list_.values()[place])) continue;
        float& z = list_.values()[place];
        z = math::flush_denormal(f(item, z));
        changed = true;
      }
    }
    // A row that is as it was keeps its facts: under a bound, its size is known by counting alone.
    if (changed) forget_facts();
  }

  // ---- facts

  /// Reads the row if an edit has happened since; whether it is good. Lists what is left of a long row if it is little,
  /// here and nowhere else, so that sums do not depend on what has been asked before.
  bool read() {
    if (known_) return status_ == row_status::ok;
    DECANT_ASSERT(vocabulary_size_ > 0, "no row is bound");
    known_ = true;
    look();
    if (!bad() && vocabulary_size_ > list_limit_) list_small_row();
    return !bad();
  }

  void look() {
    if (compact_) return look_at_each();
    const math::row_summary seen = dense_.measure();
    if (seen.content == math::row_content::suspicious) return look_at_each();
    max_ = seen.max;
    status_ = is_gone(max_) ? row_status::empty : row_status::ok;
    argmax_ = bad() ? no_token : dense_.first_of(max_);
    counted_ = bad() || seen.content == math::row_content::finite;
    size_ = bad() ? 0 : vocabulary_size_;
  }

  /// Whether a NaN or +inf is among the tokens that are not gone.
  bool look_for_bad() {
    if (compact_) return list_.holds_bad();
    return dense_.measure().content == math::row_content::suspicious && dense_.holds_bad();
  }

  /// Reads token by token: a list, or a row that may hold a NaN or +inf.
  void look_at_each() {
    size_ = 0;
    counted_ = true;
    max_ = gone;
    argmax_ = no_token;
    if (look_for_bad()) {
      status_ = row_status::not_finite;
      return;
    }
    each([&](token_id id, float z) {
      ++size_;
      if (argmax_ == no_token || z > max_) {
        max_ = z;
        argmax_ = id;
      }
    });
    status_ = size_ == 0 ? row_status::empty : row_status::ok;
  }

  /// The number of tokens of a good row that has been read.
  std::size_t count() {
    if (!counted_) size_ = dense_.count_at_least(dense_row::lowest);
    counted_ = true;
    return size_;
  }

  /// Whether that is more than `limit`, which often can be told without counting.
  bool more_than(std::size_t limit) {
    if (!counted_) {
      const std::span<const float> peaks = dense_.peaks();
      const auto used = math::kernels().count_at_least(peaks.data(), peaks.size(), dense_row::lowest);
      if (used > limit) return true;
      const std::size_t found = dense_.count_at_least(dense_row::lowest, limit);
      if (found > limit) return true;
      size_ = found;
      counted_ = true;
    }
    return size_ > limit;
  }

  /// Known to be bad. Edits do not read: they only heed what has been found.
  [[nodiscard]] bool bad() const noexcept { return status_ != row_status::ok; }

  /// After an edit: nothing is known any more.
  void forget_facts() noexcept {
    if (bad()) return;
    known_ = counted_ = false;
    order_.clear();
    changed();
  }

  /// The row stands differently: whoever has kept what followed from it asks anew.
  void changed() noexcept {
    ++stand_;
    gathered_from_ = beyond;
  }

  /// Whether all tokens of a dense row have the same logit; does not look further than the peaks where they differ.
  bool all_equal() {
    if (compact_) return false;
    const std::span<const float> peaks = dense_.peaks();
    return math::kernels().count_at_least(peaks.data(), peaks.size(), max_) == dense_.blocks() &&
           dense_.count_at_least(max_) == count();
  }

  // ---- lists and runs

  /// A row of no more tokens than a list may hold is quicker to work on as one. Of a good row that has been read.
  void list_small_row() {
    if (compact_ || !known_small()) return;
    collect_all(list_);
    compact_ = true;
    size_ = list_.size();
    counted_ = true;
  }

  /// Whether that is so and can be told cheaply: of a long row, if its tokens lie in few blocks.
  bool known_small() {
    if (vocabulary_size_ <= list_limit_) return true;
    if (counted_ && size_ > list_limit_) return false;
    const std::span<const float> peaks = dense_.peaks();
    return 16 * math::kernels().count_at_least(peaks.data(), peaks.size(), dense_row::lowest) <= list_limit_ &&
           !more_than(list_limit_);
  }

  void collect_all(listed_row& out) const {
    out.clear();
    dense_.collect(dense_row::lowest, beyond, out);
  }

  /// Calls f(values, size) for runs of values of a dense row, -inf where gone, that are together the row; sizes are
  /// multiples of 64. Where nothing but -inf is gone, runs begin at every multiple of 8,192, wherever the values are
  /// stored: sums of the same row have the same bits.
  template <class F>
  void each_run(F f) {
    constexpr std::size_t blocks = 128;
    run_.resize(std::max(run_.size(), 64 * blocks));
    if (!dense_.excludes()) {
      for (std::size_t b = 0; b < dense_.blocks(); b += blocks) {
        const std::size_t end = std::min(b + blocks, dense_.blocks());
        f(dense_.values_of(b, end, run_.data()), 64 * (end - b));
      }
      return;
    }
    float buffer[64];
    std::size_t used = 0;
    for (std::size_t b = 0; b < dense_.blocks(); ++b) {
      if (is_gone(dense_.peaks()[b])) continue;
      const dense_row::block at = dense_.block_at(b, buffer);
      std::fill_n(run_.data() + used, 64, gone);
      for (std::uint64_t keep = at.keep; keep != 0; keep &= keep - 1) {
        const auto i = static_cast<std::size_t>(std::countr_zero(keep));
        run_[used + i] = at.values[i];
      }
      used += 64;
      if (used < 64 * blocks) continue;
      f(run_.data(), used);
      used = 0;
    }
    if (used > 0) f(run_.data(), used);
  }

  /// Lists all tokens of a dense row from so far below a border on, if they lie in few blocks: to count them, and to
  /// keep some of them. Whether it did.
  bool list_from(float border, double below) {
    if (compact_ || is_gone(border)) return false;
    const float from = math::saturated(static_cast<double>(border) - below);
    if (gathered_from_ <= from) return true;
    const std::span<const float> peaks = dense_.peaks();
    if (math::kernels().count_at_least(peaks.data(), peaks.size(), from) > list_limit_ / 8) return false;
    listed_row& all = gathering();
    all.clear();
    dense_.collect(from, beyond, all);
    gathered_from_ = from;
    return true;
  }

  /// The list that narrowings work with. It no longer holds what it held.
  listed_row& gathering() noexcept {
    gathered_from_ = beyond;
    return gathered_;
  }

  /// A border that means all tokens as one that kernels can compare with.
  static float above_gone(float border) noexcept { return is_gone(border) ? dense_row::lowest : border; }

  std::size_t count_from(float border) {
    if (gathered_from_ <= border) return gathered_.count_at_least(border);
    return compact_ ? list_.count_at_least(above_gone(border)) : dense_.count_at_least(above_gone(border));
  }

  // ---- the largest

  static constexpr std::size_t sample_size = 2048, a_long_sort = 1024;

  /// Runs of sixteen values at even distances of a dense row, which has at least twice so many.
  void take_sample() {
    sample_.clear();
    constexpr std::size_t run = 16, runs = sample_size / run;
    const std::size_t step = vocabulary_size_ / run / runs;
    float buffer[64];
    for (std::size_t i = 0; i < runs; ++i) {
      const std::size_t first = i * step * run;
      const dense_row::block at = dense_.block_at(first / 64, buffer);
      for (std::size_t j = first % 64; j < first % 64 + run; ++j) {
        const float z = (at.keep >> j & 1) != 0 ? math::flush_denormal(at.values[j]) : opaque_gone();
        sample_.add(static_cast<token_id>(first - first % 64 + j), z);
      }
    }
  }

  /// A value that about `count` tokens of a dense row reach, rather more; -inf's successor if that is a large part.
  float sampled_threshold(double count) {
    take_sample();
    const double share = count / static_cast<double>(vocabulary_size_) * sample_size;
    const auto rank = static_cast<std::size_t>(share + 4 * std::sqrt(share) + 4);
    if (2 * rank >= sample_size || sample_.count_at_least(dense_row::lowest) < rank) {
      return dense_row::lowest;
    }
    return sample_.nth(rank, dense_row::lowest, max_).logit;
  }

  /// Fills order_ with the first `count` tokens in descending order, all if there are not so many, and maybe more.
  void sort_prefix(std::size_t count) {
    if (!read()) return order_.clear();
    if (order_.size() >= count) return;
    // Grow by more than was asked, so that a caller who walks down pays for few sorts.
    count = std::max({count, 2 * order_.size(), std::size_t{8}});
    // Where that is a good part of a long row, all is sorted at less than what it takes to find the part.
    if (more_than(count < a_long_sort ? count : 4 * count)) {
      const float threshold = gather_at_least(count);
      if (compact_ || gathered_.size() > 2 * count + 16) gathered_.keep(gathered_.nth(count, threshold, max_));
    } else {
      if (order_.size() == this->count()) return;
      list_all();
    }
    sort_(gathered_, order_);
  }

  /// Lists all tokens of a good row, to be sorted.
  void list_all() {
    listed_row& out = gathering();
    if (!compact_) return collect_all(out);
    out = list_;
    out.keep({listed_row::any_id, dense_row::lowest});
  }

  /// The last of the first `count` tokens in descending order, of which there are more.
  entry nth(std::size_t count) {
    if (order_.size() >= count) return order_[count - 1];
    if (compact_) return list_.nth(count, dense_row::lowest, max_);
    const entry last = gather(count);
    gathered_.keep(last);
    return last.id == listed_row::any_id ? gathered_.last() : last;
  }

  /// Lists at least the first `count` tokens in descending order, of which there are more; returns the last of them.
  entry gather(std::size_t count) {
    const float threshold = gather_at_least(count);
    return gathered_.nth(count, threshold, max_);
  }

  /// Lists, from some value on, the first `count` tokens in descending order at least, of which there are so many;
  /// returns the value. Of those at the value itself there may be the first `count` alone.
  float gather_at_least(std::size_t count) {
    listed_row& out = gathering();
    constexpr float lowest = dense_row::lowest;
    if (compact_) {
      out = list_;
      return lowest;
    }
    const float threshold = std::max(peak_threshold(count), lowest);
    if (threshold > lowest && collect_from(threshold, count, 4 * count + 4096, out)) return threshold;
    // Where the largest lie side by side, or are more than blocks, a sample says more than peaks do.
    if (vocabulary_size_ >= 2 * sample_size) {
      const float sampled = sampled_threshold(static_cast<double>(count));
      if (sampled > threshold) {
        collect_from(sampled, count, vocabulary_size_, out);
        if (out.size() >= count) return sampled;
      }
    }
    collect_from(threshold, count, vocabulary_size_, out);
    return threshold;
  }

  /// A value that the peaks of at least `count` blocks of a dense row reach, and, ties apart, of not many more; -inf if
  /// there are not so many blocks, or nearly.
  float peak_threshold(std::size_t count) {
    const std::span<const float> peaks = dense_.peaks();
    const auto reach = [&](float t) { return math::kernels().count_at_least(peaks.data(), peaks.size(), t); };
    if (dense_.bounded() || 4 * count > 3 * dense_.blocks()) return opaque_gone();
    const float low = first_guess(count);
    const std::size_t enough = count + count / 8 + 2, near = reach(low);
    if (near < count) return opaque_gone();
    if (low > dense_row::lowest && near <= 2 * enough) return low;
    if (reach(max_) >= count) return max_;
    bisection search(low, max_);
    // Peaks thin out about exponentially: once both ends are known, their logarithms say where to look. Every third
    // time the middle it is, so that it ends.
    double at_low = low > dense_row::lowest ? static_cast<double>(near) : 0, at_high = 0;
    for (int steps = 0; search.next(); ++steps) {
      if (at_low > 0 && at_high > 0 && steps % 3 != 2) {
        const double wanted = std::log(static_cast<double>(count + enough) / 2 / at_high) / std::log(at_low / at_high);
        const auto high = static_cast<double>(search.high());
        search.aim(math::saturated(high - wanted * (high - static_cast<double>(search.low()))));
      }
      const std::size_t found = reach(search.middle());
      if (found < count) {
        at_high = static_cast<double>(std::max<std::size_t>(found, 1));
        search.lower();
        continue;
      }
      at_low = static_cast<double>(found);
      search.raise();
      if (found <= enough) break;
    }
    return search.low();
  }

  /// A value that the peaks of at least `count` blocks reach, if there are so many: where they are few, told by the
  /// largest of every 64 peaks.
  [[nodiscard]] float first_guess(std::size_t count) const noexcept {
    float tops[64];
    const std::span<const float> peaks = dense_.peaks();
    const std::size_t tall = peaks.size() / 64;
    if (tall > 64 || 4 * count > 3 * tall) return dense_row::lowest;
    static_cast<void>(math::kernels().peaks_f32(peaks.data(), peaks.size(), tops));
    std::nth_element(tops, tops + (count - 1), tops + tall, [](float x, float y) { return x > y; });
    return std::max(tops[count - 1], dense_row::lowest);
  }

  /// Lists the tokens of a dense row from a value on, of those at it the first `ties` at least. Gives up, and says so,
  /// if they turn out to be more than `most`.
  bool collect_from(float threshold, std::size_t ties, std::size_t most, listed_row& out) {
    out.clear();
    float low = threshold;
    // Where many blocks reach the threshold, it may be ties that do.
    const std::span<const float> peaks = dense_.peaks();
    const std::size_t reached = math::kernels().count_at_least(peaks.data(), peaks.size(), threshold);
    const std::size_t strip = reached > 2 * ties + 64 ? 16 : 64 * reached <= 4 * ties + 4096 ? dense_.blocks() : 128;
    std::size_t left = ties, place = 0;
    for (std::size_t b = 0; b < dense_.blocks(); b += strip) {
      dense_.collect(low, beyond, b, std::min(b + strip, dense_.blocks()), out);
      if (low == threshold && out.size() >= 2 * ties + 512) {
        // Many: perhaps they are ties, of which no more are needed.
        for (; place < out.size() && left > 0; ++place) left -= out[place].logit == threshold;
        if (left == 0) {
          out.keep({out[place - 1].id, threshold});
          low = math::next_above(threshold);
        }
      }
      if (out.size() > most) return false;
    }
    return true;
  }

  // ---- narrowing

  /// Keeps the `count` largest, at least one. Reads the row.
  void keep_largest(std::size_t count) {
    if (!read() || !more_than(count)) return;
    if (count <= 1) return keep_argmax();
    if (compact_ || order_.size() >= count || count > list_limit_) return cut(nth(count), count);
    gathered_.keep(gather(count));
    adopt_gathered();
  }

  /// Keeps values from a border on, and the largest `min_keep`. `known` says how many they are, if that is known.
  void keep_from(float border, std::size_t min_keep, std::size_t known = 0) {
    if (is_gone(border)) return;
    min_keep = std::max<std::size_t>(min_keep, 1);
    // What lies in few blocks is listed at once.
    if (list_from(border, 0)) {
      gathered_.keep({listed_row::any_id, border});
      gathered_from_ = beyond;
      if (gathered_.size() < min_keep) return keep_largest(min_keep);
      if (gathered_.size() <= list_limit_) return more_than(gathered_.size()) ? adopt_gathered() : void();
    }
    const std::size_t kept = known > 0 ? known : count_from(border);
    if (kept < min_keep) return keep_largest(min_keep);
    if (more_than(kept)) cut({listed_row::any_id, border}, kept);
  }

  /// Keeps what is not after `last` in descending order: `count` tokens, which include the largest.
  void cut(entry last, std::size_t count) {
    changed();
    if (order_.size() > count) order_.resize(count);
    if (compact_) {
      list_.keep(last);
    } else if (count <= list_limit_) {
      list_.clear();
      dense_.collect(last.logit, beyond, list_);
      if (last.id != listed_row::any_id) list_.keep(last);
      compact_ = true;
    } else {
      dense_.set_bound(last);
    }
    size_ = count;
    counted_ = true;
  }

  /// Makes what has been gathered the row.
  void adopt_gathered() {
    std::swap(list_, gathered_);
    changed();
    order_.clear();
    compact_ = true;
    size_ = list_.size();
    counted_ = true;
  }

  /// The scan has found the argmax: no further pass.
  void keep_argmax() {
    changed();
    order_.assign(1, {argmax_, max_});
    list_.clear();
    list_.add(argmax_, max_);
    size_ = 1;
    counted_ = true;
    compact_ = true;
  }

  // ---- allowing

  /// Makes the list of a dense row, if a mask allows no more than a list may hold; whether it did.
  bool list_allowed(std::span<const std::uint64_t> mask) {
    const std::size_t words = std::min(mask.size(), dense_.blocks());
    list_.clear();
    const auto to = list_.room(list_limit_ + 64);
    std::size_t count = math::kernels().set_bits(mask.data(), words, list_limit_, to.ids);
    if (count > list_limit_) return false;
    while (count > 0 && static_cast<std::size_t>(to.ids[count - 1]) >= vocabulary_size_) --count;
    // All are asked for before the first is waited for.
    for (std::size_t i = 0; i < count; ++i) dense_.prefetch(to.ids[i]);
    for (std::size_t i = 0; i < count; ++i) to.values[i] = dense_[to.ids[i]];
    list_.extend(count);
    compact_ = true;
    return true;
  }

  dense_row dense_;
  listed_row list_;  // the row in compact form
  std::size_t vocabulary_size_ = 0, list_limit_ = compact_limit;
  bool registered_ = false, compact_ = false, known_ = false, counted_ = false;
  row_status status_ = row_status::ok;
  token_id argmax_ = no_token;
  float max_ = gone;
  std::size_t size_ = 0;
  std::uint64_t stand_ = 1;  // another number after every change

  listed_row gathered_, sample_;
  float gathered_from_ = beyond;  // below `beyond`: gathered_ lists all tokens of the dense row from there on
  std::vector<entry> order_;      // the first tokens in descending order
  descending_sort sort_;
  std::vector<float> run_;
};

DECANT_STRICT_END

}  // namespace decant::detail
