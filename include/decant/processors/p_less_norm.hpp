// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>
#include <decant/processors/keep_within.hpp>

namespace decant {

/// p_less with its threshold lowered by the collisions that chance alone explains.
///
/// Effect: keeps p >= (n L - 1) / (n - 1), L the collision probability and n the number of tokens left: 0 for equal
/// tokens, 1 for a certain one. Keeps a superset of p_less; equal tokens fare alike. Five passes.
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
    if (row.size() < 2 || row.status() != row_status::ok) return;
    const double n = static_cast<double>(row.size()), log_mass = -row.log_probability(row.argmax());
    const double collision = math::exp(row.log_mass(2) - 2 * log_mass);
    const double threshold = (math::product(n, collision) - 1) / (n - 1);
    if (threshold > 0) detail::keep_within(row, math::log(threshold) + log_mass - 1e-9, min_keep_);
  }

  [[nodiscard]] std::string describe() const { return std::string(name); }

 private:
  std::size_t min_keep_;
};

}  // namespace decant
