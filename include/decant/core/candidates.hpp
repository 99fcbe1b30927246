// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/core/row_registry.hpp>
#include <decant/core/token.hpp>
#include <decant/math/exp2.hpp>
#include <decant/math/half.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// A token and its logit as it stands.
struct entry {
  token_id id;
  float logit;

  friend bool operator==(const entry&, const entry&) = default;
};

namespace detail {

template <class Row>
inline constexpr bool is_span = false;
template <class Element, std::size_t extent>
inline constexpr bool is_span<std::span<Element, extent>> = true;

}  // namespace detail

/// One row of logits on its way to a token: what every processor and sampler works on.
///
/// Binds to a caller's row without copying it, answers questions about the tokens that are left, takes edits and
/// narrowings, and ends in a law or a drawn token. Release, or destruction, leaves a mutable row as it was, bit for
/// bit. The same object serves row after row: in steady state nothing allocates. One thread at a time; the row must
/// stay alive and unchanged between bind and release.
///
/// Rules that hold everywhere:
///  - A token whose logit is -inf is gone, whether it came so or was banned, and gone is final (but see rewrite).
///  - Order is by logit, ties by lower id first. Narrowing keeps at least one token.
///  - A row that is empty or not finite when first read is bad: everything after that does nothing, draw gives
///  no_token.
///  - Denormal logits read as 0.
///
/// How: logits stand as a * z + b with z in memory and a, b in double, so temperature never touches memory. The row is
/// *dense* (the caller's floats, edited in place with an undo log while mutable, or through patched blocks of 64 where
/// const or 16 bits wide; a bit mask; and a bound (z, id) below which tokens are gone) until at most `compact_limit`
/// tokens are left after a narrowing, then *compact* (ids and z, in id order).
class candidates {
 public:
  /// A narrowing that leaves at most this many tokens lists them; also where draws change method.
  static constexpr std::size_t compact_limit = 4096;

  candidates() = default;
  /// With another limit for lists, which changes how things are stored and nothing else: for tests.
  explicit candidates(std::size_t list_limit) : list_limit_(list_limit) {}
  candidates(const candidates&) = delete;
  candidates& operator=(const candidates&) = delete;
  ~candidates() { release(); }

  // ---- the row

  /// Starts on a row: contiguous float, bfloat16 or float16, const or not; a row of non-const float is edited in place
  /// and restored. Only the first `vocabulary_size` entries exist, for rows padded by an engine. O(1).
  /// Misuse: an empty row, a vocabulary larger than the row, a mutable row that other candidates hold.
  template <class Row>
    requires requires(Row& row) { std::span(row); } &&
             (std::is_lvalue_reference_v<Row> || detail::is_span<std::remove_cv_t<Row>>)
  void bind(Row&& row, std::size_t vocabulary_size = whole_row) {
    using element = std::remove_reference_t<decltype(*std::data(row))>;
    bind_span(std::span<element>(row), vocabulary_size);
  }

  /// Ends the work on a row and restores it if it was edited. Binding another row does so too.
  void release() noexcept {
    for (std::size_t i = undo_.size(); i-- > 0;) mutable_row_[undo_[i].id] = undo_[i].logit;
    undo_.clear();
    if (registered_) detail::row_registry::leave(mutable_row_);
    registered_ = false;
    mutable_row_ = nullptr;
    row_ = {};
    vocabulary_size_ = 0;
    status_ = row_status::ok;
    forget_facts();
    clear_dense();
    ids_.clear();
    z_.clear();
  }

  /// The number of ids that exist: valid ids are 0 .. vocabulary_size() - 1.
  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary_size_; }

  // ---- questions

  /// Whether anything can be drawn. Reads the row if it has not been read since the last edit: O(n).
  [[nodiscard]] row_status status() { return read(), status_; }

  /// The number of tokens that are not gone. Reads the row.
  [[nodiscard]] std::size_t size() { return read(), size_; }

  /// The logit of a token as it stands, -inf if it is gone. Does not read the row. O(1) dense, O(log size) compact.
  [[nodiscard]] float logit(token_id id) const {
    check(id);
    return effective_float(stored(id));
  }

  /// Whether a token is still there.
  [[nodiscard]] bool contains(token_id id) const { return !is_gone(logit(id)); }

  /// The largest logit; -inf on a bad row. Reads the row.
  [[nodiscard]] double max() { return read() ? effective(max_) : static_cast<double>(gone); }

  /// ln of the sum of e^(power * logit): the normaliser for power 1, which is remembered. One pass in double.
  [[nodiscard]] double log_sum(double power = 1) {
    if (!read()) return static_cast<double>(gone);
    if (power == 1) return measure_mass(), log_sum_;
    double sum = 0;
    each([&](token_id, float z) { sum = math::rounded(sum + math::exp(math::product(power, relative(z)))); });
    return math::product(power, effective(max_)) + math::log(sum);
  }

  /// The entropy in nats of the distribution as it stands; remembered. One pass in double.
  [[nodiscard]] double entropy() {
    if (!read()) return 0;
    measure_mass();
    return entropy_;
  }

  /// The population standard deviation of the logits that are not gone. Two passes in double.
  [[nodiscard]] double sigma() {
    if (!read()) return 0;
    const double count = static_cast<double>(size_);
    double sum = 0, squares = 0;
    each([&](token_id, float z) { sum = math::rounded(sum + relative(z)); });
    const double mean = sum / count;
    each([&](token_id, float z) {
      const double d = relative(z) - mean;
      squares = math::rounded(squares + math::product(d, d));
    });
    return std::sqrt(squares / count);
  }

  /// The first `count` tokens by (logit descending, id ascending), fewer if fewer are left. A prefix grows on demand
  /// and is kept until an edit; the span is valid until the next call. O(size log count) for what is new.
  [[nodiscard]] std::span<const entry> descending(std::size_t count) {
    sort_prefix(count);
    listed_.clear();
    for (std::size_t i = 0; i < std::min(count, order_.size()); ++i) {
      listed_.push_back({order_[i].id, effective_float(order_[i].logit)});
    }
    return listed_;
  }

  /// The place of a token in descending order, from 1; 0 if it is gone. Reads the row; one pass.
  [[nodiscard]] std::size_t rank(token_id id) {
    check(id);
    const float z = stored(id);
    if (!read() || is_gone(z)) return 0;
    std::size_t place = 1;
    each([&](token_id other, float value) { place += before({other, value}, {id, z}); });
    return place;
  }

  /// Calls f(id, logit) for every token that is not gone, in ascending id.
  template <class F>
  void visit(F f) const {
    if (!bad()) each([&](token_id id, float z) { f(id, effective_float(z)); });
  }

  /// Calls f(id, logit - max()) for every token that is not gone, in ascending id: in double, for sums and noise, where
  /// a logit rounded to float would lose what a low temperature has spread out. Reads the row.
  template <class F>
  void visit_below_max(F f) {
    if (read()) each([&](token_id id, float z) { f(id, relative(z)); });
  }

  /// The natural logarithm of a token's probability, -inf if it is gone. Reads the row; one pass if its mass is not
  /// known.
  [[nodiscard]] double log_probability(token_id id) {
    check(id);
    const float z = stored(id);
    if (!read() || is_gone(z)) return static_cast<double>(gone);
    measure_mass();
    return relative(z) - math::log(mass_);
  }

  // ---- edits: a token that is gone stays gone

  /// Gives a token a logit; -inf bans it. The stored value is rounded to float, and stays finite if it was.
  void set(token_id id, float logit) {
    check(id);
    if (bad() || is_gone(stored(id))) return;
    if (!math::is_finite(logit)) return put(id, logit);  // a ban, or bad data that the next reading will find
    put_scaled(id, (static_cast<double>(logit) - shift_) / scale_, [&] { put(id, logit); });
  }

  /// Adds to a token's logit; -inf bans it. The stored value is rounded to float, and stays finite if it was.
  void add(token_id id, float amount) {
    check(id);
    if (bad() || !math::is_finite(stored(id))) return;  // gone stays gone, and bad data stays bad
    if (!math::is_finite(amount)) return put(id, amount);
    put_scaled(id, static_cast<double>(stored(id)) + static_cast<double>(amount) / scale_,
               [&] { put(id, math::saturated(static_cast<double>(stored(id)) + static_cast<double>(amount))); });
  }

  /// Bans a token.
  void ban(token_id id) { set(id, gone); }

  /// logit = scale * logit + shift for every token, in O(1). `scale` > 0: order and ties stay.
  void affine(double scale, double shift = 0) {
    DECANT_ASSERT(scale > 0 && math::is_finite(scale) && math::is_finite(shift),
                  "affine needs finite numbers, scale > 0");
    if (bad()) return;
    // Past 2^400 either way nothing changes any more: the law is the argmax or uniform. Within, no product overflows.
    scale_ = std::clamp(scale_ * scale, 0x1p-400, 0x1p400);
    shift_ = std::clamp(math::product(shift_, scale) + shift, -0x1p900, 0x1p900);
    mass_known_ = false;
  }

  /// logit = f(id, logit) for every token that is not gone: for dense maps that are not affine. O(n), into a workspace
  /// row; f may ban by returning -inf.
  template <class F>
  void transform(F f) {
    if (bad()) return;
    if (compact_) {
      for (std::size_t i = 0; i < ids_.size(); ++i) {
        if (!is_gone(z_[i])) z_[i] = math::flush_denormal(f(ids_[i], effective_float(z_[i])));
      }
    } else {
      write_workspace([&](token_id id, float z) { return is_gone(z) ? gone : f(id, effective_float(z)); });
    }
    scale_ = 1;
    shift_ = 0;
    forget_facts();
  }

  /// As transform, but for every id of the vocabulary, gone ones passed as -inf: the only call that can bring a token
  /// back, or make a bad row good. For compatibility with libraries whose processors do so. O(n).
  template <class F>
  void rewrite(F f) {
    write_workspace([&](token_id id, float z) { return f(id, effective_float(z)); });
    compact_ = false;
    scale_ = 1;
    shift_ = 0;
    status_ = row_status::ok;
    forget_facts();
  }

  /// Keeps only the given ids; a bit mask in the form that constrained decoding fills: bit id % 64 of word id / 64.
  /// Ids beyond the mask are gone. May empty the row. O(n / 64) dense.
  void allow(std::span<const std::uint64_t> mask) {
    if (bad()) return;
    const auto word = [&](std::size_t b) { return b < mask.size() ? mask[b] : std::uint64_t{0}; };
    if (compact_) {
      for (std::size_t i = 0; i < ids_.size(); ++i) {
        const auto id = static_cast<std::size_t>(ids_[i]);
        if ((word(id / 64) >> (id % 64) & 1) == 0) z_[i] = gone;
      }
    } else {
      use_mask();
      for (std::size_t b = 0; b < mask_.size(); ++b) mask_[b] &= word(b);
    }
    forget_facts();
  }

  /// Keeps only the given ids, in any order. May empty the row. O(n / 64 + ids) dense.
  void allow(std::span<const token_id> ids) {
    const std::size_t words = (vocabulary_size_ + 63) / 64;
    allowed_.assign(words, 0);
    for (const token_id id : ids) {
      check(id);
      allowed_[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (static_cast<std::size_t>(id) % 64);
    }
    allow(std::span<const std::uint64_t>(allowed_));
  }

  // ---- narrowings: keep at least one token, ties by lower id

  /// Keeps the `count` largest, at least one. Reads the row.
  void keep_largest(std::size_t count) {
    if (!read() || count >= size_) return;
    if (count <= 1) return keep_argmax();
    sort_prefix(count);
    cut(order_[count - 1], count);
  }

  /// Keeps logits >= threshold, and the largest `min_keep` (at least one) in any case. Reads the row.
  void keep_above(double threshold, std::size_t min_keep = 1) {
    if (!read()) return;
    std::size_t count = 0;
    entry lowest{-1, std::numeric_limits<float>::max()};
    each([&](token_id id, float z) {
      if (!(effective(z) >= threshold)) return;
      ++count;
      if (z <= lowest.logit) lowest = {id, z};
    });
    if (count == size_) return;
    if (count < std::max<std::size_t>(min_keep, 1)) return keep_largest(min_keep);
    cut(lowest, count);
  }

  /// Keeps the smallest set of probability mass >= p, filled in descending order, or, with a finite `around`, in
  /// ascending |logit - around| with ties by lower id; and at least `min_keep` (at least one) tokens of that order.
  /// p >= 1 keeps all. Masses are sums of double exponentials, which decide at the border. Reads the row.
  void keep_mass(double p, std::size_t min_keep = 1, double around = from_the_top) {
    if (!read() || p >= 1) return;
    min_keep = std::max<std::size_t>(min_keep, 1);
    if (math::is_finite(around)) return keep_mass_around(p, min_keep, around);
    measure_mass();
    const double wanted = math::product(p, mass_);
    double mass = 0;
    std::size_t kept = 0;
    for (std::size_t reach = 32; kept < size_; reach *= 4) {
      sort_prefix(reach);
      for (; kept < order_.size();) {
        mass = math::rounded(mass + math::exp(relative(order_[kept].logit)));
        ++kept;
        if (mass >= wanted && kept >= min_keep) return kept < size_ ? cut(order_[kept - 1], kept) : void();
      }
    }
  }

  // ---- ends

  /// The distribution as it stands, as a value. Tokens whose weight underflows (probability below 2^-126 of the
  /// largest) are left out. Empty on a bad row. O(n).
  [[nodiscard]] law probabilities() {
    law out;
    probabilities(out);
    return out;
  }

  /// The same into an existing law, whose storage is reused.
  void probabilities(law& out) {
    out.clear();
    if (!read()) return;
    const math::weight_map weight(max_, scale_);
    each([&](token_id id, float z) {
      if (const float w = weight(z); w > 0) {
        out.ids.push_back(id);
        out.weights.push_back(static_cast<double>(w));
      }
    });
    if (drawn_by_rejection()) {
      out.block_bounds.assign((vocabulary_size_ + 63) / 64, 0);
      each_block([&](std::size_t b, float peak) { out.block_bounds[b] = block_bound(weight(peak)); });
    }
    out.total = sum_of_weights(out.ids, out.weights, blocks_);
  }

  /// Draws a token from the distribution as it stands, no_token on a bad row; a single token left needs no random
  /// number. Equals drawing from probabilities(). Reads the row.
  [[nodiscard]] token_id draw(const draw_stream& draws, purpose why = purpose::sample, std::uint32_t index = 0) {
    if (!read()) return no_token;
    if (size_ == 1) return argmax();
    if (draws.hook() != nullptr) {
      probabilities(hooked_);
      return decant::draw(hooked_, draws, why, index, blocks_);
    }
    const math::weight_map weight(max_, scale_);
    const bool reject = drawn_by_rejection();
    blocks_.clear();
    if (reject) {
      each_block([&](std::size_t b, float peak) {
        if (const float w = weight(peak); w > 0) blocks_.push(static_cast<std::uint32_t>(b), block_bound(w), 0);
      });
    } else {
      push_sums(weight);
    }
    blocks_.build();
    return detail::draw_from_blocks(blocks_, reject, draws, why, index,
                                    [&](const math::sum_tree::node& leaf, math::block_weights& out) {
                                      fill_block(leaf.index, leaf.begin, weight, out);
                                    });
  }

  /// The token of the largest logit, the lowest id among equals; no_token on a bad row. Reads the row.
  [[nodiscard]] token_id argmax() {
    if (!read()) return no_token;
    return argmax_;
  }

 private:
  static constexpr std::size_t whole_row = std::numeric_limits<std::size_t>::max();
  static constexpr double from_the_top = std::bit_cast<double>(0x7FF0000000000000U);  // +infinity
  static constexpr std::uint32_t not_patched = std::numeric_limits<std::uint32_t>::max();

  /// The caller's row, or the workspace row, in whichever width it has.
  struct row_view {
    const float* f32 = nullptr;
    const bfloat16* bf16 = nullptr;
    const float16* f16 = nullptr;

    [[nodiscard]] float operator[](std::size_t i) const noexcept {
      return math::flush_denormal(f32 != nullptr    ? f32[i]
                                  : bf16 != nullptr ? math::to_float(bf16[i])
                                                    : math::to_float(f16[i]));
    }
  };

  static bool before(const entry& x, const entry& y) noexcept {
    return x.logit > y.logit || (x.logit == y.logit && x.id < y.id);
  }

  // ---- binding

  void bind_span(std::span<float> row, std::size_t vocabulary_size) {
    begin({.f32 = row.data()}, row.size(), vocabulary_size);
    const auto answer = detail::row_registry::enter(row.data());
    DECANT_ASSERT(answer != detail::row_registry::answer::already_bound, "two candidates on one mutable row");
    registered_ = answer == detail::row_registry::answer::watched;
    mutable_row_ = row.data();
  }
  void bind_span(std::span<const float> row, std::size_t vocabulary_size) {
    begin({.f32 = row.data()}, row.size(), vocabulary_size);
  }
  void bind_span(std::span<const bfloat16> row, std::size_t vocabulary_size) {
    begin({.bf16 = row.data()}, row.size(), vocabulary_size);
  }
  void bind_span(std::span<const float16> row, std::size_t vocabulary_size) {
    begin({.f16 = row.data()}, row.size(), vocabulary_size);
  }

  void begin(row_view row, std::size_t row_size, std::size_t vocabulary_size) {
    release();
    if (vocabulary_size == whole_row) vocabulary_size = row_size;
    DECANT_ASSERT(vocabulary_size > 0, "a row needs at least one logit");
    DECANT_ASSERT(vocabulary_size <= row_size, "the vocabulary is larger than the row");
    row_ = row;
    vocabulary_size_ = vocabulary_size;
    in_workspace_ = false;
    compact_ = false;
    bounded_ = false;
    narrowed_ = false;
    scale_ = 1;
    shift_ = 0;
    status_ = row_status::ok;
    forget_facts();
  }

  void check(token_id id) const {
    DECANT_ASSERT(id >= 0 && static_cast<std::size_t>(id) < vocabulary_size_, "token id outside the vocabulary");
  }

  // ---- stored values

  [[nodiscard]] double effective(float z) const noexcept {
    return is_gone(z) ? static_cast<double>(gone) : math::product(scale_, static_cast<double>(z)) + shift_;
  }

  [[nodiscard]] float effective_float(float z) const noexcept {
    if (!math::is_finite(z) || (scale_ == 1 && shift_ == 0)) return z;
    return math::flush_denormal(math::saturated(effective(z)));
  }

  /// effective(z) - effective(max), without what the shift would round away.
  [[nodiscard]] double relative(float z) const noexcept {
    return math::product(scale_, static_cast<double>(z) - static_cast<double>(max_));
  }

  [[nodiscard]] bool masked_out(std::size_t id) const noexcept {
    return !mask_.empty() && (mask_[id / 64] >> (id % 64) & 1) == 0;
  }

  [[nodiscard]] bool outside_bound(token_id id, float z) const noexcept {
    return bounded_ && !(z > bound_.logit || (z == bound_.logit && id <= bound_.id));
  }

  /// A dense value with patches applied, before mask and bound.
  [[nodiscard]] float dense(std::size_t id) const noexcept {
    if (!patch_of_.empty() && patch_of_[id / 64] != not_patched) {
      return patches_[std::size_t{patch_of_[id / 64]} * 64 + id % 64];
    }
    return row_[id];
  }

  [[nodiscard]] float stored(token_id id) const noexcept {
    if (compact_) {
      const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
      return found != ids_.end() && *found == id ? z_[static_cast<std::size_t>(found - ids_.begin())] : gone;
    }
    const auto i = static_cast<std::size_t>(id);
    if (masked_out(i)) return gone;
    const float z = dense(i);
    return outside_bound(id, z) ? gone : z;
  }

  /// Calls f(id, z) for every token that is not gone, ascending.
  template <class F>
  void each(F f) const {
    if (compact_) {
      for (std::size_t i = 0; i < ids_.size(); ++i) {
        if (!is_gone(z_[i])) f(ids_[i], z_[i]);
      }
      return;
    }
    for (std::size_t first = 0; first < vocabulary_size_; first += 64) {
      if (!mask_.empty() && mask_[first / 64] == 0) continue;
      each_in_block(first / 64, f);
    }
  }

  template <class F>
  void each_in_block(std::size_t b, F f) const {
    const std::size_t end = std::min(vocabulary_size_, b * 64 + 64);
    for (std::size_t i = b * 64; i < end; ++i) {
      if (masked_out(i)) continue;
      const float z = dense(i);
      if (!is_gone(z) && !outside_bound(static_cast<token_id>(i), z)) f(static_cast<token_id>(i), z);
    }
  }

  /// Calls f(block, largest z in it) for every block of 64 ids that has a token, ascending.
  template <class F>
  void each_block(F f) const {
    std::size_t block = 0;
    float peak = gone;
    each([&](token_id id, float z) {
      if (const std::size_t b = static_cast<std::size_t>(id) / 64; b != block) {
        if (!is_gone(peak)) f(block, peak);
        block = b;
        peak = gone;
      }
      peak = is_gone(peak) || z > peak ? z : peak;
    });
    if (!is_gone(peak)) f(block, peak);
  }

  // ---- facts

  /// Reads the row if an edit has happened since; whether it is good.
  bool read() {
    if (known_) return status_ == row_status::ok;
    DECANT_ASSERT(vocabulary_size_ > 0, "no row is bound");
    known_ = true;
    size_ = 0;
    max_ = gone;
    argmax_ = no_token;
    bool finite = true;
    each([&](token_id id, float z) {
      ++size_;
      finite = finite && math::is_finite(z);
      if (argmax_ == no_token || z > max_) {
        max_ = z;
        argmax_ = id;
      }
    });
    status_ = !finite ? row_status::not_finite : size_ == 0 ? row_status::empty : row_status::ok;
    return status_ == row_status::ok;
  }

  /// Known to be bad. Edits do not read: they only heed what has been found.
  [[nodiscard]] bool bad() const noexcept { return status_ != row_status::ok; }

  void forget_facts() noexcept {
    if (bad()) return;
    known_ = false;
    mass_known_ = false;
    order_.clear();
  }

  void measure_mass() {
    if (mass_known_) return;
    mass_known_ = true;
    double sum = 0, weighted = 0;
    each([&](token_id, float z) {
      const double below = relative(z), w = math::exp(below);
      sum = math::rounded(sum + w);
      weighted = math::rounded(weighted + math::product(w, below));
    });
    mass_ = sum;
    log_sum_ = effective(max_) + math::log(sum);
    // H = ln Z - E[logit - top]; rounding may leave a tiny negative where it is 0.
    entropy_ = std::max(0.0, math::log(sum) - weighted / sum);
  }

  void sort_prefix(std::size_t count) {
    if (!read()) return order_.clear();
    count = std::min(count, size_);
    if (order_.size() >= count) return;
    // Grow by more than was asked, so that a caller who walks down pays for few sorts.
    count = std::min(size_, std::max({count, 2 * order_.size(), std::size_t{32}}));
    order_.clear();
    each([&](token_id id, float z) { order_.push_back({id, z}); });
    const auto end = order_.begin() + static_cast<std::ptrdiff_t>(count);
    if (count < order_.size()) std::nth_element(order_.begin(), end - 1, order_.end(), before);
    std::sort(order_.begin(), end, before);
    order_.resize(count);
  }

  // ---- narrowing

  /// Keeps what is not after `last` in descending order: `count` tokens, which include the largest.
  void cut(entry last, std::size_t count) {
    narrowed_ = true;
    mass_known_ = false;
    if (order_.size() > count) order_.resize(count);
    const auto inside = [&](token_id id, float z) { return z > last.logit || (z == last.logit && id <= last.id); };
    if (compact_) {
      std::size_t kept = 0;
      for (std::size_t i = 0; i < ids_.size(); ++i) {
        if (is_gone(z_[i]) || !inside(ids_[i], z_[i])) continue;
        ids_[kept] = ids_[i];
        z_[kept++] = z_[i];
      }
      ids_.resize(kept);
      z_.resize(kept);
    } else if (count <= list_limit_) {
      ids_.clear();
      z_.clear();
      each([&](token_id id, float z) {
        if (!inside(id, z)) return;
        ids_.push_back(id);
        z_.push_back(z);
      });
      become_compact();
    } else {
      bounded_ = true;
      bound_ = last;
    }
    size_ = count;
  }

  /// The scan has found the argmax: no further pass.
  void keep_argmax() {
    narrowed_ = true;
    mass_known_ = false;
    order_.assign(1, {argmax_, max_});
    ids_.assign(1, argmax_);
    z_.assign(1, max_);
    size_ = 1;
    become_compact();
  }

  void keep_mass_around(double p, std::size_t min_keep, double around) {
    measure_mass();
    const double wanted = math::product(p, mass_);
    near_.clear();
    each([&](token_id id, float z) { near_.push_back({std::abs(effective(z) - around), id, z}); });
    std::sort(near_.begin(), near_.end(), [](const distant& x, const distant& y) {
      return x.distance < y.distance || (x.distance == y.distance && x.id < y.id);
    });
    double mass = 0;
    std::size_t kept = 0;
    while (kept < near_.size() && (mass < wanted || kept < min_keep)) {
      mass = math::rounded(mass + math::exp(relative(near_[kept].z)));
      ++kept;
    }
    if (kept == size_) return;
    near_.resize(kept);
    std::sort(near_.begin(), near_.end(), [](const distant& x, const distant& y) { return x.id < y.id; });
    keep_listed();
  }

  /// Keeps what near_ lists, in id order. A set that is neither small nor above a bound becomes a workspace row.
  void keep_listed() {
    narrowed_ = true;
    if (near_.size() <= list_limit_) {
      ids_.clear();
      z_.clear();
      for (const distant& d : near_) {
        ids_.push_back(d.id);
        z_.push_back(d.z);
      }
      become_compact();
    } else {
      std::size_t next = 0;
      write_workspace([&](token_id id, float z) {
        if (next == near_.size() || near_[next].id != id) return gone;
        ++next;
        return z;
      });
    }
    forget_facts();
  }

  void become_compact() noexcept {
    compact_ = true;
    clear_dense();
  }

  void clear_dense() noexcept {
    bounded_ = false;
    mask_.clear();
    patch_of_.clear();
    patches_.clear();
  }

  // ---- editing

  /// Stores a value that a and b have been divided out of. Where a float cannot hold it, but could hold all logits as
  /// they stand, folds a and b into the stored values first and calls `plain`.
  template <class Plain>
  void put_scaled(token_id id, double z, Plain plain) {
    if (scale_ == 1 && shift_ == 0) return plain();
    const double magnitude = std::abs(z);
    const bool holds = magnitude <= static_cast<double>(std::numeric_limits<float>::max()) &&
                       (magnitude >= static_cast<double>(std::numeric_limits<float>::min()) || z == 0);
    if (holds || !logits_fit_a_float()) return put(id, math::saturated(z));
    transform([](token_id, float logit) { return logit; });
    plain();
  }

  [[nodiscard]] bool logits_fit_a_float() const {
    bool fit = true;
    each([&](token_id, float z) {
      fit = fit && effective(z) <= static_cast<double>(std::numeric_limits<float>::max());
    });
    return fit;
  }

  void put(token_id id, float z) {
    z = math::flush_denormal(z);
    if (compact_) {
      const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
      z_[static_cast<std::size_t>(found - ids_.begin())] = z;
    } else {
      put_dense(id, z);
    }
    forget_facts();
  }

  void put_dense(token_id id, float z) {
    const auto i = static_cast<std::size_t>(id);
    // An edited token must not be judged by a bound that it was let through before: settle the bound's verdicts.
    if (bounded_) write_workspace([](token_id, float value) { return value; });
    if (in_workspace_) {
      workspace_[i] = z;
    } else if (mutable_row_ != nullptr) {
      undo_.push_back({id, mutable_row_[i]});
      mutable_row_[i] = z;
    } else {
      patch(i / 64)[i % 64] = z;
    }
  }

  /// The private copy of a block of a row that must not be written.
  float* patch(std::size_t b) {
    if (patch_of_.empty()) patch_of_.assign((vocabulary_size_ + 63) / 64, not_patched);
    if (patch_of_[b] == not_patched) {
      patch_of_[b] = static_cast<std::uint32_t>(patches_.size() / 64);
      for (std::size_t i = b * 64; i < b * 64 + 64; ++i) patches_.push_back(i < vocabulary_size_ ? row_[i] : gone);
    }
    return patches_.data() + patch_of_[b] * std::size_t{64};
  }

  /// Makes the workspace the row, with f(id, z) for every id, gone ones passed as -inf.
  template <class F>
  void write_workspace(F f) {
    workspace_.resize(vocabulary_size_);
    std::size_t at = 0;
    for (std::size_t i = 0; i < vocabulary_size_; ++i) {
      float z = gone;
      if (!compact_) {
        z = stored(static_cast<token_id>(i));
      } else if (at < ids_.size() && static_cast<std::size_t>(ids_[at]) == i) {
        z = z_[at++];
      }
      workspace_[i] = math::flush_denormal(f(static_cast<token_id>(i), z));
    }
    row_ = {.f32 = workspace_.data()};
    in_workspace_ = true;
    clear_dense();
  }

  void use_mask() {
    if (!mask_.empty()) return;
    mask_.assign((vocabulary_size_ + 63) / 64, ~std::uint64_t{0});
    if (vocabulary_size_ % 64 != 0) mask_.back() = (std::uint64_t{1} << (vocabulary_size_ % 64)) - 1;
  }

  // ---- drawing

  /// The one bit that decides how a law is drawn: nothing has narrowed it, and it is too long to weigh whole.
  [[nodiscard]] bool drawn_by_rejection() const noexcept { return !narrowed_ && size_ > compact_limit; }

  /// At least the sum of 64 weights none of which is above `peak` by more than the rounding of the exponential.
  static double block_bound(float peak) noexcept { return 64.0 * (1.0 + 0x1p-20) * static_cast<double>(peak); }

  void push_sums(const math::weight_map& weight) {
    math::block_weights slots;
    const auto finish = [&](std::size_t b, std::size_t count, float only, std::size_t tag) {
      const double sum = count == 1 ? static_cast<double>(only) : math::sum_block(slots);
      if (sum > 0) blocks_.push(static_cast<std::uint32_t>(b), sum, static_cast<std::uint32_t>(tag));
    };
    if (compact_) {
      for (std::size_t begin = 0, end = 0; begin < ids_.size(); begin = end) {
        const token_id b = ids_[begin] / 64;
        std::size_t count = 0;
        float only = 0;
        slots.fill(0);
        for (end = begin; end < ids_.size() && ids_[end] / 64 == b; ++end) {
          if (is_gone(z_[end])) continue;
          only = weight(z_[end]);
          slots[static_cast<std::size_t>(ids_[end] % 64)] = static_cast<double>(only);
          ++count;
        }
        if (count > 0) finish(static_cast<std::size_t>(b), count, only, begin);
      }
      return;
    }
    for (std::size_t b = 0; b * 64 < vocabulary_size_; ++b) {
      fill_block(b, 0, weight, slots);
      finish(b, 64, 0, 0);
    }
  }

  /// The weights of block b; `begin` is its first place in compact form.
  void fill_block(std::size_t b, std::size_t begin, const math::weight_map& weight, math::block_weights& out) const {
    out.fill(0);
    const auto store = [&](token_id id, float z) {
      out[static_cast<std::size_t>(id) % 64] = static_cast<double>(weight(z));
    };
    if (!compact_) return each_in_block(b, store);
    for (std::size_t i = begin; i < ids_.size() && static_cast<std::size_t>(ids_[i]) / 64 == b; ++i) {
      if (!is_gone(z_[i])) store(ids_[i], z_[i]);
    }
  }

  struct distant {
    double distance;
    token_id id;
    float z;
  };

  row_view row_;
  float* mutable_row_ = nullptr;
  std::size_t vocabulary_size_ = 0, list_limit_ = compact_limit;
  bool registered_ = false, in_workspace_ = false, compact_ = false, bounded_ = false, narrowed_ = false;
  bool known_ = false, mass_known_ = false;
  row_status status_ = row_status::ok;
  token_id argmax_ = no_token;
  float max_ = gone;
  entry bound_{};
  std::size_t size_ = 0;
  double scale_ = 1, shift_ = 0;
  double mass_ = 0, log_sum_ = 0, entropy_ = 0;

  std::vector<entry> undo_;              // what stood in the mutable row, oldest first
  std::vector<std::uint32_t> patch_of_;  // per block: its place in patches_; empty while there are none
  std::vector<float> patches_;           // blocks of 64
  std::vector<std::uint64_t> mask_;      // bit set: allowed; empty while all are
  std::vector<float> workspace_;         // the row, once a dense map or an edit under a bound has been made
  std::vector<token_id> ids_;            // compact form, ascending; a ban leaves -inf in z_ until the next narrowing
  std::vector<float> z_;
  std::vector<entry> order_, listed_;  // descending prefix: stored, and as handed out
  std::vector<distant> near_;
  std::vector<std::uint64_t> allowed_;
  math::sum_tree blocks_;
  law hooked_;
};

}  // namespace decant
