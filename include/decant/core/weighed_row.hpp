// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <decant/core/dense_row.hpp>
#include <decant/core/listed_row.hpp>
#include <decant/core/mass_search.hpp>
#include <decant/core/stored_row.hpp>
#include <decant/core/swift_sum.hpp>
#include <decant/core/token.hpp>
#include <decant/math/exp2.hpp>
#include <decant/math/kernels.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/strict.hpp>

namespace decant {

DECANT_STRICT_BEGIN

/// A threshold for probabilities: ln p >= log_p + argmax_power * ln (the largest p) - entropies * (the entropy).
struct probability_threshold {
  double log_p;
  double argmax_power = 0;
  double entropies = 0;
};

namespace detail {

/// The middle layer of candidates: logits as they stand, the masses of their exponentials, and the narrowings that
/// depend on them.
///
/// Exponentials in double are the definition, and the last resort: bounds of their sum are taken from cheaper sums, and
/// each only decides what it proves.
class weighed_row : public stored_row {
 protected:
  using stored_row::stored_row;

  // ---- logits as they stand

  [[nodiscard]] double effective(const float& z) const noexcept {
    return is_gone(z) ? static_cast<double>(gone) : math::product(scale_, static_cast<double>(z)) + shift_;
  }

  [[nodiscard]] float effective_float(const float& z) const noexcept {
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
    constexpr float lowest = dense_row::lowest;
    if (reaches(lowest)) return opaque_gone();
    std::int64_t below = order_of(lowest), reached = order_of(-lowest) + 1;
    const std::int64_t near = order_of(math::flush_denormal(math::saturated(hint)));
    if (near - 2 > below && near + 2 < reached) {
      if (!reaches(at_order(near - 2))) below = near - 2;
      if (reaches(at_order(near + 2))) reached = near + 2;
    }
    while (reached - below > 1) {
      const std::int64_t middle = below + (reached - below) / 2;
      (reaches(at_order(middle)) ? reached : below) = middle;
    }
    return at_order(reached);
  }

  /// The smallest z with relative(z) >= least.
  [[nodiscard]] float border_near_max(double least) const noexcept {
    return lowest_where(static_cast<double>(max_) + least / scale_, [&](float z) { return relative(z) >= least; });
  }

  // ---- masses

  void measure_mass() {
    if (mass_known()) return;
    mass_at_ = stand_;
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
    listed_row& all = compact_ ? list_ : sample_;
    nucleus_.weigh(all, max_, scale_);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double w = nucleus_.weights()[i];
      if (!(w > 0)) continue;
      mass_ = math::rounded(mass_ + w);
      weighted_ = math::rounded(weighted_ + math::product(w, relative(all.values()[i])));
    }
  }

  /// The weights e^relative(z) of the first `count` tokens in descending order, of all if there are not so many.
  std::span<const double> weigh_prefix(std::size_t count) {
    sort_prefix(count);
    const std::size_t size = std::min(count, order_.size()), even = (size + 15) / 16 * 16;
    run_.resize(std::max(run_.size(), even));
    for (std::size_t i = 0; i < size; ++i) run_[i] = order_[i].logit;
    std::fill(run_.begin() + static_cast<std::ptrdiff_t>(size), run_.begin() + static_cast<std::ptrdiff_t>(even), gone);
    order_weights_.resize(std::max(order_weights_.size(), even));
    math::kernels().exps(run_.data(), even, max_, scale_, order_weights_.data());
    return {order_weights_.data(), size};
  }

  /// H = ln Z - E[logit - top]; rounding may leave a tiny negative where it is 0.
  [[nodiscard]] double entropy_value() const { return std::max(0.0, math::log(mass_) - weighted_ / mass_); }

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
    if (mass_known() || how == sharpness::exact) return exact_mass();
    if (how == sharpness::rough && rough_known()) return rough_bounds(rough_);
    if (compact_ || vocabulary_size_ <= compact_limit) return exact_mass();
    if (how == sharpness::near || !can_sum_quickly()) return near_mass();
    if (swift_known()) return bounds_of(swift_, swift_sum::error);
    return bounds_of(quick_mass(), quick_error_of(quick_mass()));
  }

  /// The same where some of the tokens are listed, with the sum of their masses: a rough or a quick sum need count for
  /// the others alone.
  mass_bounds mass_within(sharpness how, listed_row& list, double sum) {
    if (mass_known() || compact_ || vocabulary_size_ <= compact_limit) return mass_within(how);
    if (how == sharpness::rough && rough_known()) {
      const std::span<const float> values = list.padded(64);
      peak_weights_.resize(std::max(peak_weights_.size(), values.size() / 64));
      double listed = 0;
      math::kernels().peaks_and_mass(values.data(), values.size(), peak_weights_.data(), rough_parameters_, listed);
      const mass_bounds rest = rough_bounds(std::max(0.0, rough_ - listed * rough_factor_));
      return {sum + rest.low, sum + rest.high};
    }
    if (how == sharpness::near || !can_sum_quickly() || swift_known()) return mass_within(how);
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
    if (known_ || compact_ || vocabulary_size_ <= compact_limit || dense_.measured() || !dense_.is_all_floats())
      return {};
    // About a value that is somewhere in the middle, so that little cancels.
    double middle = 0;
    const std::size_t step = vocabulary_size_ / 8;
    for (std::size_t i = 0; i < 8; ++i) middle += static_cast<double>(dense_[static_cast<token_id>(i * step)]) / 8;
    if (!math::is_finite(middle)) return {};
    const auto reference = static_cast<float>(middle);
    const math::portable::moment_sums sums = dense_.measure_with_moments(reference);
    const auto n = static_cast<double>(vocabulary_size_);
    const double mean = sums.sum / n, square = sums.squares / n, variance = square - math::product(mean, mean);
    // Sums of floats, of no more than 64 each, in either sum: some 20 roundings, by Cauchy and Schwarz.
    const double error = 60 * 0x1p-23 * square;
    if (!math::is_finite(square) || !(variance > 4 * error)) return {};
    return mass_bounds{scale_ * std::sqrt(variance - error), scale_ * std::sqrt(variance + error)};
  }

  /// Reads the row, and sums rough weights along the way, if they are wanted.
  bool read_for_mass(bool wanted = true) {
    if (wanted) read_with_rough_mass();
    return read();
  }

  /// Unless something better is known. A row that has been read is passed over again: better sums cost more.
  void read_with_rough_mass() {
    if (compact_ || vocabulary_size_ <= compact_limit || bad() || !dense_.is_all_floats()) return;
    if (rough_known() || quick_at_ == stand_ || swift_known() || mass_known()) return;
    // Weights must be told from a reference that is known beforehand, and not too far below the largest.
    float reference = known_ ? max_ : opaque_gone();
    const std::size_t step = vocabulary_size_ / 8;
    for (std::size_t i = 0; i < 8 && !known_; ++i) {
      const float z = dense_[static_cast<token_id>(i * step)];
      if (math::is_finite(z) && z > reference) reference = z;
    }
    const double base2 = scale_ * math::per_doubling, at = base2 * static_cast<double>(reference);
    if (is_gone(reference) || base2 < 0x1p-20 || base2 > 0x1p10 || std::abs(at) > 1000) return;
    rough_parameters_ = {static_cast<float>(base2 * 0x1p23), static_cast<float>((127 - at) * 0x1p23)};
    const double mass = dense_.measure_with_mass(rough_parameters_);
    if (!read()) return;
    const double above = (static_cast<double>(max_) - static_cast<double>(reference)) * base2;
    if (above > 100) return;  // beyond what a float can tell
    rough_factor_ = math::exp(-above / math::per_doubling);
    rough_ = mass * rough_factor_;
    // Roundings of slope, offset and exponent, of up to a few hundred each.
    rough_slack_ = 0x1p-24 * (500 + 2 * std::abs(at) + 2 * above);
    if (math::is_finite(rough_)) rough_at_ = stand_;
  }

  /// Reads the row; if that takes a pass, takes the swift sum along the way.
  bool read_for_swift_sum() {
    if (known_ || compact_ || vocabulary_size_ <= compact_limit || !swift_sum::can_tell(scale_) || !dense_.is_plain()) {
      return read();
    }
    swift_sum sum(scale_);
    dense_.measure_with(sum);
    if (!read()) return false;
    if (!compact_) remember(sum);  // a short list has an exact sum
    return true;
  }

  /// The mass within swift_sum::error, remembered; the exact one where such a sum does not tell it. The same bits on
  /// every instruction set, and whatever was asked before. Of a good row that has been read.
  double swift_mass() {
    if (swift_known()) return swift_;
    if (compact_ || vocabulary_size_ <= compact_limit || !swift_sum::can_tell(scale_)) return measure_mass(), mass_;
    swift_sum sum(scale_);
    float peaks[swift_sum::stretch / 64];
    // A last block that is not whole is added apart, as by the pass that reads the row.
    std::size_t left = dense_.excludes() ? whole_row : vocabulary_size_ / 64 * 64;
    each_run([&](const float* values, std::size_t size) {
      const std::size_t whole = std::min(size, left);
      if (whole > 0) sum.add(values, whole, peaks);
      if (whole < size) sum.add(values + whole, size - whole, peaks);
      left -= whole;
    });
    remember(sum);
    return swift_;
  }
  void remember(const swift_sum& sum) {
    swift_at_ = stand_;
    if (sum.tells(max_)) {
      swift_ = sum.mass(max_);
    } else {
      measure_mass();
      swift_ = mass_;
    }
  }

  /// Whether the row is long, and its exponents are such that floats tell them.
  [[nodiscard]] bool can_sum_quickly(double power = 1) const {
    const double base2 = power * scale_ * math::per_doubling;
    return !compact_ && vocabulary_size_ > compact_limit && base2 >= 0x1p-20 && base2 <= 0x1p20 &&
           std::abs(static_cast<double>(max_)) * base2 < 0x1p24;
  }
  [[nodiscard]] math::quick_parameters quick_parameters(double power = 1) const {
    return math::quick_parameters_of(math::weight_map(max_, power * scale_).parameters());
  }

  /// The mass but for roundings; remembered.
  double quick_mass() {
    if (quick_at_ == stand_) return quick_;
    quick_at_ = stand_;
    return quick_ = quick_power_mass(1);
  }
  /// The sum of the weights to a power but for roundings.
  double quick_power_mass(double power) {
    double sum = 0;
    const math::quick_parameters parameters = quick_parameters(power);
    each_run([&](const float* values, std::size_t size) {
      sum = math::rounded(sum + math::kernels().quick_mass(values, size, parameters));
    });
    return sum;
  }

  /// The entropy but for roundings; remembered, and the mass with it.
  double quick_entropy_value() {
    if (quick_entropy_at_ == stand_) return quick_entropy_;
    quick_entropy_at_ = quick_at_ = stand_;
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
  mass_bounds near_mass() { return mass_known() ? exact_mass() : bounds_of(split_mass(gone).mass, near_error); }

  /// The same sum as a number, and that over values from a border on.
  math::portable::split_mass split_mass(float border) {
    math::portable::split_mass sums;
    const float raw = dense_row::raw_threshold(border);
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
  /// The same of a sum that is known: its mean exponent is at most what it would be if all were level.
  [[nodiscard]] double quick_error_of(double sum) const {
    const double level = math::log(static_cast<double>(vocabulary_size_) / sum) * math::per_doubling;
    return std::min(quick_error, 2 * quick_sum_error + (std::max(0.0, level) + 0.01) * 8.4e-8 + 0x1p-90);
  }
  /// That of the mass, and twice that of a mean of exponents of at most ln 2^26.
  static constexpr double entropy_error = 2 * quick_error * 18.1 + quick_error;
  static mass_bounds bounds_of(double mass, double error) noexcept { return {mass * (1 - error), mass * (1 + error)}; }

  [[nodiscard]] bool mass_known() const noexcept { return mass_at_ == stand_; }
  [[nodiscard]] bool swift_known() const noexcept { return swift_at_ == stand_; }
  [[nodiscard]] bool rough_known() const noexcept { return rough_at_ == stand_; }

  /// The sum of e^(power * (logit - max)).
  double power_mass(double power) {
    double sum = 0;
    if (!compact_ && vocabulary_size_ > compact_limit && power > 0) {
      each_run([&](const float* values, std::size_t size) {
        sum += math::kernels().exact_mass(values, size, max_, math::product(power, scale_)).mass;
      });
    } else {
      each([&](token_id, float z) { sum = math::rounded(sum + math::exp(math::product(power, relative(z)))); });
    }
    return sum;
  }

  // ---- bounds of the law

 public:
  /// What is known of the law as it stands, each sum taken when it is asked for.
  class law_bounds {
   public:
    /// The sum of the weights e^(logit - max).
    [[nodiscard]] mass_bounds mass() const { return row_.bounded_mass(how_); }
    /// The sum of their squares.
    [[nodiscard]] mass_bounds squares() const { return row_.bounded_squares(how_); }
    /// The entropy in nats.
    [[nodiscard]] mass_bounds entropy() const { return row_.bounded_entropy(how_); }

   private:
    friend weighed_row;
    law_bounds(weighed_row& row, sharpness how) : row_(row), how_(how) {}

    weighed_row& row_;
    sharpness how_;
  };

 protected:
  /// Calls f(law_bounds) with sharper and sharper ones until it says yes.
  template <class F>
  void decide_by_bounds(F f) {
    if (!read_for_mass()) return;
    if (!mass_known() && can_sum_quickly(2)) {
      if (rough_known() && more_than(2 * few_listed)) {
        sum_largest();
        if (f(law_bounds(*this, sharpness::rough))) return;
      }
      if (f(law_bounds(*this, sharpness::quick))) return;
    }
    const bool decided = f(law_bounds(*this, sharpness::exact));
    DECANT_ASSERT(decided, "exact bounds decide");
  }

  /// Exact sums over the largest tokens, and bounds of the others: of the largest weight, and of all together.
  struct largest_sums {
    double mass = 0, squares = 0, weighted = 0, next = 0;
    mass_bounds others{};
  };
  void sum_largest() {
    const float threshold = gather_at_least(few_listed);
    largest_ = {.mass = nucleus_.weigh(gathered_, max_, scale_), .next = relative(threshold)};
    for (std::size_t i = 0; i < gathered_.size(); ++i) {
      const double weight = nucleus_.weights()[i];
      largest_.squares += weight * weight;
      if (weight > 0) largest_.weighted -= weight * relative(gathered_.values()[i]);
    }
    const mass_bounds all = mass_within(sharpness::rough, gathered_, largest_.mass);
    largest_.others = {std::max(0.0, all.low - largest_.mass), all.high - largest_.mass};
  }
  /// What sums in another order may differ by.
  static mass_bounds loosened(mass_bounds sum) noexcept { return {sum.low * (1 - 1e-11), sum.high * (1 + 1e-11)}; }

  mass_bounds bounded_mass(sharpness how) {
    if (how != sharpness::rough) return mass_within(how);
    return loosened({largest_.mass + largest_.others.low, largest_.mass + largest_.others.high});
  }

  mass_bounds bounded_squares(sharpness how) {
    if (how == sharpness::rough) {
      return loosened({largest_.squares, largest_.squares + math::exp(largest_.next) * largest_.others.high});
    }
    const double sum = how == sharpness::quick ? quick_power_mass(2) : power_mass(2);
    return bounds_of(sum, how == sharpness::quick ? quick_error_of(sum) : 0);
  }

  mass_bounds bounded_entropy(sharpness how) {
    if (how == sharpness::exact) return measure_mass(), mass_bounds{entropy_value(), entropy_value()};
    if (how == sharpness::quick) {
      const double value = quick_entropy_value();
      return {std::max(0.0, value - entropy_error), value + entropy_error};
    }
    // ln of the mass plus the mean of -ln weight, which for the others is largest where they are level.
    const mass_bounds mass = bounded_mass(how);
    const double all = static_cast<double>(vocabulary_size_), level = std::min(largest_.others.high, all / 2.8);
    const double high = level > 0 ? level * math::log(all / level) : 0;
    const mass_bounds mean{(largest_.weighted - largest_.others.low * largest_.next) / mass.high,
                           (largest_.weighted + high) / mass.low};
    return loosened({math::log(mass.low) + mean.low, math::log(mass.high) + mean.high});
  }

  // ---- borders

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
    // Lists from one nat below on, so that better bounds find their tokens listed, too.
    const double reach = 1 / scale_;
    float least = gone, most = gone;
    const auto settled = [&](const mass_bounds& total, const mass_bounds& entropy) {
      const double low = math::log(total.low), high = math::log(total.high);
      least = border(power > 0 ? low : high, entropies > 0 ? entropy.high : entropy.low);
      most = border(power > 0 ? high : low, entropies > 0 ? entropy.low : entropy.high);
      return least == most || count_from(least) == count_from(most);
    };
    if (rough_known() && entropies == 0) {
      if (list_from(border(math::log(rough_), 0), reach) && settled(mass_within(sharpness::rough), {})) return most;
      if (gathered_from_ < beyond) {
        const double sum = nucleus_.weigh(gathered_, max_, scale_);
        if (settled(mass_within(sharpness::rough, gathered_, sum), {})) return most;
      }
    }
    if (!mass_known() && can_sum_quickly()) {
      mass_bounds entropy{};
      if (entropies != 0) entropy = {quick_entropy_value() - entropy_error, quick_entropy_value() + entropy_error};
      const mass_bounds total = mass_within(sharpness::quick);
      list_from(border(math::log(total.low), entropy.low), reach);
      if (settled(total, entropy)) return most;
    }
    if (entropies == 0 && settled(mass_within(sharpness::near), {})) return most;
    measure_mass();
    return border(math::log(mass_), entropy_value());
  }

  static constexpr std::size_t few_listed = 320;

  // ---- nuclei

  /// Keeps the nucleus if it can be told without sorting; else does nothing and says so.
  bool keep_mass_unsorted(double p, std::size_t min_keep) {
    constexpr float lowest = dense_row::lowest;
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
  verdict keep_mass_listed(listed_row& list, float threshold, double p, std::size_t min_keep) {
    // A mass that will be exact comes first: it is found by the same means.
    if (compact_ || vocabulary_size_ <= compact_limit) measure_mass();
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
  bool keep_place(const std::optional<mass_search::place>& found, std::size_t min_keep, listed_row* all = nullptr) {
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
    const float about = sample_.smallest_from(nucleus_.value_near(math::product(p, all), max_), max_);
    const double sampled = nucleus_.mass_from(about);
    const math::portable::split_mass sums = split_mass(about);
    const double wanted = math::product(p, sums.mass), doubt = near_error * (p * sums.mass + sums.above);
    const mass_bounds bounds{wanted - doubt, wanted + doubt};
    const double missing = std::abs(wanted - sums.above) / sums.mass, reach = missing * all + slack(missing);
    const std::size_t above = dense_.count_at_least(about);
    // Of many at that very value, as many are kept as it takes: their mass is a product.
    const std::size_t higher = dense_.count_at_least(math::next_above(about));
    if (above - higher > compact_limit) {
      const double one = math::exp(relative(about)),
                   mass_higher = sums.above - static_cast<double>(above - higher) * one;
      const double least = (bounds.low - mass_higher) / one, most = (bounds.high - mass_higher) / one;
      if (least > 1 && most < static_cast<double>(above - higher) && std::ceil(least) == std::ceil(most)) {
        const auto taken = static_cast<std::size_t>(std::ceil(most));
        return keep_place(mass_search::place{{dense_.nth_at(about, taken), about}, higher + taken}, min_keep);
      }
    }
    listed_row& between = gathering();
    between.clear();
    if (sums.above < wanted) {
      const float low = nucleus_.value_near(sampled + reach, max_);
      dense_.collect(low, about, between);
      nucleus_.weigh(between, max_, scale_);
      return keep_place(nucleus_.find(between, bounds, sums.above, above, low, about), min_keep);
    }
    const float high = nucleus_.value_beyond(std::max(0.0, sampled - reach), max_);
    dense_.collect(about, high, between);
    const double mass = nucleus_.weigh(between, max_, scale_);
    return keep_place(nucleus_.find(between, bounds, sums.above - mass, above - between.size(), about, high), min_keep);
  }

  // ---- what is typical

  /// Keeps what is typical among the largest tokens, if that is all and bounds of mass and entropy tell it.
  bool keep_typical_quickly(double p) {
    if (mass_known() || !can_sum_quickly() || !more_than(2 * few_listed)) return false;
    const double entropy = quick_entropy_value(), around = math::log(quick_) - entropy;
    const mass_bounds total = mass_within(sharpness::quick);
    const mass_bounds wanted{math::product(p, total.low), math::product(p, total.high)};
    for (const std::size_t reach : {few_listed, compact_limit}) {
      if (!more_than(2 * reach)) break;
      const double radius = around - relative(gather_at_least(reach));
      if (!(nucleus_.weigh(gathered_, max_, scale_) > wanted.low)) continue;
      const auto nearest = nucleus_.find_near(gathered_, wanted, around, entropy_error + quick_error, radius);
      if (!nearest) continue;
      list_.clear();
      for (std::size_t i = 0; i < gathered_.size(); ++i) {
        const entry e = gathered_[i];
        if (std::abs(relative(e.logit) - around) < *nearest) list_.add(e.id, e.logit);
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
      if (nucleus_.weigh(gathered_, max_, scale_) < (1 - 1e-9) * wanted) continue;
      near_.clear();
      // All that is nearer than the lowest one gathered has been gathered.
      for (std::size_t i = 0; i < gathered_.size(); ++i) {
        const entry e = gathered_[i];
        const double distance = std::abs(effective(e.logit) - around);
        if (distance < radius) near_.push_back({distance, e.id, e.logit});
      }
      if (keep_nearest(wanted, min_keep)) return;
    }
    keep_outwards(wanted, min_keep, around);
  }

  /// Keeps of near_ the nearest tokens up to the mass wanted. If near_ does not hold so much, does nothing and says so.
  bool keep_nearest(double wanted, std::size_t min_keep) {
    std::sort(near_.begin(), near_.end(), [](const distant& x, const distant& y) {
      return x.distance < y.distance || (x.distance == y.distance && x.id < y.id);
    });
    double mass = 0;
    std::size_t kept = 0;
    while (kept < near_.size() && (mass < wanted || kept < min_keep)) {
      mass = math::rounded(mass + math::exp(relative(near_[kept].z)));
      ++kept;
    }
    if (mass < wanted || kept < min_keep) return false;
    near_.resize(kept);
    std::sort(near_.begin(), near_.end(), [](const distant& x, const distant& y) { return x.id < y.id; });
    list_.clear();
    for (const distant& d : near_) list_.add(d.id, d.z);
    compact_ = true;
    forget_facts();
    return true;
  }

  /// The same where all tokens may be needed: in descending order, those nearest to `around` are to both sides of it.
  void keep_outwards(double wanted, std::size_t min_keep, double around) {
    const std::span<const double> weights = weigh_prefix(count());
    const auto distance = [&](std::size_t i) { return std::abs(effective(order_[i].logit) - around); };
    const auto first_below = std::partition_point(order_.begin(), order_.end(),
                                                  [&](const entry& e) { return effective(e.logit) >= around; });
    std::size_t low = static_cast<std::size_t>(first_below - order_.begin()), high = low;  // [high, low) is kept
    chosen_.assign((vocabulary_size_ + 63) / 64, 0);
    double mass = 0;
    std::size_t kept = 0;
    const auto enough = [&] { return mass >= wanted && kept >= min_keep; };
    const auto take = [&](std::size_t i) {
      const auto id = static_cast<std::size_t>(order_[i].id);
      chosen_[id / 64] |= std::uint64_t{1} << (id % 64);
      mass = math::rounded(mass + weights[i]);
      ++kept;
    };
    while (!enough() && kept < order_.size()) {
      const double above = high > 0 ? distance(high - 1) : 0, below = low < order_.size() ? distance(low) : 0;
      const bool upwards = low == order_.size() || (high > 0 && above <= below);
      const double nearest = upwards ? above : below;
      // As many as are equally far, in ascending id; mostly those of one logit, which stand so.
      std::size_t first = high, last = low;
      while (first > 0 && distance(first - 1) == nearest) --first;
      while (last < order_.size() && distance(last) == nearest) ++last;
      level_.clear();
      for (std::size_t i = first; i < high; ++i) level_.push_back(static_cast<std::uint32_t>(i));
      for (std::size_t i = low; i < last; ++i) level_.push_back(static_cast<std::uint32_t>(i));
      if (order_[level_.front()].logit != order_[level_.back()].logit) {
        std::ranges::sort(level_, {}, [&](std::uint32_t i) { return order_[i].id; });
      }
      for (std::size_t i = 0; i < level_.size() && !enough(); ++i) take(level_[i]);
      high = first;
      low = last;
    }
    if (kept < order_.size()) keep_chosen(kept);
  }

  /// Keeps the tokens whose bits are set in chosen_, of which there are so many.
  void keep_chosen(std::size_t kept) {
    if (compact_ || kept <= list_limit_) {
      listed_row& out = gathering();
      out.clear();
      each([&](token_id id, float z) {
        if ((chosen_[static_cast<std::size_t>(id) / 64] >> (id % 64) & 1) != 0) out.add(id, z);
      });
      std::swap(list_, gathered_);
      compact_ = true;
    } else {
      dense_.mask(chosen_);
    }
    forget_facts();
  }

  struct distant {
    double distance;
    token_id id;
    float z;
  };

  double scale_ = 1, shift_ = 0;  // logits are scale * z + shift
  // Masses, and for which stand of the row they have been summed.
  double mass_ = 0, weighted_ = 0, quick_ = 0, quick_entropy_ = 0, swift_ = 0;
  double rough_ = 0, rough_factor_ = 1, rough_slack_ = 0;
  std::uint64_t mass_at_ = 0, quick_at_ = 0, quick_entropy_at_ = 0, rough_at_ = 0, swift_at_ = 0;
  math::rough_parameters rough_parameters_{};

  largest_sums largest_;
  mass_search nucleus_;
  std::vector<double> order_weights_;
  std::vector<float> peak_weights_;
  std::vector<distant> near_;
  std::vector<std::uint64_t> chosen_;
  std::vector<std::uint32_t> level_;
};

}  // namespace detail

DECANT_STRICT_END

}  // namespace decant
