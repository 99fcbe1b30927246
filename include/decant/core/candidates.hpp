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

#include <decant/core/dense_row.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
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
/// until at most `compact_limit` tokens are left after a narrowing, then *compact* (ids and z, in id order).
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
    ids_.clear();
    z_.clear();
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
    if (power == 1) return measure_mass(), log_sum_;
    return math::product(power, effective(max_)) + log_mass(power);
  }

  /// ln of the sum of e^(power * (logit - max())): without what a far maximum would round away. 0 on a bad row.
  [[nodiscard]] double log_mass(double power = 1) {
    if (!read()) return 0;
    if (power == 1) return measure_mass(), math::log(mass_);
    double sum = 0;
    if (!compact_ && vocabulary_size_ > compact_limit && power > 0) {
      each_run([&](const float* values, std::size_t size) {
        sum += math::kernels().exact_mass(values, size, max_, math::product(power, scale_), gone).mass;
      });
    } else {
      each([&](token_id, float z) { sum = math::rounded(sum + math::exp(math::product(power, relative(z)))); });
    }
    return math::log(sum);
  }

  /// log_sum() within 4e-6, at a tenth of the price on a long row: summed up in the weights of the law rather than in
  /// double. The same bits on every instruction set, and whatever was asked before. Reads the row; one pass.
  [[nodiscard]] double quick_log_sum() {
    if (!read()) return static_cast<double>(gone);
    const math::weight_map weight(max_, scale_);
    if (compact_ || vocabulary_size_ <= compact_limit || !weight.in_float()) return log_sum();
    return effective(max_) + math::log(weight_mass(weight));
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

  /// The measure of the law as it stands: bit for bit its total. Of a good row. One pass in float.
  [[nodiscard]] law_measure measure_law() {
    const bool good = read();
    DECANT_ASSERT(good, "a bad row has no law");
    const math::weight_map weight(max_, scale_);
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
    mass_known_ = quick_known_ = false;
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
      dense_.rewrite_listed(ids_, z_, all);
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
      for (std::size_t i = 0; i < ids_.size(); ++i) {
        const auto id = static_cast<std::size_t>(ids_[i]);
        if (id / 64 >= mask.size() || (mask[id / 64] >> (id % 64) & 1) == 0) z_[i] = gone;
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
    gather(count, gathered_);
    order_ = gathered_;
    select(order_, count);
    list(gathered_, order_.back());
    order_.clear();
  }

  /// Keeps logits >= threshold, and the largest `min_keep` (at least one) in any case. Reads the row.
  void keep_above(double threshold, std::size_t min_keep = 1) {
    if (!read()) return;
    keep_from(lowest_where([&](float z) { return effective(z) >= threshold; }), min_keep);
  }

  /// The same, with the threshold counted from the maximum: keeps logit - max() >= least. However high the logits
  /// stand, after a low temperature or a shift, nothing is rounded away before it is compared.
  void keep_near_max(double least, std::size_t min_keep = 1) {
    if (read()) keep_from(lowest_where([&](float z) { return relative(z) >= least; }), min_keep);
  }

  /// How many tokens have logit - max() >= least. Reads the row.
  [[nodiscard]] std::size_t count_near_max(double least) {
    return read() ? count_from(lowest_where([&](float z) { return relative(z) >= least; })) : 0;
  }

  /// Keeps tokens with ln p >= log_p + argmax_power * ln (the largest p), and the largest `min_keep` (at least one) in
  /// any case: an absolute threshold, or with a power of 1 one relative to the argmax. Where a quick sum decides, no
  /// exact one is made. Reads the row.
  void keep_probable(double log_p, std::size_t min_keep = 1, double argmax_power = 0) {
    if (read()) keep_from(border_of_probable(log_p, argmax_power), min_keep);
  }

  /// How many tokens those are, apart from `min_keep`. Reads the row.
  [[nodiscard]] std::size_t count_probable(double log_p, double argmax_power = 0) {
    return read() ? count_from(border_of_probable(log_p, argmax_power)) : 0;
  }

  /// Keeps the smallest set of probability mass >= p, filled in descending order, or, with a finite `around`, in
  /// ascending |logit - around| with ties by lower id; and at least `min_keep` (at least one) tokens of that order.
  /// p >= 1 keeps all. Masses are sums of double exponentials, which decide at the border. Reads the row.
  void keep_mass(double p, std::size_t min_keep = 1, double around = from_the_top) {
    if (!read() || p >= 1) return;
    min_keep = std::max<std::size_t>(min_keep, 1);
    if (math::is_finite(around)) return keep_mass_around(p, min_keep, around);
    // What the quick sum cannot decide the exact one does.
    if (!keep_mass_within(p, min_keep, quick_mass())) keep_mass_within(p, min_keep, exact_mass());
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
      out.block_bounds.assign(dense_.blocks(), 0);
      each_peak_weight(weight, [&](std::size_t b, float w) { out.block_bounds[b] = block_bound(w); });
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
      fill_block(leaf.index, leaf.begin, weight, out);
    };
    if (drawn_by_rejection()) {
      const std::span<double> bounds = bounds_.assign(dense_.blocks());
      each_peak_weight(weight, [&](std::size_t b, float w) { bounds[b] = block_bound(w); });
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
    narrowed_ = false;
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

  // Floats in their order are integers in theirs.
  static std::int64_t order_of(float z) noexcept {
    const auto bits = std::bit_cast<std::int32_t>(z);
    return bits < 0 ? std::int64_t{std::numeric_limits<std::int32_t>::min()} - bits : std::int64_t{bits};
  }
  static float at_order(std::int64_t place) noexcept {
    const std::int64_t bits = place < 0 ? std::int64_t{std::numeric_limits<std::int32_t>::min()} - place : place;
    return math::flush_denormal(std::bit_cast<float>(static_cast<std::int32_t>(bits)));
  }

  /// The smallest z for which `reaches`, a question that is once answered with yes from some z on; -inf where the
  /// answer is yes for all, +inf where it is no.
  template <class F>
  [[nodiscard]] static float lowest_where(F reaches) noexcept {
    constexpr float lowest = detail::dense_row::lowest;
    if (reaches(lowest)) return gone;
    std::int64_t below = order_of(lowest), reached = order_of(-lowest) + 1;
    while (reached - below > 1) {
      const std::int64_t middle = below + (reached - below) / 2;
      (reaches(at_order(middle)) ? reached : below) = middle;
    }
    return at_order(reached);
  }

  [[nodiscard]] float stored(token_id id) const noexcept {
    if (!compact_) return dense_[id];
    const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
    return found != ids_.end() && *found == id ? z_[static_cast<std::size_t>(found - ids_.begin())] : gone;
  }

  /// Calls f(id, z) for every token that is not gone, ascending.
  template <class F>
  void each(F f) const {
    if (!compact_) return dense_.each(f);
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      if (!is_gone(z_[i])) f(ids_[i], z_[i]);
    }
  }

  /// The same for z >= threshold, of a good row that has been read.
  template <class F>
  void each_at_least(float threshold, F f) const {
    if (!compact_) return dense_.each_at_least(threshold, f);
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      if (z_[i] >= threshold) f(ids_[i], z_[i]);
    }
  }

  /// Calls f(id, weight) for every token of positive weight, ascending.
  template <class F>
  void each_weight(const math::weight_map& weight, F f) const {
    if (compact_ || !weight.in_float()) {
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

  /// Calls f(block, weight of its largest value) for every block of a dense row that has a token, ascending.
  template <class F>
  void each_peak_weight(const math::weight_map& weight, F f) {
    const std::span<const float> peaks = dense_.peaks();
    peak_weights_.resize(peaks.size());
    if (weight.in_float()) {
      math::kernels().float_weights(peaks.data(), peaks.size(), weight.parameters(), peak_weights_.data());
    } else {
      std::ranges::transform(peaks, peak_weights_.begin(), [&](float z) { return is_gone(z) ? 0 : weight(z); });
    }
    for (std::size_t b = 0; b < dense_.blocks(); ++b) {
      if (!is_gone(peaks[b])) f(b, peak_weights_[b]);
    }
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
    mass_known_ = quick_known_ = false;
    order_.clear();
  }

  void measure_mass() {
    if (mass_known_) return;
    mass_known_ = true;
    double sum = 0, weighted = 0;
    if (!compact_ && vocabulary_size_ > compact_limit) {
      each_run([&](const float* values, std::size_t size) {
        const math::portable::mass_sums run =
            math::kernels().exact_mass(values, size, max_, scale_, math::portable::minus_infinity);
        sum = math::rounded(sum + run.mass);
        weighted = math::rounded(weighted + run.weighted);
      });
      return keep_masses(sum, weighted);
    }
    each([&](token_id, float z) {
      const double below = relative(z), w = math::exp(below);
      sum = math::rounded(sum + w);
      weighted = math::rounded(weighted + math::product(w, below));
    });
    keep_masses(sum, weighted);
  }

  void keep_masses(double sum, double weighted) {
    mass_ = sum;
    log_sum_ = effective(max_) + math::log(sum);
    // H = ln Z - E[logit - top]; rounding may leave a tiny negative where it is 0.
    entropy_ = std::max(0.0, math::log(sum) - weighted / sum);
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

  /// Two numbers between which the sum of the double exponentials lies.
  struct mass_bounds {
    double low, high;
  };

  /// From the weights of the law where a dense row has them in float, else exactly; remembered.
  mass_bounds quick_mass() {
    const math::weight_map weight(max_, scale_);
    if (mass_known_ || compact_ || vocabulary_size_ <= compact_limit || !weight.in_float()) return exact_mass();
    return bounds_of(weight_mass(weight), quick_error);
  }

  /// The sum of the weights of a dense row that are floats, but for roundings; remembered.
  double weight_mass(const math::weight_map& weight) {
    if (quick_known_) return quick_;
    quick_known_ = true;
    quick_ = 0;
    each_run([&](const float* values, std::size_t size) {
      quick_ = math::rounded(quick_ + math::kernels().quick_mass(values, size, weight.parameters()));
    });
    return quick_;
  }

  mass_bounds exact_mass() {
    measure_mass();
    return {mass_, mass_};
  }

  /// The relative error of a mass of float weights: 1.8e-7 of the exponential itself, twice 2^-24 of sums of four, and
  /// three roundings of the exponent, each 2^-24 of it, where the mean exponent counts: at most log2 of the number of
  /// tokens, which 2^26 is never below. Weights below 2^-126 are lost in 2^-90.
  static constexpr double quick_error = 3.1e-7 + 26 * 1.3e-7 + 0x1p-90;
  static mass_bounds bounds_of(double mass, double error) noexcept { return {mass * (1 - error), mass * (1 + error)}; }

  /// The border above which tokens have ln p >= log_p + power * ln p(argmax). Bounds of the mass bound it; the exact
  /// mass is asked for only if a token lies between.
  float border_of_probable(double log_p, double power) {
    const auto border = [&](double mass) {
      const double least = log_p + (power == 1 ? 0 : math::product(1 - power, math::log(mass)));
      return lowest_where([&](float z) { return relative(z) >= least; });
    };
    if (power == 1) return border(1);
    const mass_bounds quick = quick_mass();
    const float ends[] = {border(quick.low), border(quick.high)};
    const float low = std::min(ends[0], ends[1]), high = std::max(ends[0], ends[1]);
    bool between = false;
    if (low != high) each_at_least(above_gone(low), [&](token_id, float z) { between = between || z < high; });
    return between ? border(exact_mass().low) : high;
  }

  /// A border that means all tokens as one that kernels can compare with.
  static float above_gone(float border) noexcept { return is_gone(border) ? detail::dense_row::lowest : border; }

  std::size_t count_from(float border) {
    if (!compact_) return dense_.count_at_least(above_gone(border));
    std::size_t count = 0;
    each_at_least(above_gone(border), [&](token_id, float) { ++count; });
    return count;
  }

  /// Keeps values from a border on, and the largest `min_keep`.
  void keep_from(float border, std::size_t min_keep) {
    if (is_gone(border)) return;
    std::size_t kept = 0;
    entry last{-1, std::numeric_limits<float>::max()};
    each_at_least(border, [&](token_id id, float z) {
      ++kept;
      if (z <= last.logit) last = {id, z};
    });
    if (kept < std::max<std::size_t>(min_keep, 1)) return keep_largest(min_keep);
    if (more_than(kept)) cut(last, kept);
  }

  /// Keeps the nucleus if it is the same for every total between the two; else does nothing and says so.
  bool keep_mass_within(double p, std::size_t min_keep, mass_bounds total) {
    const double low = math::product(p, total.low), high = math::product(p, total.high);
    double mass = 0;
    std::size_t kept = 0;
    for (std::size_t reach = 64; more_than(kept); reach *= 4) {
      if (reach > 1024) {
        const verdict seen = keep_large_nucleus(p, min_keep, total);
        if (seen != verdict::not_here) return seen == verdict::done;
      }
      sort_prefix(reach);
      for (; kept < order_.size();) {
        mass = math::rounded(mass + math::exp(relative(order_[kept].logit)));
        ++kept;
        if (kept < min_keep || mass < low) continue;
        if (mass < high) return false;
        if (more_than(kept)) cut(order_[kept - 1], kept);
        return true;
      }
    }
    return true;
  }

  enum class verdict : std::uint8_t { done, undecided, not_here };

  /// Keeps a nucleus of many tokens of a plain dense row, without sorting them. `undecided` if that takes a total that
  /// is better known, `not_here` if this is no such row.
  verdict keep_large_nucleus(double p, std::size_t min_keep, mass_bounds total) {
    if (compact_ || !dense_.is_plain() || vocabulary_size_ < 2 * sample_size) return verdict::not_here;
    if (min_keep > compact_limit) return verdict::not_here;
    // It may lie among the largest few thousand.
    gather(compact_limit, gathered_);
    double gathered = 0;
    for (const entry& e : gathered_) gathered += math::exp(relative(e.logit));
    const double low = math::product(p, total.low), high = math::product(p, total.high);
    if (gathered * (1 - 1e-9) > high) return keep_among(gathered_, 0, 0, {low, high}, min_keep);
    return keep_between(p, min_keep);
  }

  /// Keeps the tokens up to the one whose mass, with that of all before it, reaches what is wanted. `left` holds it,
  /// and before all of `left` come `kept` tokens of mass `above`. Halves: what is before the middle weighs too little,
  /// or is enough.
  verdict keep_among(std::span<entry> left, double above, std::size_t kept, mass_bounds wanted, std::size_t min_keep) {
    while (left.size() > 64) {
      const std::size_t half = left.size() / 2;
      std::nth_element(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(half), left.end(), detail::before);
      double front = 0;
      for (const entry& e : left.first(half)) front += math::exp(relative(e.logit));
      if (above + front < wanted.low) {
        above += front;
        kept += half;
        left = left.subspan(half);
      } else {
        left = left.first(half);
      }
    }
    std::sort(left.begin(), left.end(), detail::before);
    // These sums are not in the order of the definition.
    const double doubt = 1e-11 * wanted.high;
    for (const entry& e : left) {
      const double before = above;
      above += math::exp(relative(e.logit));
      ++kept;
      if (above < wanted.low - doubt) continue;
      if (above < wanted.high + doubt || before > wanted.low - doubt || kept < min_keep) break;
      if (more_than(kept)) cut(e, kept);
      return verdict::done;
    }
    return wanted.low == wanted.high ? verdict::not_here : verdict::undecided;
  }

  static constexpr std::size_t sample_size = 4096;

  /// Values at even distances along a dense row, which has at least so many.
  void take_sample() {
    sample_.clear();
    const std::size_t stride = vocabulary_size_ / sample_size;
    for (std::size_t i = 0; i < sample_size; ++i) sample_.push_back(dense_[static_cast<token_id>(i * stride)]);
  }

  /// The same where most of the row is kept: a sample tells between which two values the last token lies, and exact
  /// sums over the row weigh what lies above.
  verdict keep_between(double p, std::size_t min_keep) {
    take_sample();
    std::sort(sample_.begin(), sample_.end(), [](float x, float y) { return x > y; });
    double all = 0, squares = 0, so_far = 0;
    for (const float z : sample_) {
      const double w = is_gone(z) ? 0 : math::exp(relative(z));
      all += w;
      squares += w * w;
    }
    // Four deviations either way of the share that lies above a value.
    const double slack = 4 * std::sqrt(squares) * std::sqrt(p * (1 - p)) + 4 * all / sample_size;
    float high = -detail::dense_row::lowest, low = detail::dense_row::lowest;
    for (const float z : sample_) {
      if (is_gone(z)) break;
      so_far += math::exp(relative(z));
      if (so_far < p * all - slack) high = z;
      if (so_far > p * all + slack) {
        low = z;
        break;
      }
    }
    // The kernels see values as they are in memory.
    const float raw_low = detail::dense_row::raw_threshold(low), raw_high = detail::dense_row::raw_threshold(high);
    double above = 0, total = 0;
    each_run([&](const float* values, std::size_t size) {
      const math::portable::mass_sums run = math::kernels().exact_mass(values, size, max_, scale_, raw_high);
      above += run.above;
      total += run.mass;
    });
    const double wanted = math::product(p, total);
    gathered_.clear();
    const std::size_t even = vocabulary_size_ / 64 * 64;
    places_.resize(vocabulary_size_ + 64);
    const std::size_t between =
        math::kernels().bracket(dense_.data(), even, {max_, 0}, raw_low, raw_high, places_.data()).count;
    for (std::size_t i = 0; i < between; ++i) {
      const auto id = static_cast<token_id>(places_[i]);
      gathered_.push_back({id, dense_[id]});
    }
    for (std::size_t i = even; i < vocabulary_size_; ++i) {
      const float z = dense_[static_cast<token_id>(i)];
      if (z >= low && z < high) gathered_.push_back({static_cast<token_id>(i), z});
    }
    if (!(above < wanted * (1 - 1e-11)) || gathered_.empty()) return verdict::not_here;
    return keep_among(gathered_, above, dense_.count_at_least(high), {wanted, wanted}, min_keep);
  }

  /// Fills order_ with the first `count` tokens in descending order, all if there are not so many, and maybe more.
  void sort_prefix(std::size_t count) {
    if (!read()) return order_.clear();
    if (order_.size() >= count) return;
    // Grow by more than was asked, so that a caller who walks down pays for few sorts.
    count = std::max({count, 2 * order_.size(), std::size_t{32}});
    if (!more_than(count)) count = this->count();
    if (order_.size() >= count) return;
    gather(count, order_);
    select(order_, count);
    std::sort(order_.begin(), order_.end(), detail::before);
  }

  /// Leaves the first `count` in descending order, in any order, the last of them at the end.
  static void select(std::vector<entry>& entries, std::size_t count) {
    const auto end = entries.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(entries.begin(), end - 1, entries.end(), detail::before);
    entries.resize(count);
  }

  /// The last of the first `count` tokens in descending order, of which there are more.
  entry nth(std::size_t count) {
    if (order_.size() >= count) return order_[count - 1];
    gather(count, gathered_);
    select(gathered_, count);
    return gathered_.back();
  }

  /// Collects, in ascending id, at least the first `count` tokens in descending order. There are that many.
  void gather(std::size_t count, std::vector<entry>& out) {
    const float threshold = compact_ ? detail::dense_row::lowest : threshold_for(count);
    out.clear();
    std::size_t at_threshold = 0;
    each_at_least(threshold, [&](token_id id, float z) {
      // Of those at the threshold itself the first ones are enough.
      if (z > threshold || ++at_threshold <= count) out.push_back({id, z});
    });
  }

  /// A value that at least `count` tokens of a dense row reach, and, ties apart, not many more.
  float threshold_for(std::size_t count) {
    constexpr float lowest = detail::dense_row::lowest;
    const std::span<const float> peaks = dense_.peaks();
    const auto reach = [&](float t) { return math::kernels().count_at_least(peaks.data(), peaks.size(), t); };
    if (!dense_.bounded() && 4 * count <= 3 * dense_.blocks() && reach(lowest) >= count) {
      // As many blocks as tokens are asked for reach the answer: halve, first in value, then in the order of floats.
      const std::size_t enough = count + count / 8 + 2;
      float high = max_, low = lowest, step = 1;
      if (reach(high) >= count) return high;
      while (low == lowest && step < 0x1p20F) {
        const float t = max_ - step;
        step *= 2;
        if (t > lowest && reach(t) >= count)
          low = t;
        else
          high = t;
      }
      for (int i = 0; i < 48; ++i) {
        const float middle = i < 16 && low > lowest ? low + (high - low) / 2
                                                    : at_order(order_of(low) + (order_of(high) - order_of(low)) / 2);
        if (!(middle > low && middle < high)) break;
        const std::size_t found = reach(middle);
        if (found < count) {
          high = middle;
          continue;
        }
        low = middle;
        if (found <= enough) break;
      }
      return low;
    }
    return sampled_threshold(count);
  }

  /// The same from a sample of the row, for many tokens; -inf's successor if the sample does not help.
  float sampled_threshold(std::size_t count) {
    constexpr float lowest = detail::dense_row::lowest;
    if (vocabulary_size_ < 2 * sample_size || 2 * count > vocabulary_size_) return lowest;
    take_sample();
    const double share = static_cast<double>(count) / static_cast<double>(vocabulary_size_) * sample_size;
    for (double rank = share + 4 * std::sqrt(share) + 4; 2 * rank < sample_size; rank *= 2) {
      const auto at = sample_.begin() + static_cast<std::ptrdiff_t>(rank);
      std::nth_element(sample_.begin(), at, sample_.end(), [](float x, float y) { return x > y; });
      const float t = *at;
      if (is_gone(t)) break;
      if (dense_.count_at_least(t) >= count) return t;
    }
    return lowest;
  }

  // ---- narrowing

  /// Keeps what is not after `last` in descending order: `count` tokens, which include the largest.
  void cut(entry last, std::size_t count) {
    narrowed_ = true;
    mass_known_ = quick_known_ = false;
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
      dense_.each_at_least(last.logit, [&](token_id id, float z) {
        if (!inside(id, z)) return;
        ids_.push_back(id);
        z_.push_back(z);
      });
      compact_ = true;
    } else {
      dense_.set_bound(last);
    }
    size_ = count;
    counted_ = true;
  }

  /// Makes the list of a dense row, from entries in ascending id: those not after `last`.
  void list(const std::vector<entry>& from, entry last) {
    ids_.clear();
    z_.clear();
    for (const entry& e : from) {
      if (detail::before(last, e)) continue;
      ids_.push_back(e.id);
      z_.push_back(e.logit);
    }
    narrowed_ = true;
    mass_known_ = quick_known_ = false;
    compact_ = true;
    size_ = ids_.size();
    counted_ = true;
  }

  /// The scan has found the argmax: no further pass.
  void keep_argmax() {
    narrowed_ = true;
    mass_known_ = quick_known_ = false;
    order_.assign(1, {argmax_, max_});
    ids_.assign(1, argmax_);
    z_.assign(1, max_);
    size_ = 1;
    counted_ = true;
    compact_ = true;
  }

  void keep_mass_around(double p, std::size_t min_keep, double around) {
    measure_mass();
    const double wanted = math::product(p, mass_);
    // The tokens nearest to `around` are mostly among the largest: look there first.
    for (std::size_t reach = 256; !compact_ && reach <= compact_limit && more_than(2 * reach); reach *= 4) {
      gather(reach, gathered_);
      const float lowest = std::ranges::min(gathered_, {}, &entry::logit).logit;
      const double radius = around - effective(lowest);
      near_.clear();
      // All that is nearer than the lowest one gathered has been gathered.
      for (const entry& e : gathered_) {
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
    narrowed_ = true;
    if (near_.size() <= list_limit_) {
      ids_.clear();
      z_.clear();
      for (const distant& d : near_) {
        ids_.push_back(d.id);
        z_.push_back(d.z);
      }
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
    ids_.clear();
    z_.clear();
    for (std::size_t word = 0; word < mask.size(); ++word) {
      for (std::uint64_t left = mask[word]; left != 0; left &= left - 1) {
        const std::size_t id = word * 64 + static_cast<std::size_t>(std::countr_zero(left));
        if (id >= vocabulary_size_) break;
        const float z = dense_[static_cast<token_id>(id)];
        if (is_gone(z)) continue;
        ids_.push_back(static_cast<token_id>(id));
        z_.push_back(z);
      }
    }
    compact_ = true;
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
      dense_.put(id, z);
    }
    forget_facts();
  }

  // ---- drawing

  /// The one bit that decides how a law is drawn: nothing has narrowed it, and it is too long to weigh whole.
  [[nodiscard]] bool drawn_by_rejection() { return !narrowed_ && more_than(compact_limit); }

  /// At least the sum of 64 weights none of which is above `peak` by more than the rounding of the exponential.
  static double block_bound(float peak) noexcept { return 64.0 * (1.0 + 0x1p-20) * static_cast<double>(peak); }

  /// Builds the tree of the sums of all blocks' weights.
  void sum_blocks(const math::weight_map& weight) {
    blocks_.clear();
    push_sums(weight);
    blocks_.build();
  }

  void push_sums(const math::weight_map& weight) {
    math::block_weights slots;
    const auto finish = [&](std::size_t b, std::size_t count, float only, std::size_t tag) {
      const double sum = count == 1 ? static_cast<double>(only) : math::sum_block(slots);
      if (sum > 0) blocks_.push(static_cast<std::uint32_t>(b), sum, static_cast<std::uint32_t>(tag));
    };
    if (compact_) {
      for (std::size_t begin = 0, end = 0; begin < ids_.size(); begin = end) {
        const token_id b = ids_[begin] / 64;
        for (end = begin + 1; end < ids_.size() && ids_[end] / 64 == b;) ++end;
        if (end - begin == 1) {
          if (!is_gone(z_[begin])) finish(static_cast<std::size_t>(b), 1, weight(z_[begin]), begin);
          continue;
        }
        std::size_t count = 0;
        float only = 0;
        slots.fill(0);
        for (std::size_t i = begin; i < end; ++i) {
          if (is_gone(z_[i])) continue;
          only = weight(z_[i]);
          slots[static_cast<std::size_t>(ids_[i] % 64)] = static_cast<double>(only);
          ++count;
        }
        if (count > 0) finish(static_cast<std::size_t>(b), count, only, begin);
      }
      return;
    }
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
        finish(b, 64, 0, 0);
      }
    }
  }

  /// The weights of block b; `begin` is its first place in compact form.
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
    for (std::size_t i = begin; i < ids_.size() && static_cast<std::size_t>(ids_[i]) / 64 == b; ++i) {
      if (!is_gone(z_[i])) store(ids_[i], z_[i]);
    }
  }

  struct distant {
    double distance;
    token_id id;
    float z;
  };

  detail::dense_row dense_;
  std::size_t vocabulary_size_ = 0, list_limit_ = compact_limit;
  bool registered_ = false, compact_ = false, narrowed_ = false;
  bool known_ = false, counted_ = false, mass_known_ = false, quick_known_ = false;
  row_status status_ = row_status::ok;
  token_id argmax_ = no_token;
  float max_ = gone;
  std::size_t size_ = 0;
  double scale_ = 1, shift_ = 0;
  double mass_ = 0, log_sum_ = 0, entropy_ = 0, quick_ = 0;

  std::vector<token_id> ids_;  // compact form, ascending; a ban leaves -inf in z_ until the next narrowing
  std::vector<float> z_;
  std::vector<entry> order_, listed_;  // descending prefix: stored, and as handed out
  std::vector<entry> gathered_;
  std::vector<float> sample_, peak_weights_, run_;
  std::vector<std::uint32_t> places_;
  std::vector<distant> near_;
  std::vector<std::uint64_t> allowed_;
  math::sum_tree blocks_;
  math::dense_sum_tree bounds_;
  law hooked_;
};

}  // namespace decant
