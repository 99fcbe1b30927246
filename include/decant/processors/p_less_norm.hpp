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

/// p_less with its threshold lowered by the collisions that chance alone explains.
///
/// Effect: keeps p >= (n L - 1) / (n - 1), L the collision probability and n the number of tokens left: 0 for equal
/// tokens, 1 for a certain one. Keeps a superset of p_less; equal tokens fare alike. Sums over the
/// row are as exact as it takes to decide.
/// No off value, no errors.
/// Reference: Tan, Wu, Howard, "p-less sampling: a robust hyperparameter-free approach", 2025, arXiv 2509.23234.
class p_less_norm : public made_or_error<p_less_norm> {
 public:
  static constexpr std::string_view name = "p_less_norm";
  static constexpr bool argmax_invariant = true;

  /// Keeps at least `min_keep` tokens (at least one).
  explicit p_less_norm(std::size_t min_keep = 1) : min_keep_(min_keep) {}

  static std::optional<parameter_fault> validate(std::size_t = 1) { return {}; }

  void operator()(candidates& row, const step_context&) const {
    row.decide_by_bounds([&](const candidates::law_bounds& law) {
      const auto n = static_cast<double>(row.size());
      const auto mass = law.mass(), squares = law.squares();
      // With weights w = e^(logit - max) and W their sum: L is (sum of w^2) / W^2.
      const auto least = [n](double square, double sum) {
        const double threshold = (math::product(n, square / math::product(sum, sum)) - 1) / (n - 1);
        return threshold > 0 ? math::log(threshold) + math::log(sum) - 1e-9 : below_every_token;
      };
      return n < 2 || row.keep_near_max({least(squares.low, mass.high), least(squares.high, mass.low)}, min_keep_);
    });
  }

  [[nodiscard]] std::string describe() const { return std::string(name); }

 private:
  static constexpr double below_every_token = -1e300;

  std::size_t min_keep_;
};

}  // namespace decant
