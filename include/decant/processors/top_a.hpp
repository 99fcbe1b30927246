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

/// Keeps tokens of probability >= a times the square of the largest probability.
///
/// Effect: min_p with the base a * max p: strict where the model is sure, lenient where it is not. Equal tokens fare
/// alike, the argmax always stays, and probabilities are those of the tokens left. One pass, another
/// two in float where the sum that goes along with it does not decide.
/// Off: a = 0. Errors: parameter_error for NaN, negative a, or a > 1.
/// Reference: BlinkDL, "RWKV-LM: the top-a sampling method", 2021.
class top_a : public made_or_error<top_a> {
 public:
  static constexpr std::string_view name = "top_a";
  static constexpr bool argmax_invariant = true;

  /// Keeps at least `min_keep` tokens (at least one).
  explicit top_a(double a, std::size_t min_keep = 1) : a_(a), min_keep_(min_keep) { detail::raise_if(validate(a)); }

  static std::optional<parameter_fault> validate(double a, std::size_t = 1) {
    if (a >= 0 && a <= 1) return {};
    return parameter_fault{name, "a", a, "must lie in [0, 1]"};
  }

  void operator()(candidates& row, const step_context&) const {
    if (!off()) row.keep_probable({math::log(a_), 2}, min_keep_);
  }

  [[nodiscard]] bool off() const { return a_ == 0; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {a_}); }

 private:
  double a_;
  std::size_t min_keep_;
};

}  // namespace decant
