// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/processors/history.hpp>

namespace decant {

/// Lowers a token's logit by the penalty for every time it has occurred in the output.
///
/// Effect: a token that occurred c times loses c * penalty; a negative penalty encourages. Sees the output only,
/// not the prompt, unless a scope says otherwise. Shifting all logits changes nothing. O(tokens seen), sparse edits.
/// Off: penalty = 0. Errors: parameter_error unless the penalty is a finite number.
/// Reference: OpenAI API, "Frequency and presence penalties".
class frequency_penalty : public made_or_error<frequency_penalty> {
 public:
  static constexpr std::string_view name = "frequency_penalty";

  explicit frequency_penalty(double penalty, const history_scope& scope = {}) : penalty_(penalty), scope_(scope) {
    detail::raise_if(validate(penalty));
  }

  static std::optional<parameter_fault> validate(double penalty, const history_scope& = {}) {
    if (math::is_finite(penalty)) return {};
    return parameter_fault{name, "penalty", penalty, "must be a finite number"};
  }

  void operator()(candidates& row, const step_context& context) const {
    if (off()) return;
    row.add_each(row.occurrences(scope_.of(context, false)),
                 [&](const token_counts::item& item) { return math::saturated(-penalty_ * item.count); });
  }

  [[nodiscard]] bool off() const { return penalty_ == 0; }
  [[nodiscard]] std::string describe() const {
    return detail::with_scope(detail::call_text(name, {penalty_}), scope_, false);
  }

 private:
  double penalty_;
  history_scope scope_;
};

}  // namespace decant
