// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <decant/core/listed_row.hpp>
#include <decant/core/token.hpp>
#include <decant/math/kernels.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/strict.hpp>

namespace decant::detail {

DECANT_STRICT_BEGIN

/// Two numbers between which a sum lies.
struct mass_bounds {
  double low, high;
};

/// Finds the token at which the mass of a list, summed in descending order, reaches what is wanted: without sorting
/// it. Masses of what reaches a value are compared by halving, which leaves a few tokens to be looked at one by one.
/// Says nothing where the answer would depend on the order of a sum, or on where between its bounds the wanted mass
/// lies.
class mass_search {
 public:
  /// Takes the weights e^(scale (z - top)) of a list, none of which is above `top`, and returns their sum.
  double weigh(listed_row& list, float top, double scale) {
    values_ = list.padded();
    weights_.resize(std::max(weights_.size(), values_.size()));
    math::kernels().exps(values_.data(), values_.size(), top, scale, weights_.data());
    top_ = top;
    scale_ = scale;
    return sum_ = mass_from(-std::numeric_limits<float>::max());
  }

  /// The weights weighed, in the order of the list.
  [[nodiscard]] std::span<const double> weights() const noexcept { return {weights_.data(), values_.size()}; }

  /// The root of the sum of the squares of the weights.
  [[nodiscard]] double deviation() const {
    double squares = 0;
    for (std::size_t i = 0; i < values_.size(); ++i) squares += weights_[i] * weights_[i];
    return std::sqrt(squares);
  }

  /// A value from which on the weights reach a mass, nearly the largest; the lowest float if all do not. None is above
  /// `high`.
  [[nodiscard]] float value_near(double mass, float high) const { return around(mass, high).low(); }

  /// A value from which on the weights do not reach a mass, nearly the smallest.
  [[nodiscard]] float value_beyond(double mass, float high) const { return around(mass, high).high(); }

  /// The sum of the weights from a value on.
  [[nodiscard]] double mass_from(float threshold) const {
    return math::kernels().sum_at_least(values_.data(), weights_.data(), values_.size(), threshold);
  }

  struct place {
    entry last;         ///< its id is listed_row::any_id if nothing of its logit comes after it
    std::size_t count;  ///< tokens up to it
  };

  /// The first token at which `before` and the weights weighed reach the mass wanted. `skipped` tokens of mass `before`
  /// come before all of the list, whose values lie in [low, high]. O(size log size).
  std::optional<place> find(const listed_row& list, mass_bounds wanted, double before, std::size_t skipped, float low,
                            float high) {
    // Sums in another order than that of the definition may differ by so much.
    const double doubt = 1e-11 * wanted.high;
    if (!(before < wanted.low - doubt) || !(before + sum_ > wanted.high + doubt)) return std::nullopt;
    bisection search(low, math::next_above(high));
    double above = before;
    std::size_t reach_low = list.size(), reach_high = 0;
    // Halves until a few are left between; of a long list, a part that has become small is listed apart.
    const auto halve = [&](std::size_t enough, std::span<const float> values, const double* weights, double mass_above,
                           std::size_t count_above) {
      while (reach_low - reach_high > enough && search.next()) {
        const float middle = search.middle();
        const double mass = mass_above + math::kernels().sum_at_least(values.data(), weights, values.size(), middle);
        const std::size_t reach = count_above + math::kernels().count_at_least(values.data(), values.size(), middle);
        if (mass < wanted.low) {
          above = mass;
          reach_high = reach;
          search.lower();
        } else {
          reach_low = reach;
          search.raise();
        }
      }
    };
    const auto list_between = [&](listed_row& out) {
      out.clear();
      const auto to = out.room(reach_low - reach_high);
      out.extend(
          math::kernels().filter(list.ids().data(), values_.data(), values_.size(), search.low(), search.high(), to));
    };
    if (list.size() > 1024) {
      halve(list.size() / 8, values_, weights_.data(), before, 0);
      list_between(part_);
      const std::span<const float> values = part_.padded();
      part_weights_.resize(std::max(part_weights_.size(), values.size()));
      math::kernels().exps(values.data(), values.size(), top_, scale_, part_weights_.data());
      halve(few, values, part_weights_.data(), above, reach_high);
    } else {
      halve(few, values_, weights_.data(), before, 0);
    }
    list_between(between_);
    std::size_t count = skipped + reach_high, first = 0;
    if (between_.size() > few) {
      // All weigh the same: how many it takes can be told, but for rounding.
      const double one = weight(between_[0].logit);
      const double passed = one > 0 ? (wanted.low - above) / one - 2 : 0;
      first = static_cast<std::size_t>(std::clamp(passed, 0.0, static_cast<double>(between_.size() - 1)));
      above += static_cast<double>(first) * one;
      count += first;
    }
    sorted_.clear();
    for (std::size_t i = first; i < std::min(between_.size(), first + few); ++i) sorted_.push_back(between_[i]);
    std::sort(sorted_.begin(), sorted_.end(), decant::detail::before);
    for (std::size_t i = 0; i < sorted_.size(); ++i) {
      const double passed = above;
      above += weight(sorted_[i].logit);
      ++count;
      if (above < wanted.low - doubt) continue;
      if (above < wanted.high + doubt || passed > wanted.low - doubt) break;
      entry last = sorted_[i];
      const bool more = i + 1 < sorted_.size() ? sorted_[i + 1].logit == last.logit : between_.size() > first + few;
      if (!more) last.id = listed_row::any_id;
      return place{last, count};
    }
    return std::nullopt;
  }

  /// The same in ascending distance from `around`, which like all logits here is counted from the top, downwards: the
  /// distance up to which tokens are kept. `around` is known within `doubt`, and all tokens nearer to it than `radius`
  /// are listed. Silent, too, where the order of two tokens that matters depends on the doubt.
  std::optional<double> find_near(const listed_row& list, mass_bounds wanted, double around, double doubt,
                                  double radius) {
    const double slack = 1e-11 * wanted.high;
    doubt += 1e-12 * (1 + std::abs(around) + radius);
    // Halves the radius while more than a few tokens lie between what is too small and what is enough.
    const auto value = [&](double below) { return math::saturated(static_cast<double>(top_) + below / scale_); };
    const auto inside = [&](double r) {
      return mass_from(value(around - r)) - mass_from(math::next_above(value(around + r)));
    };
    double low = 0, high = radius - 4 * doubt;
    if (!(high > 0) || !(inside(high) > wanted.high + slack)) return std::nullopt;
    for (int steps = 0; steps < 40 && high - low > 4 * doubt; ++steps) {
      const double middle = low + (high - low) / 2;
      (inside(middle) < wanted.low ? low : high) = middle;
    }
    // One by one between those, and a little beyond.
    low -= 8 * doubt;
    high += 2 * doubt;
    double mass = 0;
    border_.clear();
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!(weights_[i] > 0)) continue;
      const double below = math::product(scale_, static_cast<double>(values_[i]) - static_cast<double>(top_));
      const double distance = std::abs(below - around);
      if (distance < low) {
        mass += weights_[i];
      } else if (distance <= high) {
        border_.push_back({distance, weights_[i]});
      }
    }
    std::sort(border_.begin(), border_.end(),
              [](const at_border& x, const at_border& y) { return x.distance < y.distance; });
    for (std::size_t i = 0; i < border_.size(); ++i) {
      mass += border_[i].weight;
      if (mass < wanted.low - slack) continue;
      const double last = border_[i].distance, next = i + 1 < border_.size() ? border_[i + 1].distance : high;
      if (mass < wanted.high + slack || next - last <= 2 * doubt) break;
      // Whichever comes last of those that may: without it, it is too little.
      double lightest = border_[i].weight;
      for (std::size_t j = i; j > 0 && last - border_[j - 1].distance <= 2 * doubt; --j) {
        lightest = std::min(lightest, border_[j - 1].weight);
      }
      if (mass - lightest > wanted.low - slack) break;
      return last + (next - last) / 2;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t few = 8;

  /// The values between which weights begin to reach a mass, as closely as a few steps tell.
  [[nodiscard]] bisection around(double mass, float high) const {
    bisection search(bisection::lowest, math::next_above(high));
    for (int steps = 0; steps < 18 && search.next(); ++steps) {
      mass_from(search.middle()) >= mass ? search.raise() : search.lower();
    }
    return search;
  }

  [[nodiscard]] double weight(float z) const {
    return math::exp(math::product(scale_, static_cast<double>(z) - static_cast<double>(top_)));
  }

  std::span<const float> values_;
  std::vector<double> weights_;
  double sum_ = 0, scale_ = 1;
  float top_ = 0;
  listed_row between_, part_;
  std::vector<double> part_weights_;
  std::vector<entry> sorted_;
  struct at_border {
    double distance, weight;
  };
  std::vector<at_border> border_;
};

DECANT_STRICT_END

}  // namespace decant::detail
