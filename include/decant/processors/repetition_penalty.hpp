// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/processors/token_counts.hpp>

namespace decant {

/// Makes every token that has occurred less likely, once, however often it occurred.
///
/// Effect: a positive logit is divided by the penalty, any other is multiplied by it, so that a penalty above 1 never
/// raises a logit (the paper's plain division would raise negative ones). Sees the prompt and the output. Depends on
/// where the zero of the logits is: shifting them all changes the result. O(history), sparse edits.
/// Off: penalty = 1. Errors: parameter_error unless the penalty is a finite number > 0.
/// Reference: Keskar et al., "CTRL: a conditional transformer language model for controllable generation", 2019,
/// arXiv 1909.05858.
class repetition_penalty : public made_or_error<repetition_penalty> {
 public:
  static constexpr std::string_view name = "repetition_penalty";

  explicit repetition_penalty(double penalty) : penalty_(penalty) { detail::raise_if(validate(penalty)); }

  static std::optional<parameter_fault> validate(double penalty) {
    if (penalty > 0 && math::is_finite(penalty)) return {};
    return parameter_fault{name, "penalty", penalty, "must be a finite number > 0"};
  }

  void operator()(candidates& row, const step_context& context) {
    if (off()) return;
    for (const auto& [id, count] : counts_.count(context.tokens)) {
      const auto logit = static_cast<double>(row.logit(id));
      if (math::is_finite(logit)) row.set(id, math::saturated(logit > 0 ? logit / penalty_ : logit * penalty_));
    }
  }

  [[nodiscard]] bool off() const { return penalty_ == 1; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {penalty_}); }

 private:
  double penalty_;
  token_counts counts_;
};

}  // namespace decant
