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
#include <decant/core/mass_search.hpp>
#include <decant/core/row_registry.hpp>
#include <decant/core/token.hpp>
#include <decant/math/exp2.hpp>
#include <decant/math/half.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

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
    if (registered_) detail::row_registry::leave(dense_.mutable_data());
    registered_ = false;
    dense_.release();
    vocabulary_size_ = 0;
    status_ = row_status::ok;
    forget_facts();
    list_.clear();
  }

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
    double sum = 0;
    if (!compact_ && vocabulary_size_ > compact_limit && power > 0) {
      each_run([&](const float* values, std::size_t size) {
        sum += math::kernels().exact_mass(values, size, max_, math::product(power, scale_)).mass;
      });
    } else {
      each([&](token_id, float z) { sum = math::rounded(sum + math::exp(math::product(power, relative(z)))); });
    }
    return math::log(sum);
  }

  /// log_sum() within 4e-6, at an eighth of the price on a long row: summed up in float rather than in double. The same
  /// bits on every instruction set, and whatever was asked before. Reads the row; one pass.
  [[nodiscard]] double quick_log_sum() {
    if (!read()) return static_cast<double>(gone);
    return can_sum_quickly() ? effective(max_) + math::log(quick_mass()) : log_sum();
  }

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
    if (mass_known_ || std::abs(quick - limit) <= entropy_error) return entropy() > limit;
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

  /// What weights and their sum are in the law of a row: a measure for its tokens that later narrowings leave alone.
  struct law_measure {
    math::weight_map weight;
    double total;
  };

  /// The measure of the law as it stands: its total, on long rows within 4e-6 of it and quickly, with the same bits on
  /// every instruction set. Of a good row. One pass.
  [[nodiscard]] law_measure measure_law() {
    const bool good = read();
    DECANT_ASSERT(good, "a bad row has no law");
    const math::weight_map weight(max_, scale_);
    if (can_sum_quickly()) return {weight, quick_mass()};
    sum_blocks(weight);
    return {weight, blocks_.total()};
  }

  /// The natural logarithm of the probability that a token, whose logit stands as it stood, had in that law.
  [[nodiscard]] double log_probability(token_id id, const law_measure& measure) const {
    check(id);
    const float z = stored(id);
    return is_gone(z) ? static_cast<double>(gone) : math::log(static_cast<double>(measure.weight(z)) / measure.total);
  }

  // ---- edits: a token that is gone stays gone

  /// Gives a token a logit; -inf bans it. The stored value is rounded to float, and stays finite if it was.
  void set(token_id id, float logit) {
    check(id);
    if (bad() || is_gone(stored(id))) return;
    if (!math::is_finite(logit)) return put(id, logit);  // a ban, or bad data that the next reading will find
    if (scale_ == 1 && shift_ == 0) return put(id, logit);
    put_scaled(id, (static_cast<double>(logit) - shift_) / scale_, [&] { put(id, logit); });
  }

  /// Adds to a token's logit; -inf bans it. The stored value is rounded to float, and stays finite if it was.
  void add(token_id id, float amount) {
    check(id);
    if (bad() || !math::is_finite(stored(id))) return;  // gone stays gone, and bad data stays bad
    if (!math::is_finite(amount)) return put(id, amount);
    const double z = static_cast<double>(stored(id));
    if (scale_ == 1 && shift_ == 0) return put(id, math::saturated(z + static_cast<double>(amount)));
    put_scaled(id, z + static_cast<double>(amount) / scale_,
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
    forget_masses();
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
      dense_.rewrite([&](token_id id, float z) { return is_gone(z) ? gone : f(id, effective_float(z)); });
    }
    scale_ = 1;
    shift_ = 0;
    forget_facts();
  }

  /// As transform, but for every id of the vocabulary, gone ones passed as -inf: the only call that can bring a token
  /// back, or make a bad row good. For compatibility with libraries whose processors do so. O(n).
  template <class F>
  void rewrite(F f) {
    const auto all = [&](token_id id, float z) { return f(id, effective_float(z)); };
    if (compact_) {
      dense_.rewrite_listed(list_.ids(), list_.values(), all);
    } else {
      dense_.rewrite(all);
    }
    compact_ = false;
    scale_ = 1;
    shift_ = 0;
    status_ = row_status::ok;
    forget_facts();
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
    } else if (has_at_most(mask, list_limit_)) {
      list_allowed(mask);
    } else {
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
  void keep_largest(std::size_t count) {
    if (!read() || !more_than(count)) return;
    if (count <= 1) return keep_argmax();
    if (compact_ || order_.size() >= count || count > list_limit_) return cut(nth(count), count);
    gathered_.keep(gather(count));
    adopt_gathered();
  }

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
    const std::optional<mass_bounds> quick = read_for_sigma();
    if (!read() || !more_than(1)) return;
    const auto size = static_cast<double>(count());
    if (freedom > 0) sigmas *= std::sqrt(size / (size - static_cast<double>(freedom)));
    if (quick) {
      const float least = border_near_max(-math::product(sigmas, quick->high));
      const float most = border_near_max(-math::product(sigmas, quick->low));
      list_from(least, 0);
      if (least == most || count_from(least) == count_from(most)) return keep_from(most, min_keep);
    }
    keep_from(border_near_max(sigmas == 0 ? 0 : -math::product(sigmas, sigma())), min_keep);
  }

  /// How many tokens have logit - max() >= least. Reads the row.
  [[nodiscard]] std::size_t count_near_max(double least) { return read() ? count_from(border_near_max(least)) : 0; }

  /// A threshold for probabilities: ln p >= log_p + argmax_power * ln (the largest p) - entropies * entropy().
  struct probability_threshold {
    double log_p;
    double argmax_power = 0;
    double entropies = 0;
  };

  /// Keeps tokens that reach a threshold, and the largest `min_keep` (at least one) in any case. Where a quick sum
  /// decides, no exact one is made. Reads the row.
  void keep_probable(const probability_threshold& threshold, std::size_t min_keep = 1) {
    if (read_for_mass(threshold.entropies == 0)) keep_from(border_of_probable(threshold), min_keep);
  }

  /// How many tokens those are, apart from `min_keep`. Reads the row.
  [[nodiscard]] std::size_t count_probable(const probability_threshold& threshold) {
    return read_for_mass(threshold.entropies == 0) ? count_from(border_of_probable(threshold)) : 0;
  }

  /// Keeps the smallest set of probability mass >= p, filled in descending order, or, with a finite `around`, in
  /// ascending |logit - around| with ties by lower id; and at least `min_keep` (at least one) tokens of that order.
  /// p >= 1 keeps all. Masses are sums of double exponentials, which decide at the border. Reads the row.
  void keep_mass(double p, std::size_t min_keep = 1, double around = from_the_top) {
    if (!read_for_mass() || p >= 1) return;
    min_keep = std::max<std::size_t>(min_keep, 1);
    if (math::is_finite(around)) return keep_mass_around(p, min_keep, around);
    if (p <= 0) return keep_largest(min_keep);
    if (!keep_mass_unsorted(p, min_keep)) keep_mass_in_order(p, min_keep);
  }

  /// Keeps the smallest set of mass >= p, filled in ascending |-ln p(token) - entropy()| with ties by lower id, and at
  /// least `min_keep` (at least one) tokens of that order; p >= 1 keeps all. As keep_mass around log_sum() - entropy(),
  /// but where quick sums decide, no exact ones are made. Reads the row.
  void keep_typical_mass(double p, std::size_t min_keep = 1) {
    if (!read() || p >= 1) return;
    if (p > 0 && min_keep <= 1 && keep_typical_quickly(p)) return;
    keep_mass(p, min_keep, log_sum() - entropy());
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
    out.total = sum_of_weights(out.ids, out.weights, blocks_);
  }

  /// Draws a token from the distribution as it stands, no_token on a bad row; a single token left needs no random
  /// number. Equals drawing from probabilities(). Reads the row.
  [[nodiscard]] token_id draw(const draw_stream& draws, purpose why = purpose::sample, std::uint32_t index = 0) {
    if (!read()) return no_token;
    if (!more_than(1)) return argmax();
    if (draws.hook() != nullptr) {
      probabilities(hooked_);
      return decant::draw(hooked_, draws, why, index, blocks_);
    }
    const math::weight_map weight(max_, scale_);
    const auto fill = [&](const math::sum_tree::node& leaf, math::block_weights& out) {
      const bool known = !compact_ || leaf.begin > 0;
      fill_block(leaf.index, known ? leaf.begin : list_.first_from(static_cast<token_id>(64 * leaf.index)), weight,
                 out);
    };
    if (drawn_by_rejection()) {
      bound_blocks(weight, bounds_.assign(dense_.blocks()));
      if (compact_) weigh_list(weight);
      bounds_.build();
      return detail::draw_from_blocks(bounds_, true, draws, why, index, fill);
    }
    sum_blocks(weight);
    return detail::draw_from_blocks(blocks_, false, draws, why, index, fill);
  }

  /// The token of the largest logit, the lowest id among equals; no_token on a bad row. Reads the row.
  [[nodiscard]] token_id argmax() {
    if (!read()) return no_token;
    return argmax_;
  }

 private:
  static constexpr std::size_t whole_row = std::numeric_limits<std::size_t>::max();
  static constexpr double from_the_top = std::bit_cast<double>(0x7FF0000000000000U);  // +infinity
  // ---- binding

  void bind_span(std::span<float> row, std::size_t vocabulary_size) {
    dense_.bind_mutable(row.data(), begin(row.size(), vocabulary_size));
    const auto answer = detail::row_registry::enter(row.data());
    DECANT_ASSERT(answer != detail::row_registry::answer::already_bound, "two candidates on one mutable row");
    registered_ = answer == detail::row_registry::answer::watched;
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
    scale_ = 1;
    shift_ = 0;
    return vocabulary_size;
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

  /// The smallest z for which `reaches`, a question that is once answered with yes from some z on; -inf where the
  /// answer is yes for all, +inf where it is no. `hint` should be close to it.
  template <class F>
  [[nodiscard]] static float lowest_where(double hint, F reaches) noexcept {
    constexpr float lowest = detail::dense_row::lowest;
    if (reaches(lowest)) return gone;
    std::int64_t below = detail::order_of(lowest), reached = detail::order_of(-lowest) + 1;
    const std::int64_t near = detail::order_of(math::flush_denormal(math::saturated(hint)));
    if (near - 2 > below && near + 2 < reached) {
      if (!reaches(detail::at_order(near - 2))) below = near - 2;
      if (reaches(detail::at_order(near + 2))) reached = near + 2;
    }
    while (reached - below > 1) {
      const std::int64_t middle = below + (reached - below) / 2;
      (reaches(detail::at_order(middle)) ? reached : below) = middle;
    }
    return detail::at_order(reached);
  }

  /// The smallest z with relative(z) >= least.
  [[nodiscard]] float border_near_max(double least) const noexcept {
    return lowest_where(static_cast<double>(max_) + least / scale_, [&](float z) { return relative(z) >= least; });
  }

  [[nodiscard]] float stored(token_id id) const noexcept {
    if (!compact_) return dense_[id];
    const std::size_t place = list_.find(id);
    return place < list_.size() ? list_.values()[place] : gone;
  }

  /// Calls f(id, z) for every token that is not gone, ascending.
  template <class F>
  void each(F f) const {
    if (!compact_) return dense_.each(f);
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (const entry e = list_[i]; !is_gone(e.logit)) f(e.id, e.logit);
    }
  }

  /// The same for z >= threshold, of a good row that has been read.
  template <class F>
  void each_at_least(float threshold, F f) const {
    if (!compact_) return dense_.each_at_least(threshold, f);
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (const entry e = list_[i]; e.logit >= threshold) f(e.id, e.logit);
    }
  }

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
      fill_block(b, 0, weight, weights);
      for (std::size_t i = 0; i < 64; ++i) {
        if (weights[i] > 0) f(static_cast<token_id>(b * 64 + i), weights[i]);
      }
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
      std::ranges::transform(peaks, peak_weights_.begin(), [&](float z) { return is_gone(z) ? 0 : weight(z); });
    }
    // 64 weights, none of which is above that of the peak by more than the rounding of the exponential.
    for (std::size_t b = 0; b < out.size(); ++b) {
      out[b] = 64.0 * (1.0 + 0x1p-20) * static_cast<double>(peak_weights_[b]);
    }
    if (compact_ || !dense_.bounded()) return;
    for (std::size_t b = 0; b < out.size(); ++b) out[b] = dense_.peak_is_kept(b) ? out[b] : 0;
  }

  // ---- facts

  /// Reads the row if an edit has happened since; whether it is good.
  bool read() {
    if (known_) return status_ == row_status::ok;
    DECANT_ASSERT(vocabulary_size_ > 0, "no row is bound");
    known_ = true;
    if (compact_) return look_at_each();
    const math::row_summary seen = dense_.measure();
    if (seen.content == math::row_content::suspicious) return look_at_each();
    max_ = seen.max;
    status_ = is_gone(max_) ? row_status::empty : row_status::ok;
    argmax_ = bad() ? no_token : dense_.first_of(max_);
    counted_ = bad() || seen.content == math::row_content::finite;
    size_ = bad() ? 0 : vocabulary_size_;
    return !bad();
  }

  /// Reads token by token: a list, or a row that may hold a NaN or +inf.
  bool look_at_each() {
    size_ = 0;
    counted_ = true;
    max_ = gone;
    argmax_ = no_token;
    if (compact_ ? list_.holds_bad() : dense_.holds_bad()) {
      status_ = row_status::not_finite;
      return false;
    }
    each([&](token_id id, float z) {
      ++size_;
      if (argmax_ == no_token || z > max_) {
        max_ = z;
        argmax_ = id;
      }
    });
    status_ = size_ == 0 ? row_status::empty : row_status::ok;
    return status_ == row_status::ok;
  }

  /// The number of tokens of a good row that has been read.
  std::size_t count() {
    if (!counted_) size_ = dense_.count_at_least(detail::dense_row::lowest);
    counted_ = true;
    return size_;
  }

  /// Whether that is more than `limit`, which often can be told without counting.
  bool more_than(std::size_t limit) {
    if (!counted_) {
      const std::span<const float> peaks = dense_.peaks();
      const auto used = math::kernels().count_at_least(peaks.data(), peaks.size(), detail::dense_row::lowest);
      if (used > limit) return true;
      const std::size_t found = dense_.count_at_least(detail::dense_row::lowest, limit);
      if (found > limit) return true;
      size_ = found;
      counted_ = true;
    }
    return size_ > limit;
  }

  /// Known to be bad. Edits do not read: they only heed what has been found.
  [[nodiscard]] bool bad() const noexcept { return status_ != row_status::ok; }

  void forget_facts() noexcept {
    if (bad()) return;
    known_ = counted_ = false;
    forget_masses();
    order_.clear();
  }

  void forget_masses() noexcept {
    mass_known_ = quick_known_ = quick_entropy_known_ = rough_known_ = false;
    gathered_from_ = beyond;
  }

  void measure_mass() {
    if (mass_known_) return;
    mass_known_ = true;
    mass_ = weighted_ = 0;
    if (!compact_ && vocabulary_size_ > compact_limit) {
      return each_run([&](const float* values, std::size_t size) {
        const math::portable::mass_sums run = math::kernels().exact_mass(values, size, max_, scale_);
        mass_ = math::rounded(mass_ + run.mass);
        weighted_ = math::rounded(weighted_ + run.weighted);
      });
    }
    list_small_row();
    if (!compact_) collect_all(sample_);
    const detail::listed_row& all = compact_ ? list_ : sample_;
    nucleus_.weigh(compact_ ? list_ : sample_, max_, scale_);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double w = nucleus_.weights()[i];
      if (!(w > 0)) continue;
      mass_ = math::rounded(mass_ + w);
      weighted_ = math::rounded(weighted_ + math::product(w, relative(all.values()[i])));
    }
  }

  /// H = ln Z - E[logit - top]; rounding may leave a tiny negative where it is 0.
  [[nodiscard]] double entropy_value() const { return std::max(0.0, math::log(mass_) - weighted_ / mass_); }

  /// A whole row that is not longer than a list may be is quicker to work on as one. Of a good row that has been read.
  void list_small_row() {
    if (compact_ || vocabulary_size_ > list_limit_) return;
    collect_all(list_);
    compact_ = true;
    size_ = list_.size();
    counted_ = true;
  }

  void collect_all(detail::listed_row& out) const {
    out.clear();
    dense_.collect(detail::dense_row::lowest, beyond, out);
  }

  /// Calls f(values, size) for runs of values of a dense row, -inf where gone, that are together the row; sizes are
  /// multiples of 64. One run where the row is plain floats.
  template <class F>
  void each_run(F f) {
    const std::size_t even = dense_.is_plain() ? vocabulary_size_ / 64 : 0;
    if (even > 0) f(dense_.data(), even * 64);
    float buffer[64];
    run_.resize(4096);
    std::size_t used = 0;
    for (std::size_t b = even; b < dense_.blocks(); ++b) {
      if (is_gone(dense_.peaks()[b])) continue;
      const detail::dense_row::block at = dense_.block_at(b, buffer);
      if (at.keep == ~std::uint64_t{0}) {
        std::copy_n(at.values, 64, run_.data() + used);
      } else {
        std::fill_n(run_.data() + used, 64, gone);
        for (std::uint64_t keep = at.keep; keep != 0; keep &= keep - 1) {
          const auto i = static_cast<std::size_t>(std::countr_zero(keep));
          run_[used + i] = at.values[i];
        }
      }
      used += 64;
      if (used < run_.size()) continue;
      f(run_.data(), used);
      used = 0;
    }
    if (used > 0) f(run_.data(), used);
  }

  using mass_bounds = detail::mass_bounds;

  /// How well a mass is known, at what price. The relative error counts for what is not listed: in a list of the
  /// largest tokens, weights are exact.
  enum class sharpness : std::uint8_t {
    rough,  ///< within 6 %, from a sum taken along with the peaks, if there is one: a third of a pass
    quick,  ///< within 3e-6, in float: two passes with AVX-512, five with AVX2
    near,   ///< within 1e-8, from double exponentials that are nearly exact: seven, twelve
    exact,  ///< the sum that is the definition: fourteen, twenty-six
  };

  /// Bounds of the mass at least as good as that, if it can be had.
  mass_bounds mass_within(sharpness how) {
    if (mass_known_ || how == sharpness::exact) return exact_mass();
    if (how == sharpness::rough && rough_known_) return rough_bounds(rough_);
    if (compact_ || vocabulary_size_ <= compact_limit) return exact_mass();
    if (how == sharpness::near || !can_sum_quickly()) return near_mass();
    return bounds_of(quick_mass(), quick_error);
  }

  /// The same where some of the tokens are listed, with the sum of their masses: a rough or a quick sum need count for
  /// the others alone.
  mass_bounds mass_within(sharpness how, detail::listed_row& list, double sum) {
    if (mass_known_ || compact_ || vocabulary_size_ <= compact_limit) return mass_within(how);
    if (how == sharpness::rough && rough_known_) {
      const std::span<const float> values = list.padded(64);
      peak_weights_.resize(std::max(peak_weights_.size(), values.size() / 64));
      double listed = 0;
      math::kernels().peaks_and_mass(values.data(), values.size(), peak_weights_.data(), rough_parameters_, listed);
      const mass_bounds rest = rough_bounds(std::max(0.0, rough_ - listed * rough_factor_));
      return {sum + rest.low, sum + rest.high};
    }
    if (how == sharpness::near || !can_sum_quickly()) return mass_within(how);
    const std::span<const float> values = list.padded(64);
    const double all = quick_mass();
    const double rest =
        std::max(0.0, all - math::kernels().quick_mass(values.data(), values.size(), quick_parameters()));
    const double slack = quick_error * rest + 2 * quick_sum_error * all;
    return {sum + std::max(0.0, rest - slack), sum + rest + slack};
  }

  /// Bounds of a mass from a rough sum that is part of the row's: of its own weights' errors, and of the sums'.
  [[nodiscard]] mass_bounds rough_bounds(double mass) const noexcept {
    const double slack = rough_slack_ * mass + 2.5e-6 * rough_;
    return {std::max(0.0, mass / math::rough_excess - slack), mass + slack};
  }

  /// Reads the row; if that takes a pass, sums moments along the way, and returns bounds of the standard deviation.
  std::optional<mass_bounds> read_for_sigma() {
    if (known_ || compact_ || vocabulary_size_ <= compact_limit || !dense_.measures_floats()) return {};
    // About a value that is somewhere in the middle, so that little cancels.
    double middle = 0;
    const std::size_t step = vocabulary_size_ / 8;
    for (std::size_t i = 0; i < 8; ++i) middle += static_cast<double>(dense_[static_cast<token_id>(i * step)]) / 8;
    if (!math::is_finite(middle)) return {};
    const auto reference = static_cast<float>(middle);
    math::portable::moment_sums sums = dense_.measure_with_moments(reference);
    for (std::size_t i = vocabulary_size_ / 64 * 64; i < vocabulary_size_; ++i) {
      const double d = static_cast<double>(dense_[static_cast<token_id>(i)]) - static_cast<double>(reference);
      sums.sum += d;
      sums.squares += math::product(d, d);
    }
    const auto n = static_cast<double>(vocabulary_size_);
    const double mean = sums.sum / n, square = sums.squares / n, variance = square - math::product(mean, mean);
    // Sums of floats, of no more than 64 each, in either sum: some 20 roundings, by Cauchy and Schwarz.
    const double error = 60 * 0x1p-23 * square;
    if (!math::is_finite(square) || !(variance > 4 * error)) return {};
    return mass_bounds{scale_ * std::sqrt(variance - error), scale_ * std::sqrt(variance + error)};
  }

  /// Reads the row; if that takes a pass, sums rough weights along the way, if they are wanted.
  bool read_for_mass(bool wanted = true) {
    if (!wanted || known_ || compact_ || vocabulary_size_ <= compact_limit || !dense_.measures_floats()) return read();
    // Weights must be told from a reference that is known beforehand, and not too far below the largest.
    float reference = gone;
    const std::size_t step = vocabulary_size_ / 8;
    for (std::size_t i = 0; i < 8; ++i) {
      const float z = dense_[static_cast<token_id>(i * step)];
      if (math::is_finite(z) && z > reference) reference = z;
    }
    const double base2 = scale_ * math::per_doubling, at = base2 * static_cast<double>(reference);
    if (is_gone(reference) || base2 < 0x1p-20 || base2 > 0x1p10 || std::abs(at) > 1000) return read();
    rough_parameters_ = {static_cast<float>(base2 * 0x1p23), static_cast<float>((127 - at) * 0x1p23)};
    double mass = dense_.measure_with_mass(rough_parameters_);
    if (!read()) return false;
    const double above = (static_cast<double>(max_) - static_cast<double>(reference)) * base2;
    if (above > 100) return true;  // beyond what a float can tell
    if (const std::size_t whole = vocabulary_size_ / 64 * 64; whole < vocabulary_size_) {
      float rest[64], peak = 0;
      for (std::size_t i = 0; i < 64; ++i) {
        rest[i] = whole + i < vocabulary_size_ ? dense_[static_cast<token_id>(whole + i)] : gone;
      }
      double more = 0;
      math::kernels().peaks_and_mass(rest, 64, &peak, rough_parameters_, more);
      mass += more;
    }
    rough_factor_ = math::exp(-above / math::per_doubling);
    rough_ = mass * rough_factor_;
    // Roundings of slope, offset and exponent, of up to a few hundred each.
    rough_slack_ = 0x1p-24 * (500 + 2 * std::abs(at) + 2 * above);
    rough_known_ = math::is_finite(rough_);
    return true;
  }

  /// Whether the row is long, and its exponents are such that floats tell them.
  [[nodiscard]] bool can_sum_quickly() const {
    const double base2 = scale_ * math::per_doubling;
    return !compact_ && vocabulary_size_ > compact_limit && base2 >= 0x1p-20 && base2 <= 0x1p20 &&
           std::abs(static_cast<double>(max_)) * base2 < 0x1p24;
  }
  [[nodiscard]] math::quick_parameters quick_parameters() const {
    return math::quick_parameters_of(math::weight_map(max_, scale_).parameters());
  }

  /// The mass but for roundings; remembered.
  double quick_mass() {
    if (quick_known_) return quick_;
    quick_known_ = true;
    quick_ = 0;
    const math::quick_parameters parameters = quick_parameters();
    each_run([&](const float* values, std::size_t size) {
      quick_ = math::rounded(quick_ + math::kernels().quick_mass(values, size, parameters));
    });
    return quick_;
  }

  /// The entropy but for roundings; remembered, and the mass with it.
  double quick_entropy_value() {
    if (quick_entropy_known_) return quick_entropy_;
    quick_entropy_known_ = quick_known_ = true;
    math::portable::mass_sums sums;
    const math::quick_parameters parameters = quick_parameters();
    each_run([&](const float* values, std::size_t size) {
      const auto run = math::kernels().quick_masses(values, size, parameters);
      sums.mass = math::rounded(sums.mass + run.mass);
      sums.weighted = math::rounded(sums.weighted + run.weighted);
    });
    quick_ = sums.mass;
    quick_entropy_ = std::max(0.0, math::log(sums.mass) - sums.weighted / sums.mass / math::per_doubling);
    return quick_entropy_;
  }

  mass_bounds exact_mass() {
    measure_mass();
    return {mass_, mass_};
  }

  /// From double exponentials that are nearly exact.
  mass_bounds near_mass() { return mass_known_ ? exact_mass() : bounds_of(split_mass(gone).mass, near_error); }

  /// The same sum as a number, and that over values from a border on.
  math::portable::split_mass split_mass(float border) {
    math::portable::split_mass sums;
    const float raw = detail::dense_row::raw_threshold(border);
    each_run([&](const float* values, std::size_t size) {
      const auto run = math::kernels().near_mass(values, size, max_, scale_, raw);
      sums.mass += run.mass;
      sums.above += run.above;
    });
    return sums;
  }
  static constexpr double near_error = 1.1 * math::portable::near_mass_error;

  /// The relative error of a quick mass: 3e-7 of each exponential, 3e-7 of sums of sixteen, and two roundings of the
  /// exponent, each 2^-24 of it, where the mean exponent counts: at most log2 of the number of tokens, which 2^26 is
  /// never below. Weights below 2^-126 are lost, or taken for that, in 2^-90.
  static constexpr double quick_sum_error = 3e-7;
  static constexpr double quick_error = 3e-7 + quick_sum_error + 26 * 8.4e-8 + 0x1p-90;
  /// That of the mass, and twice that of a mean of exponents of at most ln 2^26.
  static constexpr double entropy_error = 2 * quick_error * 18.1 + quick_error;
  static mass_bounds bounds_of(double mass, double error) noexcept { return {mass * (1 - error), mass * (1 + error)}; }

  /// The border from which on tokens reach a threshold. Bounds of the mass and of the entropy bound it; better ones are
  /// asked for only if a token lies between.
  float border_of_probable(const probability_threshold& threshold) {
    const double power = 1 - threshold.argmax_power, entropies = threshold.entropies;
    const auto border = [&](double log_mass, double entropy) {
      double least = threshold.log_p;
      if (power != 0) least += math::product(power, log_mass);
      if (entropies != 0) least -= math::product(entropies, entropy);
      return border_near_max(least);
    };
    if (power == 0 && entropies == 0) return border(0, 0);
    float least = gone, most = gone;
    const auto settled = [&](const mass_bounds& total, const mass_bounds& entropy) {
      const double low = math::log(total.low), high = math::log(total.high);
      least = border(power > 0 ? low : high, entropies > 0 ? entropy.high : entropy.low);
      most = border(power > 0 ? high : low, entropies > 0 ? entropy.low : entropy.high);
      return least == most || count_from(least) == count_from(most);
    };
    if (rough_known_ && entropies == 0) {
      if (list_from(border(math::log(rough_), 0), settled_reach) && settled(mass_within(sharpness::rough), {}))
        return most;
      if (gathered_from_ < beyond) {
        const double sum = nucleus_.weigh(gathered_, max_, scale_);
        if (settled(mass_within(sharpness::rough, gathered_, sum), {})) return most;
      }
    }
    if (!mass_known_ && can_sum_quickly()) {
      mass_bounds entropy{};
      if (entropies != 0) entropy = {quick_entropy_value() - entropy_error, quick_entropy_value() + entropy_error};
      const mass_bounds total = mass_within(sharpness::quick);
      list_from(border(math::log(total.low), entropy.low), settled_reach);
      if (settled(total, entropy)) return most;
    }
    if (entropies == 0 && settled(mass_within(sharpness::near), {})) return most;
    measure_mass();
    return border(math::log(mass_), entropy_value());
  }

  /// Lists all tokens of a dense row from so far below a border on, if they lie in few blocks: to count them, and to
  /// keep some of them. Whether it did.
  bool list_from(float border, double below) {
    if (compact_ || is_gone(border)) return false;
    const float from = math::saturated(static_cast<double>(border) - below / scale_);
    if (gathered_from_ <= from) return true;
    const std::span<const float> peaks = dense_.peaks();
    if (math::kernels().count_at_least(peaks.data(), peaks.size(), from) > list_limit_ / 8) return false;
    detail::listed_row& all = gathering();
    all.clear();
    dense_.collect(from, beyond, all);
    gathered_from_ = from;
    return true;
  }
  static constexpr double settled_reach = 1;

  /// The list that narrowings work with. It no longer holds what it held.
  detail::listed_row& gathering() noexcept {
    gathered_from_ = beyond;
    return gathered_;
  }

  static constexpr std::size_t few_listed = 320;

  /// A border that means all tokens as one that kernels can compare with.
  static float above_gone(float border) noexcept { return is_gone(border) ? detail::dense_row::lowest : border; }

  std::size_t count_from(float border) {
    if (gathered_from_ <= border) return gathered_.count_at_least(border);
    return compact_ ? list_.count_at_least(above_gone(border)) : dense_.count_at_least(above_gone(border));
  }

  /// Keeps values from a border on, and the largest `min_keep`.
  void keep_from(float border, std::size_t min_keep) {
    if (is_gone(border)) return;
    min_keep = std::max<std::size_t>(min_keep, 1);
    // What lies in few blocks is listed at once.
    if (list_from(border, 0)) {
      gathered_.keep({detail::listed_row::any_id, border});
      gathered_from_ = beyond;
      if (gathered_.size() < min_keep) return keep_largest(min_keep);
      if (gathered_.size() <= list_limit_) return more_than(gathered_.size()) ? adopt_gathered() : void();
    }
    const std::size_t kept = count_from(border);
    if (kept < min_keep) return keep_largest(min_keep);
    if (more_than(kept)) cut({detail::listed_row::any_id, border}, kept);
  }

  /// Keeps the nucleus if it can be told without sorting; else does nothing and says so.
  bool keep_mass_unsorted(double p, std::size_t min_keep) {
    constexpr float lowest = detail::dense_row::lowest;
    list_small_row();
    if (compact_) return keep_mass_listed(list_, lowest, p, min_keep) == verdict::done;
    if (more_than(2 * few_listed)) {
      const float threshold = gather_at_least(few_listed);
      const verdict seen = keep_mass_listed(gathered_, threshold, p, min_keep);
      if (seen != verdict::not_here) return seen == verdict::done;
    }
    if (more_than(2 * sample_size)) return keep_large_nucleus(p, min_keep);
    collect_all(gathering());
    return keep_mass_listed(gathered_, lowest, p, min_keep) == verdict::done;
  }

  enum class verdict : std::uint8_t { done, undecided, not_here };

  /// Keeps a nucleus that ends within a list of the largest tokens, down to a threshold.
  verdict keep_mass_listed(detail::listed_row& list, float threshold, double p, std::size_t min_keep) {
    const double sum = nucleus_.weigh(list, max_, scale_);
    for (const sharpness how : {sharpness::rough, sharpness::quick, sharpness::near}) {
      const mass_bounds total = mass_within(how, list, sum);
      const mass_bounds wanted{math::product(p, total.low), math::product(p, total.high)};
      if (sum < wanted.low) return verdict::not_here;
      if (keep_place(nucleus_.find(list, wanted, 0, 0, threshold, max_), min_keep, &list)) return verdict::done;
    }
    return verdict::undecided;
  }

  /// Keeps the tokens up to a place that has been found, and at least `min_keep`; whether it has been. `all`, if given,
  /// lists these tokens and maybe more.
  bool keep_place(const std::optional<detail::mass_search::place>& found, std::size_t min_keep,
                  detail::listed_row* all = nullptr) {
    if (!found) return false;
    if (found->count < min_keep) {
      keep_largest(min_keep);
    } else if (!more_than(found->count)) {
      return true;
    } else if (all == &gathered_ && found->count <= list_limit_) {
      gathered_.keep(found->last);
      adopt_gathered();
    } else {
      cut(found->last, found->count);
    }
    return true;
  }

  /// The definition: exact weights are added up in descending order until they reach p of the exact mass.
  void keep_mass_in_order(double p, std::size_t min_keep) {
    measure_mass();
    const double wanted = math::product(p, mass_);
    double mass = 0;
    std::size_t kept = 0;
    for (std::size_t reach = 64; more_than(kept); reach *= 4) {
      sort_prefix(reach);
      while (kept < order_.size()) {
        mass = math::rounded(mass + math::exp(relative(order_[kept].logit)));
        ++kept;
        if (kept < min_keep || mass < wanted) continue;
        if (more_than(kept)) cut(order_[kept - 1], kept);
        return;
      }
    }
  }

  static constexpr std::size_t sample_size = 2048;
  static constexpr float beyond = detail::listed_row::beyond;

  /// Runs of sixteen values at even distances of a dense row, which has at least twice so many.
  void take_sample() {
    sample_.clear();
    constexpr std::size_t run = 16, runs = sample_size / run;
    const std::size_t step = vocabulary_size_ / run / runs;
    float buffer[64];
    for (std::size_t i = 0; i < runs; ++i) {
      const std::size_t first = i * step * run;
      const detail::dense_row::block at = dense_.block_at(first / 64, buffer);
      for (std::size_t j = first % 64; j < first % 64 + run; ++j) {
        const float z = (at.keep >> j & 1) != 0 ? math::flush_denormal(at.values[j]) : gone;
        sample_.add(static_cast<token_id>(first - first % 64 + j), z);
      }
    }
  }

  /// A value that about `count` tokens of a dense row reach, rather more; -inf's successor if that is a large part.
  float sampled_threshold(double count) {
    take_sample();
    const double share = count / static_cast<double>(vocabulary_size_) * sample_size;
    const auto rank = static_cast<std::size_t>(share + 4 * std::sqrt(share) + 4);
    if (2 * rank >= sample_size || sample_.count_at_least(detail::dense_row::lowest) < rank) {
      return detail::dense_row::lowest;
    }
    return sample_.nth(rank, detail::dense_row::lowest, max_).logit;
  }

  /// Keeps a nucleus of many tokens of a dense row, of which a sample tells about where it ends.
  bool keep_large_nucleus(double p, std::size_t min_keep) {
    take_sample();
    const double all = nucleus_.weigh(sample_, max_, scale_), deviation = nucleus_.deviation();
    if (!(all > 0)) return false;
    // So much more or less than a share of the sample's mass may be the same share of the row's: four deviations.
    const auto slack = [&](double share) {
      return 4 * deviation * std::sqrt(share * std::max(0.0, 1 - share)) + 4 * all / sample_size;
    };
    // Where few tokens have most of the mass a sample says little: it will be among the largest few thousand.
    if (slack(p) > (1 - p) * all) {
      const float threshold = gather_at_least(compact_limit);
      const verdict seen = keep_mass_listed(gathered_, threshold, p, min_keep);
      if (seen != verdict::not_here) return seen == verdict::done;
      take_sample();
      nucleus_.weigh(sample_, max_, scale_);
    }
    // A pass weighs what lies above about the right value; what lies between that and the right one is listed.
    const float about = nucleus_.value_near(math::product(p, all), max_);
    const double sampled = nucleus_.mass_from(about);
    const math::portable::split_mass sums = split_mass(about);
    const double wanted = math::product(p, sums.mass), doubt = near_error * (p * sums.mass + sums.above);
    const mass_bounds bounds{wanted - doubt, wanted + doubt};
    const double missing = std::abs(wanted - sums.above) / sums.mass, reach = missing * all + slack(missing);
    const std::size_t above = dense_.count_at_least(about);
    detail::listed_row& between = gathering();
    between.clear();
    if (sums.above < wanted) {
      const float low = nucleus_.value_near(sampled + reach, max_);
      dense_.collect(low, about, between);
      nucleus_.weigh(between, max_, scale_);
      return keep_place(nucleus_.find(between, bounds, sums.above, above, low, about), min_keep);
    }
    const float high = math::next_above(nucleus_.value_near(std::max(0.0, sampled - reach), max_));
    dense_.collect(about, high, between);
    const double mass = nucleus_.weigh(between, max_, scale_);
    return keep_place(nucleus_.find(between, bounds, sums.above - mass, above - between.size(), about, high), min_keep);
  }

  /// Fills order_ with the first `count` tokens in descending order, all if there are not so many, and maybe more.
  void sort_prefix(std::size_t count) {
    if (!read()) return order_.clear();
    if (order_.size() >= count) return;
    // Grow by more than was asked, so that a caller who walks down pays for few sorts.
    count = std::max({count, 2 * order_.size(), std::size_t{32}});
    if (!more_than(count)) count = this->count();
    if (order_.size() >= count) return;
    gathered_.keep(gather(count));
    order_.clear();
    for (std::size_t i = 0; i < gathered_.size(); ++i) order_.push_back(gathered_[i]);
    std::sort(order_.begin(), order_.end(), detail::before);
  }

  /// The last of the first `count` tokens in descending order, of which there are more.
  entry nth(std::size_t count) {
    if (order_.size() >= count) return order_[count - 1];
    if (compact_) return list_.nth(count, detail::dense_row::lowest, max_);
    const entry last = gather(count);
    gathered_.keep(last);
    return last.id == detail::listed_row::any_id ? gathered_.last() : last;
  }

  /// Lists at least the first `count` tokens in descending order, of which there are more; returns the last of them.
  entry gather(std::size_t count) {
    const float threshold = gather_at_least(count);
    return gathered_.nth(count, threshold, max_);
  }

  /// Lists, from some value on, the first `count` tokens in descending order at least, of which there are so many;
  /// returns the value. Of those at the value itself there may be the first `count` alone.
  float gather_at_least(std::size_t count) {
    detail::listed_row& out = gathering();
    constexpr float lowest = detail::dense_row::lowest;
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
    if (dense_.bounded() || 4 * count > 3 * dense_.blocks() || reach(detail::dense_row::lowest) < count) return gone;
    if (reach(max_) >= count) return max_;
    const std::size_t enough = count + count / 8 + 2;
    detail::bisection search(detail::dense_row::lowest, max_);
    while (search.next()) {
      const std::size_t found = reach(search.middle());
      if (found < count) {
        search.lower();
        continue;
      }
      search.raise();
      if (found <= enough) break;
    }
    return search.low();
  }

  /// Lists the tokens of a dense row from a value on, of those at it the first `ties` at least. Gives up, and says so,
  /// if they turn out to be more than `most`.
  bool collect_from(float threshold, std::size_t ties, std::size_t most, detail::listed_row& out) {
    out.clear();
    float low = threshold;
    // Where many blocks reach the threshold, it may be ties that do.
    const std::span<const float> peaks = dense_.peaks();
    const std::size_t reached = math::kernels().count_at_least(peaks.data(), peaks.size(), threshold);
    const std::size_t strip = reached > 2 * ties + 64 ? 16 : 128;
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

  /// Keeps what is not after `last` in descending order: `count` tokens, which include the largest.
  void cut(entry last, std::size_t count) {
    forget_masses();
    if (order_.size() > count) order_.resize(count);
    if (compact_) {
      list_.keep(last);
    } else if (count <= list_limit_) {
      list_.clear();
      dense_.collect(last.logit, beyond, list_);
      if (last.id != detail::listed_row::any_id) list_.keep(last);
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
    gathered_from_ = beyond;
    forget_masses();
    order_.clear();
    compact_ = true;
    size_ = list_.size();
    counted_ = true;
  }

  /// The scan has found the argmax: no further pass.
  void keep_argmax() {
    forget_masses();
    order_.assign(1, {argmax_, max_});
    list_.clear();
    list_.add(argmax_, max_);
    size_ = 1;
    counted_ = true;
    compact_ = true;
  }

  /// Keeps what is typical among the largest tokens, if that is all and bounds of mass and entropy tell it.
  bool keep_typical_quickly(double p) {
    if (mass_known_ || !can_sum_quickly() || !more_than(2 * few_listed)) return false;
    const double around = math::log((quick_entropy_value(), quick_)) - quick_entropy_;
    const mass_bounds total = mass_within(sharpness::quick);
    const mass_bounds wanted{math::product(p, total.low), math::product(p, total.high)};
    for (const std::size_t reach : {few_listed, compact_limit}) {
      if (!more_than(2 * reach)) break;
      const double radius = around - relative(gather_at_least(reach));
      if (!(nucleus_.weigh(gathered_, max_, scale_) > wanted.low)) continue;
      const auto found = nucleus_.find_near(gathered_, wanted, around, entropy_error + quick_error, radius);
      if (!found) continue;
      list_.clear();
      for (std::size_t i = 0; i < gathered_.size(); ++i) {
        const entry e = gathered_[i];
        if (std::abs(relative(e.logit) - around) < found->radius) list_.add(e.id, e.logit);
      }
      compact_ = true;
      forget_facts();
      return true;
    }
    return false;
  }

  void keep_mass_around(double p, std::size_t min_keep, double around) {
    measure_mass();
    const double wanted = math::product(p, mass_);
    // The tokens nearest to `around` are mostly among the largest: look there first.
    for (std::size_t reach = 256; !compact_ && reach <= compact_limit && more_than(2 * reach); reach *= 4) {
      const double radius = around - effective(gather_at_least(reach));
      near_.clear();
      // All that is nearer than the lowest one gathered has been gathered.
      for (std::size_t i = 0; i < gathered_.size(); ++i) {
        const entry e = gathered_[i];
        const double distance = std::abs(effective(e.logit) - around);
        if (distance < radius) near_.push_back({distance, e.id, e.logit});
      }
      if (keep_nearest(wanted, min_keep, false)) return;
    }
    near_.clear();
    each([&](token_id id, float z) { near_.push_back({std::abs(effective(z) - around), id, z}); });
    keep_nearest(wanted, min_keep, true);
  }

  /// Keeps of near_ the nearest tokens up to the mass wanted. If near_ is not `all` and does not hold so much, does
  /// nothing and says so.
  bool keep_nearest(double wanted, std::size_t min_keep, bool all) {
    std::sort(near_.begin(), near_.end(), [](const distant& x, const distant& y) {
      return x.distance < y.distance || (x.distance == y.distance && x.id < y.id);
    });
    double mass = 0;
    std::size_t kept = 0;
    while (kept < near_.size() && (mass < wanted || kept < min_keep)) {
      mass = math::rounded(mass + math::exp(relative(near_[kept].z)));
      ++kept;
    }
    if (!all && (mass < wanted || kept < min_keep)) return false;
    if (all && kept == near_.size()) return true;
    near_.resize(kept);
    std::sort(near_.begin(), near_.end(), [](const distant& x, const distant& y) { return x.id < y.id; });
    keep_listed();
    return true;
  }

  /// Keeps what near_ lists, in id order. A set that is neither small nor above a bound becomes a workspace row.
  void keep_listed() {
    if (near_.size() <= list_limit_) {
      list_.clear();
      for (const distant& d : near_) list_.add(d.id, d.z);
      compact_ = true;
    } else {
      std::size_t next = 0;
      dense_.rewrite([&](token_id id, float z) {
        if (next == near_.size() || near_[next].id != id) return gone;
        ++next;
        return z;
      });
    }
    forget_facts();
  }

  /// Whether so few bits are set; does not look further than that.
  static bool has_at_most(std::span<const std::uint64_t> mask, std::size_t limit) noexcept {
    std::size_t ones = 0;
    for (const std::uint64_t word : mask) {
      if (word == 0) continue;
      ones += static_cast<std::size_t>(std::popcount(word));
      if (ones > limit) return false;
    }
    return true;
  }

  /// Makes the list of a dense row, from the tokens that a mask allows.
  void list_allowed(std::span<const std::uint64_t> mask) {
    // All are asked for before the first is waited for.
    list_.clear();
    for (std::size_t word = 0; word < mask.size(); ++word) {
      for (std::uint64_t left = mask[word]; left != 0; left &= left - 1) {
        const std::size_t id = word * 64 + static_cast<std::size_t>(std::countr_zero(left));
        if (id >= vocabulary_size_) break;
        dense_.prefetch(static_cast<token_id>(id));
        list_.add(static_cast<token_id>(id), gone);
      }
    }
    for (std::size_t i = 0; i < list_.size(); ++i) list_.values()[i] = dense_[list_.ids()[i]];
    compact_ = true;
  }

  // ---- editing

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

  void put(token_id id, float z) {
    z = math::flush_denormal(z);
    if (compact_) {
      list_.values()[list_.find(id)] = z;
    } else {
      dense_.put(id, z);
    }
    forget_facts();
  }

  // ---- drawing

  /// The one bit that decides how a law is drawn: it is too long to weigh whole.
  [[nodiscard]] bool drawn_by_rejection() { return more_than(compact_limit); }

  /// Builds the tree of the sums of all blocks' weights.
  void sum_blocks(const math::weight_map& weight) {
    blocks_.clear();
    push_sums(weight);
    blocks_.build();
  }

  void push_sums(const math::weight_map& weight) {
    if (compact_) return push_list_sums(weight);
    math::block_weights slots;
    const std::span<const float> peaks = dense_.peaks();
    const float border = dense_.bounded() ? dense_.bound() : detail::dense_row::lowest;
    for (std::size_t b = 0; b < dense_.blocks(); ++b) {
      if (!(peaks[b] >= border)) continue;
      if (weight.in_float()) {
        float buffer[64];
        const detail::dense_row::block at = dense_.block_at(b, buffer);
        const double sum = math::kernels().weight_sum(at.values, at.keep, weight.parameters());
        if (sum > 0) blocks_.push(static_cast<std::uint32_t>(b), sum, 0);
      } else {
        fill_block(b, 0, weight, slots);
        const double sum = math::sum_block(slots);
        if (sum > 0) blocks_.push(static_cast<std::uint32_t>(b), sum, 0);
      }
    }
  }

  void push_list_sums(const math::weight_map& weight) {
    weigh_list(weight);
    detail::push_block_sums(blocks_, list_.ids(), std::span<const float>(list_weights_));
  }

  /// The weights of block b; in compact form, where the list has been weighed, `begin` is its first place.
  void fill_block(std::size_t b, std::size_t begin, const math::weight_map& weight, math::block_weights& out) const {
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
    for (std::size_t i = begin; i < ids.size() && static_cast<std::size_t>(ids[i]) / 64 == b; ++i) {
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
      std::ranges::transform(values, list_weights_.begin(), [&](float z) { return is_gone(z) ? 0 : weight(z); });
    }
  }

  struct distant {
    double distance;
    token_id id;
    float z;
  };

  detail::dense_row dense_;
  std::size_t vocabulary_size_ = 0, list_limit_ = compact_limit;
  bool registered_ = false, compact_ = false;
  bool known_ = false, counted_ = false, mass_known_ = false, quick_known_ = false, quick_entropy_known_ = false,
       rough_known_ = false;
  row_status status_ = row_status::ok;
  token_id argmax_ = no_token;
  float max_ = gone;
  std::size_t size_ = 0;
  double scale_ = 1, shift_ = 0;
  double mass_ = 0, weighted_ = 0, quick_ = 0, quick_entropy_ = 0;
  double rough_ = 0, rough_factor_ = 1, rough_slack_ = 0;
  math::rough_parameters rough_parameters_{};

  detail::listed_row list_;  // the row in compact form
  detail::listed_row gathered_, sample_;
  float gathered_from_ = beyond;  // below `beyond`: gathered_ lists all tokens of the dense row from there on
  detail::mass_search nucleus_;
  std::vector<entry> order_, listed_;  // descending prefix: stored, and as handed out
  std::vector<float> peak_weights_, list_weights_, list_peaks_, run_;
  std::vector<distant> near_;
  std::vector<std::uint64_t> allowed_;
  math::sum_tree blocks_;
  math::dense_sum_tree bounds_;
  law hooked_;
};

}  // namespace decant
