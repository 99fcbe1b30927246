// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/processors/history.hpp>

namespace decant {

/// What a repetition penalty does to a logit that is not positive.
enum class penalty_form : std::uint8_t {
  never_raises,  ///< multiplies it: a penalty above 1 lowers every logit, what all libraries do
  ctrl_paper,    ///< divides it like any other, as the paper writes: a penalty above 1 raises negative logits
};

/// Makes every token that has occurred less likely, once, however often it occurred.
///
/// Effect: a positive logit is divided by the penalty, any other is multiplied by it, so that a penalty above 1 never
/// raises a logit (the paper's plain division, penalty_form::ctrl_paper, raises negative ones). Sees the prompt and the
/// output, unless a scope says otherwise. Depends on where the zero of the logits is: shifting them all changes the
/// result. O(tokens seen), sparse edits.
/// Off: penalty = 1. Errors: parameter_error unless the penalty is a finite number > 0.
/// Reference: Keskar et al., "CTRL: a conditional transformer language model for controllable generation", 2019,
/// arXiv 1909.05858.
class repetition_penalty : public made_or_error<repetition_penalty> {
 public:
  static constexpr std::string_view name = "repetition_penalty";

  explicit repetition_penalty(double penalty, const history_scope& scope = {})
      : repetition_penalty(penalty, penalty_form::never_raises, scope) {}
  repetition_penalty(double penalty, penalty_form form, const history_scope& scope = {})
      : penalty_(penalty), form_(form), scope_(scope) {
    detail::raise_if(validate(penalty));
  }

  static std::optional<parameter_fault> validate(double penalty, const history_scope& = {}) {
    if (penalty > 0 && math::is_finite(penalty)) return {};
    return parameter_fault{name, "penalty", penalty, "must be a finite number > 0"};
  }
  static std::optional<parameter_fault> validate(double penalty, penalty_form, const history_scope& = {}) {
    return validate(penalty);
  }

  void operator()(candidates& row, const step_context& context) const {
    if (off()) return;
    const auto penalised = [&](const token_counts::item&, const float& logit) {
      if (!math::is_finite(logit)) return logit;
      const bool divide = logit > 0 || form_ == penalty_form::ctrl_paper;
      const auto z = static_cast<double>(logit);
      return math::saturated(divide ? z / penalty_ : z * penalty_);
    };
    row.edit_each(row.occurrences(scope_.of(context, true)), penalised);
  }

  [[nodiscard]] bool off() const { return penalty_ == 1; }
  [[nodiscard]] std::string describe() const {
    std::string text = detail::call_text(name, {penalty_});
    if (form_ == penalty_form::ctrl_paper) text = detail::with_option(std::move(text), "form", "ctrl_paper");
    return detail::with_scope(std::move(text), scope_, true);
  }

 private:
  double penalty_;
  penalty_form form_;
  history_scope scope_;
};

}  // namespace decant
