// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <decant/core/dense_row.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/core/listed_row.hpp>
#include <decant/core/token.hpp>
#include <decant/core/token_counts.hpp>
#include <decant/core/weighed_row.hpp>
#include <decant/math/exp2.hpp>
#include <decant/math/half.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/strict.hpp>

namespace decant {

DECANT_STRICT_BEGIN

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
/// *dense* (detail::dense_row: the caller's memory, with the largest value of every block of 64 known after one pass)
/// until at most `compact_limit` tokens are left after a narrowing, then *compact* (detail::listed_row: ids and z side
/// by side, in id order). Nothing is sorted to narrow: values are bisected by counting, masses by summing.
///
/// Where a normaliser matters, exponentials in double are the definition, and the last resort: bounds of it are taken
/// from cheaper sums, and each only decides what it proves.
class candidates : private detail::weighed_row {
 public:
  using stored_row::compact_limit;
  using weighed_row::law_bounds;

  candidates() = default;
  /// With another limit for lists, which changes how things are stored and nothing else: for tests.
  explicit candidates(std::size_t list_limit) : weighed_row(list_limit) {}
  candidates(const candidates&) = delete;
  candidates& operator=(const candidates&) = delete;

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
    scale_ = 1;
    shift_ = 0;
  }

  /// Ends the work on a row and restores it if it was edited. Binding another row does so too.
  void release() noexcept { stored_row::release(); }

  /// The number of ids that exist: valid ids are 0 .. vocabulary_size() - 1.
  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary_size_; }

  // ---- questions

  /// Whether anything can be drawn. Reads the row if it has not been read since the last edit: O(n).
  [[nodiscard]] row_status status() { return read(), status_; }

  /// The number of tokens that are not gone. Reads the row.
  [[nodiscard]] std::size_t size() { return read() ? count() : 0; }

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
    if (power == 1) return measure_mass(), effective(max_) + math::log(mass_);
    return math::product(power, effective(max_)) + log_mass(power);
  }

  /// ln of the sum of e^(power * (logit - max())): without what a far maximum would round away. 0 on a bad row.
  [[nodiscard]] double log_mass(double power = 1) {
    if (!read()) return 0;
    if (power == 1) return measure_mass(), math::log(mass_);
    return math::log(power_mass(power));
  }

  /// log_sum() within 4e-6, at an eighth of the price on a long row: summed up in float rather than in double, along
  /// with the pass that reads the row if it has not been read. The same bits on every instruction set, and whatever was
  /// asked before. Reads the row; one pass.
  [[nodiscard]] double quick_log_sum() {
    const double mass = quick_log_mass();
    return bad() ? static_cast<double>(gone) : effective(max_) + mass;
  }

  /// log_mass() in the same way. 0 on a bad row.
  [[nodiscard]] double quick_log_mass() { return read_for_swift_sum() ? math::log(swift_mass()) : 0; }

  /// The entropy in nats of the distribution as it stands; remembered. One pass in double.
  [[nodiscard]] double entropy() {
    if (!read()) return 0;
    measure_mass();
    return entropy_value();
  }

  /// entropy() within 1e-4, at a sixth of the price on a long row, as quick_log_sum().
  [[nodiscard]] double quick_entropy() {
    if (!read()) return 0;
    return can_sum_quickly() ? quick_entropy_value() : entropy();
  }

  /// Whether entropy() is above a limit: by the quick one where that decides.
  [[nodiscard]] bool entropy_exceeds(double limit) {
    const double quick = quick_entropy();
    if (mass_known() || std::abs(quick - limit) <= entropy_error) return entropy() > limit;
    return quick > limit;
  }

  /// The population standard deviation of the logits that are not gone. Two passes in double.
  [[nodiscard]] double sigma() {
    if (!read()) return 0;
    const double count = static_cast<double>(this->count());
    if (!compact_ && vocabulary_size_ > compact_limit) {
      // From the largest logit: no cancellation beyond the number of tokens.
      math::portable::moment_sums sums{};
      each_run([&](const float* values, std::size_t size) {
        const math::portable::moment_sums more = math::kernels().moments(values, size, max_);
        sums.sum = math::rounded(sums.sum + more.sum);
        sums.squares = math::rounded(sums.squares + more.squares);
      });
      const double mean = sums.sum / count;
      return scale_ * std::sqrt(std::max(0.0, sums.squares / count - math::product(mean, mean)));
    }
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
    listed_.resize(std::min(count, order_.size()));
    for (std::size_t i = 0; i < listed_.size(); ++i) {
      listed_[i] = {order_[i].id, effective_float(order_[i].logit)};
    }
    return listed_;
  }

  /// e^(logit - max()) of the same tokens, in double: none on a bad row. The span is valid until the next call.
  [[nodiscard]] std::span<const double> descending_weights(std::size_t count) {
    if (!read()) return {};
    return weigh_prefix(count);
  }

  /// The place of a token in descending order, from 1; 0 if it is gone. Reads the row; one pass.
  [[nodiscard]] std::size_t rank(token_id id) {
    check(id);
    const float z = stored(id);
    if (!read() || is_gone(z)) return 0;
    std::size_t place = 1;
    each([&](token_id other, float value) { place += detail::before({other, value}, {id, z}); });
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

  /// The same for some tokens: pick(first, most) says, by bits, which of the 64 ids from `first` on matter, none of
  /// whose tokens has e^(logit - max()) > most. Reads the row.
  template <class Pick, class F>
  void visit_below_max(Pick pick, F f) {
    if (!read()) return;
    const math::weight_map weight(max_, scale_);
    block_tops_.resize(std::max(block_tops_.size(), dense_.blocks()));
    bound_blocks(weight, std::span(block_tops_).first(dense_.blocks()));
    const std::span<const float> peaks = compact_ ? list_peaks_ : dense_.peaks();
    for (std::size_t b = 0; b < dense_.blocks(); ++b) {
      if (is_gone(peaks[b])) continue;
      // Bounds are of weights in float: of exponents that are up to 126, three roundings; and lost below 2^-126.
      const double most = (1 + 1e-4) * block_tops_[b] / 64 + 0x1p-125;
      visit_picked(b, pick(static_cast<token_id>(64 * b), most), f);
    }
  }

  /// Calls f(ids, weights) for 64 tokens at most at a time, from an id on, in ascending id, until f says false. Weights
  /// are e^(logit - max()) in double; 0 where a token is gone, or a weight too small for a double. Reads the row.
  template <class F>
  void visit_weights(F f, token_id from = 0) {
    if (!read()) return;
    if (compact_) {
      static_cast<void>(nucleus_.weigh(list_, max_, scale_));
      const std::span<const double> weights = nucleus_.weights();
      for (std::size_t i = list_.first_from(from); i < list_.size(); i += 64) {
        const std::size_t count = std::min<std::size_t>(64, list_.size() - i);
        if (!f(list_.ids().subspan(i, count), weights.subspan(i, count))) return;
      }
      return;
    }
    float buffer[64], values[64];
    double weights[64];
    token_id ids[64];
    for (std::size_t b = static_cast<std::size_t>(from) / 64; b < dense_.blocks(); ++b) {
      if (is_gone(dense_.peaks()[b])) continue;
      const detail::dense_row::block at = dense_.block_at(b, buffer);
      const auto first = static_cast<token_id>(64 * b);
      const std::uint64_t skipped = first < from ? (std::uint64_t{1} << (from - first)) - 1 : 0,
                          keep = at.keep & ~skipped;
      for (std::size_t i = 0; i < 64; ++i) {
        values[i] = math::flush_denormal(at.values[i]);
        ids[i] = first + static_cast<token_id>(i);
      }
      for (std::uint64_t out = ~keep; out != 0; out &= out - 1) values[std::countr_zero(out)] = gone;
      math::kernels().exps(values, 64, max_, scale_, weights);
      if (!f(std::span<const token_id>(ids), std::span<const double>(weights))) return;
    }
  }

  /// The logit of a token in double, less max(); -inf if it is gone. Reads the row. As visit_below_max, for one token.
  [[nodiscard]] double below_max(token_id id) {
    check(id);
    const float z = stored(id);
    return !read() || is_gone(z) ? static_cast<double>(gone) : relative(z);
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

  /// log_probability() within 4e-6, at an eighth of the price on a long row, as quick_log_sum().
  [[nodiscard]] double quick_log_probability(token_id id) {
    check(id);
    const float z = stored(id);
    if (!read_for_swift_sum() || is_gone(z)) return static_cast<double>(gone);
    return relative(z) - math::log(swift_mass());
  }

  /// What weights and their sum are in the law of a row: a measure for its tokens that later narrowings leave alone.
  struct law_measure {
    math::weight_map weight;
    double total;
  };

  /// The measure of the law as it stands: its total, on long rows within 4e-6 of it and quickly, with the same bits on
  /// every instruction set. A bad row's total is 0. One pass, along which the row is read if it has not been.
  [[nodiscard]] law_measure measure_law() {
    if (!read_for_swift_sum()) return {math::weight_map(0, 1), 0};
    const math::weight_map weight(max_, scale_);
    if (can_sum_quickly()) return {weight, swift_mass()};
    double total = 0;
    each_weight(weight, [&](token_id, double w) { total = math::rounded(total + w); });
    return {weight, total};
  }

  /// The natural logarithm of the probability that a token, whose logit stands as it stood, had in that law.
  [[nodiscard]] double log_probability(token_id id, const law_measure& measure) const {
    check(id);
    const float z = stored(id);
    return is_gone(z) ? static_cast<double>(gone) : math::log(static_cast<double>(measure.weight(z)) / measure.total);
  }

  /// Whether a token that is not gone is NaN or +inf. Looks without reading: a row does not become bad by this, and one
  /// that was found bad says no. One pass, which the next reading is spared.
  [[nodiscard]] bool holds_invalid() { return !known_ && !bad() && look_for_bad(); }

  // ---- edits: a token that is gone stays gone

  /// How often each token occurs in a history: distinct ones, in order of first appearance; valid until the next call.
  /// Counted once for all who ask about the same history, or about one that goes on from it. O(size).
  std::span<const token_counts::item> occurrences(std::span<const token_id> history) { return counts_.count(history); }

  /// logit = f(item, logit) for the token of every item (an id, or what has a member `id`), one after the other, unless
  /// it is gone; -inf bans it. A stored value is rounded to float, and stays finite if it was. Many at once are quicker
  /// than one by one.
  template <class Items, class F>
  void edit_each(const Items& items, F f) {
    if (!expect_edits(items)) return;
    if (scale_ == 1 && shift_ == 0) return change_each(items, f);
    for (const auto& item : items) {
      const token_id id = detail::id_of(item);
      const float z = stored(id);
      if (is_gone(z)) continue;
      const float logit = f(item, effective_float(z));
      if (math::is_finite(logit)) {
        put_scaled(id, (static_cast<double>(logit) - shift_) / scale_, [&] { put(id, logit); });
      } else {
        put(id, logit);  // a ban, or bad data that the next reading will find
      }
    }
  }

  /// Adds amount_of(item), a float, to the logit of every item's token, as edit_each. Bad data stays bad.
  template <class Items, class F>
  void add_each(const Items& items, F amount_of) {
    if (!expect_edits(items)) return;
    const auto sum = [](const float& z, const float& amount) {
      return !math::is_finite(z)        ? z
             : !math::is_finite(amount) ? amount
                                        : math::saturated(static_cast<double>(z) + static_cast<double>(amount));
    };
    if (scale_ == 1 && shift_ == 0) {
      return change_each(items, [&](const auto& item, const float& z) {
        const float amount = amount_of(item);
        return sum(z, amount);
      });
    }
    for (const auto& item : items) {
      const token_id id = detail::id_of(item);
      const float z = stored(id), amount = amount_of(item);
      if (!math::is_finite(z)) continue;
      if (!math::is_finite(amount)) {
        put(id, amount);
        continue;
      }
      put_scaled(id, static_cast<double>(z) + static_cast<double>(amount) / scale_,
                 [&] { put(id, sum(stored(id), amount)); });
    }
  }

  /// Gives a token a logit; -inf bans it.
  void set(token_id id, const float& logit) {
    edit_each(std::span(&id, 1), [&logit](token_id, const float&) { return logit; });
  }

  /// Adds to a token's logit; -inf bans it.
  void add(token_id id, const float& amount) {
    add_each(std::span(&id, 1), [&amount](token_id) { return amount; });
  }

  /// Bans a token, or several.
  void ban(token_id id) { set(id, gone); }
  void ban(std::span<const token_id> ids) {
    edit_each(ids, [](token_id, const float&) { return opaque_gone(); });
  }

  /// logit = scale * logit + shift for every token, in O(1). `scale` > 0: order and ties stay.
  void affine(double scale, double shift = 0) {
    DECANT_ASSERT(scale > 0 && math::is_finite(scale) && math::is_finite(shift),
                  "affine needs finite numbers, scale > 0");
    if (bad()) return;
    // Past 2^400 either way nothing changes any more: the law is the argmax or uniform. Within, no product overflows.
    scale_ = std::clamp(scale_ * scale, 0x1p-400, 0x1p400);
    shift_ = std::clamp(math::product(shift_, scale) + shift, -0x1p900, 0x1p900);
    changed();
  }

  /// logit = f(id, logit) for every token that is not gone: for dense maps that are not affine. O(n), into a workspace
  /// row; f may ban by returning -inf.
  template <class F>
  void transform(F f) {
    if (bad()) return;
    if (compact_) {
      const auto ids = list_.ids();
      const auto values = list_.values();
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!is_gone(values[i])) values[i] = math::flush_denormal(f(ids[i], effective_float(values[i])));
      }
    } else {
      dense_.rewrite(
          [&](token_id id, const float& z) { return is_gone(z) ? opaque_gone() : f(id, effective_float(z)); });
    }
    forget_scale();
  }

  /// Adds a finite amount to the logits of the tokens whose bits are set: bit id % 64 of word id / 64, for as many
  /// words as the vocabulary has. O(n), into a workspace row, at a fifth of the price of a transform.
  /// Reads the row.
  void raise(std::span<const std::uint64_t> chosen, double amount) {
    DECANT_ASSERT(chosen.size() >= (vocabulary_size_ + 63) / 64, "a bit for every token");
    DECANT_ASSERT(math::is_finite(amount), "raise needs a finite amount");
    if (!read()) return;
    if (compact_ || dense_.excludes()) {
      return transform([&](token_id id, float logit) {
        const bool up = (chosen[static_cast<std::size_t>(id) / 64] >> (id % 64) & 1) != 0;
        return math::portable::raised(logit, up, {1, 0, amount});
      });
    }
    dense_.raise(chosen, {scale_, shift_, amount});
    forget_scale();
  }

  /// logit = max + (cube * d - square) * d^2 with d = logit - max(), neither power negative: the maximum, ranks and
  /// ties stay. What is rounded to float is what lies below the maximum. Reads the row; values are bent when they are
  /// needed.
  void bend(double square, double cube) {
    DECANT_ASSERT(square >= 0 && cube >= 0, "a bend that keeps the order has no negative power");
    if (!read()) return;
    const double top = effective(max_);
    const math::bend_parameters how{max_, scale_, square, cube};
    if (compact_) {
      for (float& z : list_.values()) z = math::portable::bent(z, how);
    } else {
      dense_.bend(how);
    }
    forget_scale();
    affine(1, top);
  }

  /// As transform, but for every id of the vocabulary, gone ones passed as -inf: the only call that can bring a token
  /// back, or make a bad row good. For compatibility with libraries whose processors do so. O(n).
  template <class F>
  void rewrite(F f) {
    const auto all = [&](token_id id, const float& z) { return f(id, effective_float(z)); };
    if (compact_) {
      dense_.rewrite_listed(list_.ids(), list_.values(), all);
    } else {
      dense_.rewrite(all);
    }
    compact_ = false;
    status_ = row_status::ok;
    forget_scale();
  }

  /// Keeps only the given ids; a bit mask in the form that constrained decoding fills: bit id % 64 of word id / 64.
  /// Ids beyond the mask are gone. May empty the row. O(n / 64 + ids that are listed).
  void allow(std::span<const std::uint64_t> mask) {
    if (bad()) return;
    if (compact_) {
      const auto ids = list_.ids();
      const auto values = list_.values();
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto id = static_cast<std::size_t>(ids[i]);
        if (id / 64 >= mask.size() || (mask[id / 64] >> (id % 64) & 1) == 0) values[i] = gone;
      }
    } else if (!list_allowed(mask)) {
      dense_.mask(mask);
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
  void keep_largest(std::size_t count) { weighed_row::keep_largest(count); }

  /// Keeps logits >= threshold, and the largest `min_keep` (at least one) in any case. Reads the row.
  void keep_above(double threshold, std::size_t min_keep = 1) {
    if (!read()) return;
    const double hint = (threshold - shift_) / scale_;
    keep_from(lowest_where(hint, [&](float z) { return effective(z) >= threshold; }), min_keep);
  }

  /// The same, with the threshold counted from the maximum: keeps logit - max() >= least. However high the logits
  /// stand, after a low temperature or a shift, nothing is rounded away before it is compared.
  void keep_near_max(double least, std::size_t min_keep = 1) {
    if (read()) keep_from(border_near_max(least), min_keep);
  }

  /// Keeps logits within so many standard deviations of the maximum, and the largest `min_keep` (at least one) in any
  /// case. The variance is divided by the number of tokens less `freedom`: sigma() has 0, an unbiased one 1. Where sums
  /// in float decide, no exact ones are made. Reads the row.
  void keep_within_sigmas(double sigmas, std::size_t min_keep = 1, std::size_t freedom = 0) {
    const std::optional<detail::mass_bounds> quick = read_for_sigma();
    if (!read() || !more_than(1)) return;
    if (all_equal()) return;
    const auto size = static_cast<double>(count());
    if (freedom > 0) sigmas *= std::sqrt(size / (size - static_cast<double>(freedom)));
    if (quick) {
      const float least = border_near_max(-math::product(sigmas, quick->high));
      const float most = border_near_max(-math::product(sigmas, quick->low));
      list_from(least, 0);
      const std::size_t kept = count_from(most);
      if (least == most || count_from(least) == kept) return keep_from(most, min_keep, kept);
    }
    keep_from(border_near_max(sigmas == 0 ? 0 : -math::product(sigmas, sigma())), min_keep);
  }

  /// How many tokens have logit - max() >= least. Reads the row.
  [[nodiscard]] std::size_t count_near_max(double least) { return read() ? count_from(border_near_max(least)) : 0; }

  /// Keeps tokens that reach a threshold, and the largest `min_keep` (at least one) in any case. Where a quick sum
  /// decides, no exact one is made. Reads the row.
  void keep_probable(const probability_threshold& threshold, std::size_t min_keep = 1) {
    if (read_for_mass(threshold.entropies == 0)) keep_from(border_of_probable(threshold), min_keep);
  }

  /// How many tokens those are, apart from `min_keep`. Reads the row.
  [[nodiscard]] std::size_t count_probable(const probability_threshold& threshold) {
    return read_for_mass(threshold.entropies == 0) ? count_from(border_of_probable(threshold)) : 0;
  }

  /// Keeps the smallest set of probability mass >= p, filled in descending order, and at least `min_keep` (at least
  /// one) tokens. p >= 1 keeps all. Masses are sums of double exponentials, which decide at the border. Reads the row.
  void keep_mass(double p, std::size_t min_keep = 1) {
    if (!read_for_mass() || p >= 1) return;
    min_keep = std::max<std::size_t>(min_keep, 1);
    if (p <= 0) return keep_largest(min_keep);
    if (!keep_mass_unsorted(p, min_keep)) keep_mass_in_order(p, min_keep);
  }

  /// The same, filled in ascending |logit - around| with ties by lower id.
  void keep_mass_around(double p, std::size_t min_keep, double around) {
    if (read_for_mass() && p < 1) weighed_row::keep_mass_around(p, std::max<std::size_t>(min_keep, 1), around);
  }

  /// Keeps the smallest set of mass >= p, filled in ascending |-ln p(token) - entropy()| with ties by lower id, and at
  /// least `min_keep` (at least one) tokens of that order; p >= 1 keeps all. As keep_mass_around log_sum() - entropy(),
  /// but where quick sums decide, no exact ones are made. Reads the row.
  void keep_typical_mass(double p, std::size_t min_keep = 1) {
    if (!read() || p >= 1) return;
    if (p > 0 && min_keep <= 1 && keep_typical_quickly(p)) return;
    keep_mass_around(p, min_keep, log_sum() - entropy());
  }

  /// The same where the threshold is known within bounds: whether the same tokens reach either. Else does nothing.
  [[nodiscard]] bool keep_near_max(const detail::mass_bounds& least, std::size_t min_keep = 1) {
    if (!read()) return true;
    const float low = border_near_max(least.low), high = border_near_max(least.high);
    list_from(low, 0);
    if (low != high && count_from(low) != count_from(high)) return false;
    keep_from(high, min_keep);
    return true;
  }

  /// Calls f(bounds of the law) with closer and closer bounds until it says that they decide; the last are exact, their
  /// low ends equal to the high ones. For steps that narrow by sums over the whole row: f narrows and returns true, or
  /// does nothing and returns false. Does nothing on a bad row.
  template <class F>
  void decide_by_bounds(F f) {
    weighed_row::decide_by_bounds(f);
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
    each_weight(weight, [&](token_id id, double w) {
      out.ids.push_back(id);
      out.weights.push_back(w);
    });
    if (drawn_by_rejection()) {
      out.block_bounds.resize(dense_.blocks());
      bound_blocks(weight, out.block_bounds);
    }
    out.total = sum_of_weights(out.weights);
  }

  /// Draws a token from the distribution as it stands, no_token on a bad row; a single token left needs no random
  /// number. Equals drawing from probabilities(). Reads the row.
  [[nodiscard]] token_id draw(const draw_stream& draws, purpose why = purpose::sample, std::uint32_t index = 0) {
    if (!read()) return no_token;
    if (!more_than(1)) return argmax();
    if (draws.hook() != nullptr || !drawn_by_rejection()) {
      probabilities(drawn_);
      return decant::draw(drawn_, draws, why, index, blocks_);
    }
    // No law is listed: few of its blocks are looked at.
    const math::weight_map weight(max_, scale_);
    bound_blocks(weight, bounds_.assign(dense_.blocks()));
    if (compact_) weigh_list(weight);
    bounds_.build();
    return detail::draw_from_blocks(
        bounds_, draws, why, index,
        [&](const math::sum_tree::node& leaf, math::block_weights& out) { fill_block(leaf.index, weight, out); });
  }

  /// The token of the largest logit, the lowest id among equals; no_token on a bad row. Reads the row.
  [[nodiscard]] token_id argmax() {
    if (!read()) return no_token;
    return argmax_;
  }

 private:
  // ---- editing

  /// Stored values have become the logits themselves.
  void forget_scale() {
    scale_ = 1;
    shift_ = 0;
    forget_facts();
  }

  /// Before edits of these tokens: asks for their memory. Whether there is anything to edit.
  template <class Items>
  bool expect_edits(const Items& items) const {
    if (bad()) return false;
    for (const auto& item : items) {
      const token_id id = detail::id_of(item);
      check(id);
      if (!compact_) dense_.prefetch_edit(id);
    }
    return true;
  }

  /// Stores a value that a and b have been divided out of. Where a float cannot hold it, but could hold all logits as
  /// they stand, folds a and b into the stored values first and calls `plain`.
  template <class Plain>
  void put_scaled(token_id id, double z, Plain plain) {
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

  // ---- drawing

  /// The one bit that decides how a law is drawn: it is too long to weigh whole.
  [[nodiscard]] bool drawn_by_rejection() { return more_than(compact_limit); }

  /// Calls f(id, weight) for every token of positive weight, ascending.
  template <class F>
  void each_weight(const math::weight_map& weight, F f) {
    if (compact_) {
      weigh_list(weight);
      for (std::size_t i = 0; i < list_.size(); ++i) {
        if (list_weights_[i] > 0) f(list_.ids()[i], static_cast<double>(list_weights_[i]));
      }
      return;
    }
    if (!weight.in_float()) {
      return each([&](token_id id, float z) {
        if (const float w = weight(z); w > 0) f(id, static_cast<double>(w));
      });
    }
    math::block_weights weights;
    const std::span<const float> peaks = dense_.peaks();
    for (std::size_t b = 0; b < dense_.blocks(); ++b) {
      if (is_gone(peaks[b])) continue;
      fill_block(b, weight, weights);
      for (std::size_t i = 0; i < 64; ++i) {
        if (weights[i] > 0) f(static_cast<token_id>(b * 64 + i), weights[i]);
      }
    }
  }

  /// Calls f(id, logit - max()) for the tokens of a block whose bits are set.
  template <class F>
  void visit_picked(std::size_t b, std::uint64_t picked, F f) {
    if (picked == 0) return;
    if (!compact_) return dense_.each_in_block(b, picked, [&](token_id id, float z) { f(id, relative(z)); });
    for (std::size_t i = list_.first_from(static_cast<token_id>(64 * b)); i < list_.size(); ++i) {
      const auto [id, z] = list_[i];
      if (static_cast<std::size_t>(id) / 64 != b) return;
      if ((picked >> (id % 64) & 1) != 0 && !is_gone(z)) f(id, relative(z));
    }
  }

  /// Writes, for every block, an upper bound of the weights in it together, 0 where there is no token.
  void bound_blocks(const math::weight_map& weight, std::span<double> out) {
    std::span<const float> peaks = dense_.peaks();
    if (compact_) {
      list_peaks_.assign((out.size() + 63) / 64 * 64, gone);
      for (std::size_t i = 0; i < list_.size(); ++i) {
        float& peak = list_peaks_[static_cast<std::size_t>(list_[i].id) / 64];
        peak = std::max(peak, list_[i].logit);
      }
      peaks = list_peaks_;
    }
    peak_weights_.resize(std::max(peak_weights_.size(), peaks.size()));
    if (weight.in_float()) {
      math::kernels().float_weights(peaks.data(), peaks.size(), weight.parameters(), peak_weights_.data());
    } else {
      std::ranges::transform(peaks, peak_weights_.begin(), [&](const float& z) { return is_gone(z) ? 0 : weight(z); });
    }
    // 64 weights, none of which is above that of the peak by more than the rounding of the exponential.
    for (std::size_t b = 0; b < out.size(); ++b) {
      out[b] = 64.0 * (1.0 + 0x1p-20) * static_cast<double>(peak_weights_[b]);
    }
    if (compact_ || !dense_.bounded()) return;
    for (std::size_t b = 0; b < out.size(); ++b) out[b] = dense_.peak_is_kept(b) ? out[b] : 0;
  }

  /// The weights of block b; of a list that has been weighed.
  void fill_block(std::size_t b, const math::weight_map& weight, math::block_weights& out) const {
    out.fill(0);
    const auto store = [&](token_id id, float z) {
      out[static_cast<std::size_t>(id) % 64] = static_cast<double>(weight(z));
    };
    if (!compact_ && weight.in_float()) {
      float buffer[64];
      const detail::dense_row::block at = dense_.block_at(b, buffer);
      return math::kernels().weights(at.values, at.keep, weight.parameters(), out);
    }
    if (!compact_) return dense_.each_in_block(b, store);
    const std::span<const token_id> ids = list_.ids();
    for (std::size_t i = list_.first_from(static_cast<token_id>(64 * b));
         i < ids.size() && static_cast<std::size_t>(ids[i]) / 64 == b; ++i) {
      out[static_cast<std::size_t>(ids[i]) % 64] = static_cast<double>(list_weights_[i]);
    }
  }

  /// The weights of a list, 0 where a token is gone.
  void weigh_list(const math::weight_map& weight) {
    const std::span<const float> values = list_.padded();
    list_weights_.resize(values.size());
    if (weight.in_float()) {
      math::kernels().float_weights(values.data(), values.size(), weight.parameters(), list_weights_.data());
    } else {
      std::ranges::transform(values, list_weights_.begin(), [&](const float& z) { return is_gone(z) ? 0 : weight(z); });
    }
  }

  std::vector<entry> listed_;  // what descending() hands out
  std::vector<float> list_weights_, list_peaks_;
  std::vector<double> block_tops_;
  std::vector<std::uint64_t> allowed_;
  token_counts counts_;
  math::sum_tree blocks_;
  math::dense_sum_tree bounds_;
  law drawn_;
};

DECANT_STRICT_END

}  // namespace decant
