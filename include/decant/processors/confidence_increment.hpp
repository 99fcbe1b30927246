// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// Which tokens confidence_increment keeps. The increments do not fall monotonically, so the two differ.
enum class increment_rule : std::uint8_t {
  prefix,  ///< those before the first increment that is too small, as in the paper
  each,    ///< every token whose own increment is large enough, as in the authors' later code
};

/// Adaptive decoding: keeps the most probable tokens while each makes confidence grow by more than epsilon.
///
/// Effect: the confidence of the k most probable tokens is 1 minus the entropy, in units of ln n, of the distribution
/// that keeps their probabilities and spreads the rest evenly over the n - k others (n tokens are left). Token k is
/// kept while that grows with it by more than epsilon, and by more than 1e-12, which rounding may feign; ties by lower
/// id. Equal tokens only, or epsilon >= 1, keep `min_keep`. Masses are as exact as it takes to decide; one
/// walk down the set, with increment_rule::each down the row.
/// No off value. Errors: parameter_error for NaN or negative epsilon.
/// Reference: Zhu et al., "Improving open-ended text generation via adaptive decoding", ICML 2024, arXiv 2402.18223.
class confidence_increment : public made_or_error<confidence_increment> {
 public:
  static constexpr std::string_view name = "confidence_increment";
  static constexpr bool argmax_invariant = true;

  /// Keeps at least the largest `min_keep` tokens (at least one).
  explicit confidence_increment(double epsilon, std::size_t min_keep = 1, increment_rule rule = increment_rule::prefix)
      : epsilon_(epsilon), min_keep_(min_keep), rule_(rule) {
    detail::raise_if(validate(epsilon));
  }

  static std::optional<parameter_fault> validate(double epsilon, std::size_t = 1,
                                                 increment_rule = increment_rule::prefix) {
    if (epsilon >= 0) return {};
    return parameter_fault{name, "epsilon", epsilon, "must be a number >= 0"};
  }

  void operator()(candidates& row, const step_context&) {
    const std::size_t least = std::max<std::size_t>(min_keep_, 1);
    row.decide_by_bounds([&](const candidates::law_bounds& law) {
      if (row.size() < 2) return true;
      std::size_t k = 0;
      kept_.clear();
      const bool decided = walk(row, law, [&](token_id id, bool enough) {
        if (k++ < least || enough) kept_.push_back(id);
        return enough || rule_ == increment_rule::each;
      });
      if (!decided) return false;
      if (rule_ == increment_rule::each) {
        row.allow(std::span<const token_id>(kept_));
      } else {
        row.keep_largest(std::max(kept_.size(), least));
      }
      return true;
    });
  }

  [[nodiscard]] std::string describe() const { return detail::call_text(name, {epsilon_}); }

 private:
  /// Calls f(id, whether confidence grows enough) down the descending order until it says no; whether bounds of the
  /// mass could tell that all along.
  template <class F>
  bool walk(candidates& row, const candidates::law_bounds& law, F f) const {
    const std::size_t n = row.size();
    const auto all = law.mass();
    const bool exact = all.low == all.high;
    const double log_n = math::log(static_cast<double>(n)), limit = std::max(epsilon_, 1e-12);
    const double slack = exact ? 0 : 1e-13;
    double mass = 0;                                   // of what has been reached
    double spread_low = -log_n, spread_high = -log_n;  // rest ln (rest / number of them), for either mass of all
    std::size_t k = 0;
    for (std::size_t reach = 32; k < n; reach *= 4) {
      const std::span<const entry> order = row.descending(reach);
      for (; k < order.size(); ++k) {
        const double w = math::exp(row.below_max(order[k].id)), others = static_cast<double>(n - k - 1);
        mass = math::rounded(mass + w);
        // With a larger mass of all the increment is smaller, as this token is not below the mean of the rest.
        if (!exact && (mass > all.low || math::product(w, others) < all.high - mass)) return false;
        const auto increment = [&](double of_all, double& spread) {
          const double p = w / of_all, rest = std::max(0.0, 1 - mass / of_all), before = spread;
          spread = rest > 0 && others > 0 ? math::product(rest, math::log(rest / others)) : 0;
          return ((p > 0 ? math::product(p, math::log(p)) : 0) + spread - before) / log_n;
        };
        const double low = increment(all.high, spread_low);
        const double high = exact ? low : increment(all.low, spread_high);
        const bool enough = low - slack > limit;
        if (enough != (high + slack > limit)) return false;
        if (!f(order[k].id, enough)) return true;
      }
    }
    return true;
  }

  double epsilon_;
  std::size_t min_keep_;
  increment_rule rule_;
  std::vector<token_id> kept_;
};

}  // namespace decant
