// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// Smooth sampling: bends the logits below the maximum by a quadratic and a cubic term.
///
/// Effect: with d = logit - max, k = (3 - curve) / 2, s = (curve - 1) / 2: logit = max - k factor d^2 + s factor d^3.
/// The maximum, ranks and ties stay; near the maximum tokens move closer, far ones away. curve = 1 is purely quadratic.
/// One pass; tokens are bent when they are looked at, which a plain draw does to few.
/// Off: factor = 0. Errors: parameter_error for a NaN, infinite or negative factor, or a curve outside [1, 3] (outside,
/// the order would not be preserved).
/// Reference: kalomaze, "Quadratic sampling", text-generation-webui pull request 5403, 2024.
class quadratic : public made_or_error<quadratic> {
 public:
  static constexpr std::string_view name = "quadratic";

  explicit quadratic(double factor, double curve = 1) : factor_(factor), curve_(curve) {
    detail::raise_if(validate(factor, curve));
  }

  static std::optional<parameter_fault> validate(double factor, double curve = 1) {
    if (!(factor >= 0 && math::is_finite(factor))) {
      return parameter_fault{name, "factor", factor, "must be a finite number >= 0"};
    }
    if (!(curve >= 1 && curve <= 3)) return parameter_fault{name, "curve", curve, "must lie in [1, 3]"};
    return {};
  }

  void operator()(candidates& row, const step_context&) const {
    if (!off()) row.bend((3 - curve_) / 2 * factor_, (curve_ - 1) / 2 * factor_);
  }

  [[nodiscard]] bool off() const { return factor_ == 0; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {factor_, curve_}); }

 private:
  double factor_, curve_;
};

}  // namespace decant
