// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// Keeps tokens at least as probable as the distribution's collision probability L, the sum of squared probabilities.
///
/// Effect: no parameter to tune; the argmax always stays, and equal tokens fare alike, so equal tokens only keep all.
/// Rounding at the border is forgiven: ln p >= ln L - 1e-9. Temperature goes before it. Sums
/// over the row are as exact as it takes to decide.
/// No off value, no errors.
/// Reference: Tan, Wu, Howard, "p-less sampling: a robust hyperparameter-free approach", 2025, arXiv 2509.23234.
class p_less : public made_or_error<p_less> {
 public:
  static constexpr std::string_view name = "p_less";
  static constexpr bool argmax_invariant = true;

  /// Keeps at least `min_keep` tokens (at least one).
  explicit p_less(std::size_t min_keep = 1) : min_keep_(min_keep) {}

  static std::optional<parameter_fault> validate(std::size_t = 1) { return {}; }

  void operator()(candidates& row, const step_context&) const {
    // With weights w = e^(logit - max) and W their sum: p >= L is w >= (sum of w^2) / W.
    const auto least = [](double squares, double mass) { return math::log(squares) - math::log(mass) - 1e-9; };
    row.decide_by_bounds([&](const candidates::law_bounds& law) {
      const auto mass = law.mass(), squares = law.squares();
      return row.keep_near_max({least(squares.low, mass.high), least(squares.high, mass.low)}, min_keep_);
    });
  }

  [[nodiscard]] std::string describe() const { return std::string(name); }

 private:
  std::size_t min_keep_;
};

}  // namespace decant
