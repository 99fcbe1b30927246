// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/token_counts.hpp>

namespace decant {

/// Makes every token of a source text more likely, once, so that the output keeps to the source.
///
/// Effect: repetition_penalty on the tokens of the source, with the inverse of the penalty: a positive logit is
/// multiplied by the penalty, any other divided by it, so that a penalty above 1 never lowers a logit, and one below 1
/// never raises one. What was generated does not matter. Depends on where the zero of the logits is. The source is
/// copied. O(distinct tokens of the source), sparse edits.
/// Off: penalty = 1, or an empty source. Errors: parameter_error unless the penalty is a finite number > 0; a source
/// token outside the vocabulary is misuse, found when a row is processed.
/// Reference: Hugging Face transformers, "encoder_repetition_penalty"; Keskar et al., "CTRL: a conditional transformer
/// language model for controllable generation", 2019, arXiv 1909.05858.
class encoder_repetition_penalty : public made_or_error<encoder_repetition_penalty> {
 public:
  static constexpr std::string_view name = "encoder_repetition_penalty";

  encoder_repetition_penalty(double penalty, std::span<const token_id> source) : penalty_(penalty) {
    detail::raise_if(validate(penalty, source));
    token_counts counts;
    for (const auto& item : counts.count(source)) source_.push_back(item.id);
  }

  static std::optional<parameter_fault> validate(double penalty, std::span<const token_id>) {
    if (penalty > 0 && math::is_finite(penalty)) return {};
    return parameter_fault{name, "penalty", penalty, "must be a finite number > 0"};
  }

  void operator()(candidates& row, const step_context&) const {
    if (off()) return;
    row.edit_each(source_, [&](token_id, const float& logit) {
      if (!math::is_finite(logit)) return logit;
      const auto z = static_cast<double>(logit);
      return math::saturated(z > 0 ? z * penalty_ : z / penalty_);
    });
  }

  [[nodiscard]] bool off() const { return penalty_ == 1 || source_.empty(); }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {penalty_}); }

 private:
  double penalty_;
  std::vector<token_id> source_;  // each once
};

}  // namespace decant
