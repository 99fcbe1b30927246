// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/processors/token_counts.hpp>

namespace decant {

/// Lowers a token's logit by the penalty for every time it has occurred in the output.
///
/// Effect: a token that occurred c times loses c * penalty; a negative penalty encourages. Sees the output only,
/// not the prompt. Shifting all logits changes nothing. O(output), sparse edits.
/// Off: penalty = 0. Errors: parameter_error unless the penalty is a finite number.
/// Reference: OpenAI API, "Frequency and presence penalties".
class frequency_penalty : public made_or_error<frequency_penalty> {
 public:
  static constexpr std::string_view name = "frequency_penalty";

  explicit frequency_penalty(double penalty) : penalty_(penalty) { detail::raise_if(validate(penalty)); }

  static std::optional<parameter_fault> validate(double penalty) {
    if (math::is_finite(penalty)) return {};
    return parameter_fault{name, "penalty", penalty, "must be a finite number"};
  }

  void operator()(candidates& row, const step_context& context) {
    if (off()) return;
    for (const auto& [id, count] : counts_.count(context.output())) row.add(id, math::saturated(-penalty_ * count));
  }

  [[nodiscard]] bool off() const { return penalty_ == 0; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {penalty_}); }

 private:
  double penalty_;
  token_counts counts_;
};

}  // namespace decant
