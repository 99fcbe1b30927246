// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>

namespace decant {

/// Turns logits into natural log-probabilities of the tokens left.
///
/// Effect: shifts all logits by the same amount, so that the law, ranks and ties stay: for policies that depend on
/// where the zero is (repetition_penalty), and for reading logits as log-probabilities. One pass; the logits are not
/// touched.
/// No off value, no errors.
/// Reference: Hugging Face transformers, "renormalize_logits".
class renormalise : public made_or_error<renormalise> {
 public:
  static constexpr std::string_view name = "renormalise";
  static constexpr bool argmax_invariant = true;

  renormalise() = default;
  static std::optional<parameter_fault> validate() { return {}; }

  void operator()(candidates& row, const step_context&) const {
    if (row.status() == row_status::ok) row.affine(1, -row.log_sum());
  }

  [[nodiscard]] std::string describe() const { return std::string(name); }
};

}  // namespace decant
