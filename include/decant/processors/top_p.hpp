// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>

namespace decant {

/// Nucleus sampling: keeps the smallest set of most probable tokens whose mass reaches p.
///
/// Effect: the token that crosses p is kept; ties by lower id; probabilities are those of the tokens left, so a top_k
/// before it changes what p means. p = 0 keeps the argmax. One pass and a list of the largest
/// tokens, nothing sorted; where the sum that goes along with the pass does not decide, one more in float, then double.
/// Not idempotent: after renormalisation the nucleus may shrink again.
/// Off: p >= 1. Errors: parameter_error for NaN or negative p.
/// Reference: Holtzman, Buys, Du, Forbes, Choi, "The curious case of neural text degeneration", ICLR 2020,
/// arXiv 1904.09751.
class top_p : public made_or_error<top_p> {
 public:
  static constexpr std::string_view name = "top_p";
  static constexpr bool argmax_invariant = true;

  /// Keeps at least `min_keep` tokens (at least one).
  explicit top_p(double p, std::size_t min_keep = 1) : p_(p), min_keep_(min_keep) { detail::raise_if(validate(p)); }

  static std::optional<parameter_fault> validate(double p, std::size_t = 1) {
    if (p >= 0 && !math::is_nan(p)) return {};
    return parameter_fault{name, "p", p, "must be a number >= 0"};
  }

  void operator()(candidates& row, const step_context&) const {
    if (!off()) row.keep_mass(p_, min_keep_);
  }

  [[nodiscard]] bool off() const { return p_ >= 1; }
  [[nodiscard]] std::string describe() const {
    return min_keep_ > 1 ? detail::call_text(name, {p_, static_cast<double>(min_keep_)})
                         : detail::call_text(name, {p_});
  }

 private:
  double p_;
  std::size_t min_keep_;
};

}  // namespace decant
