// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// Tail-free sampling: cuts where the curve of sorted probabilities has flattened out.
///
/// Effect: takes the absolute second differences of the descending probabilities, normalised to sum 1; the first token
/// is kept, token i + 1 while the sum of the first i differences is <= z, and the last never; ties by lower id. Fewer
/// than three tokens, or no curvature, keep all. One pass and the largest tokens in order; where they do not tell how
/// much all differences sum up to, as on flat rows, the whole row in order: up to 100 times what a pass costs.
/// Off: z >= 1. Errors: parameter_error for NaN or negative z.
/// Reference: Bricken, "Tail free sampling", 2020.
class tail_free : public made_or_error<tail_free> {
 public:
  static constexpr std::string_view name = "tail_free";
  static constexpr bool argmax_invariant = true;

  /// Keeps at least `min_keep` tokens (at least one).
  explicit tail_free(double z, std::size_t min_keep = 1) : z_(z), min_keep_(min_keep) { detail::raise_if(validate(z)); }

  static std::optional<parameter_fault> validate(double z, std::size_t = 1) {
    if (z >= 0) return {};
    return parameter_fault{name, "z", z, "must be a number >= 0"};
  }

  void operator()(candidates& row, const step_context&) {
    if (off() || row.status() != row_status::ok || row.size() < 3) return;
    for (std::size_t reach = 128;; reach = reach < 2048 ? 4 * reach : row.size()) {
      // Relative to the largest: the normaliser cancels.
      const std::span<const double> weights = row.descending_weights(reach);
      add_bends(weights);
      // What comes after cannot bend more than twice its fall, from the last but one on.
      const bool whole = weights.size() == row.size();
      const double seen = sums_.back(), after = whole ? 0 : 2.001 * weights[weights.size() - 2] + 1e-9 * seen;
      if (!(seen > no_curvature)) {
        if (whole) return;
        continue;
      }
      const std::size_t least = count_within(math::product(z_, seen));
      if (!whole && least != count_within(math::product(z_, seen + after))) continue;
      return row.keep_largest(std::max(least, min_keep_));
    }
  }

  [[nodiscard]] bool off() const { return z_ >= 1; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {z_}); }

 private:
  static constexpr double no_curvature = 1e-12;  // of the largest probability: what rounding may leave

  /// The sums of the first 1, 2 ... absolute second differences.
  void add_bends(std::span<const double> weights) {
    sums_.resize(weights.size() - 2);
    double sum = 0;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const double slope = math::rounded(weights[i] - weights[i + 1]);
      const double next_slope = math::rounded(weights[i + 1] - weights[i + 2]);
      sum = math::rounded(sum + math::rounded(std::abs(slope - next_slope)));
      sums_[i] = sum;
    }
  }

  /// The first token, and one for every such sum up to a limit.
  [[nodiscard]] std::size_t count_within(double wanted) const {
    return 1 + static_cast<std::size_t>(std::ranges::upper_bound(sums_, wanted) - sums_.begin());
  }

  double z_;
  std::size_t min_keep_;
  std::vector<double> sums_;
};

}  // namespace decant
