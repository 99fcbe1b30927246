// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>

namespace decant {

/// Divides every logit by T: below 1 sharpens the distribution, above 1 flattens it.
///
/// Effect: ranks, ties and support stay; O(1), the logits are not touched. T = 0, and a T so small that 1 / T is not a
/// finite double, keep the argmax (lowest id among equals).
/// Off: T = 1. Errors: parameter_error for NaN, negative or infinite T.
/// Reference: Ackley, Hinton, Sejnowski, "A learning algorithm for Boltzmann machines", Cognitive Science 9, 1985.
class temperature : public made_or_error<temperature> {
 public:
  static constexpr std::string_view name = "temperature";
  static constexpr bool argmax_invariant = true;

  explicit temperature(double t) : t_(t) { detail::raise_if(validate(t)); }

  static std::optional<parameter_fault> validate(double t) {
    if (t >= 0 && math::is_finite(t)) return {};
    return parameter_fault{name, "t", t, "must be a finite number >= 0"};
  }

  void operator()(candidates& row, const step_context&) const {
    if (off()) return;
    if (t_ == 0 || !math::is_finite(1 / t_)) return row.keep_largest(1);
    row.affine(std::max(1 / t_, 0x1p-1000));  // never a denormal, which some builds flush to 0
  }

  [[nodiscard]] bool off() const { return t_ == 1; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {t_}); }

 private:
  double t_;
};

}  // namespace decant
