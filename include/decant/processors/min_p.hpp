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

/// Keeps tokens at least p times as probable as the most probable one.
///
/// Effect: keeps logit >= max + ln p, so the kept set does not change when all logits shift; p = 1 keeps the maximum
/// and its exact ties. No normaliser is needed. One pass.
/// Off: p = 0. Errors: parameter_error for NaN, negative p, or p > 1.
/// Reference: Nguyen et al., "Turning up the heat: min-p sampling for creative and coherent LLM outputs", ICLR 2025,
/// arXiv 2407.01082. Its superiority is disputed: Schaeffer et al., "Turning down the heat", arXiv 2506.13681.
class min_p : public made_or_error<min_p> {
 public:
  static constexpr std::string_view name = "min_p";
  static constexpr bool argmax_invariant = true;

  /// Keeps at least `min_keep` tokens (at least one).
  explicit min_p(double p, std::size_t min_keep = 1) : p_(p), min_keep_(min_keep) { detail::raise_if(validate(p)); }

  static std::optional<parameter_fault> validate(double p, std::size_t = 1) {
    if (p >= 0 && p <= 1 && !math::is_nan(p)) return {};
    return parameter_fault{name, "p", p, "must lie in [0, 1]"};
  }

  void operator()(candidates& row, const step_context&) const {
    if (!off()) row.keep_above(row.max() + math::log(p_), min_keep_);
  }

  [[nodiscard]] bool off() const { return p_ == 0; }
  [[nodiscard]] std::string describe() const {
    return min_keep_ > 1 ? detail::call_text(name, {p_, static_cast<double>(min_keep_)})
                         : detail::call_text(name, {p_});
  }

 private:
  double p_;
  std::size_t min_keep_;
};

}  // namespace decant
