// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/residual.hpp>
#include <decant/speculative/verdict.hpp>

namespace decant {

/// NOT lossless. Token verification that believes the draft with a share of 1 - weight: a token is accepted with
/// probability min(1, 1 - weight + weight p / q).
///
/// Effect: after a rejection the next token comes from the positive part of p - q, as with weight 1. Reads the first
/// path of a tree, and a deterministic draft as one that was certain. Cost as of token verification.
/// Off: weight = 1, which is token verification; 0 accepts every draft. Errors: parameter_error for a weight outside
/// [0, 1]; a drafted token that its law does not hold is misuse.
/// Reference: "ensemble weight" of Hugging Face transformers' assisted generation, pull request 45979.
class ensemble_verification : public made_or_error<ensemble_verification> {
 public:
  static constexpr std::string_view name = "ensemble_verification";
  static constexpr bool lossless = false;

  explicit ensemble_verification(double weight) : weight_(weight) { detail::raise_if(validate(weight)); }

  static std::optional<parameter_fault> validate(double weight) {
    if (weight >= 0 && weight <= 1) return {};
    return parameter_fault{name, "weight", weight, "must lie in [0, 1]"};
  }

  template <class Law, class Target, class Decide>
  void operator()(const basic_draft<Law>& drafted, Target&& target, Decide&& decide, basic_verdict<Law>& out) const {
    using number = number_of<Law>;
    const number of_target(weight_), of_draft(1 - weight_);
    detail::accept_along_first_path(
        drafted, target, out, [&](const Law& p, const Law&, const number& drawn_with, std::int32_t child) {
          const number both = of_draft * drawn_with + of_target * probability_of(p, drafted.token(child));
          return decide.chance(both, drawn_with, child);
        });
  }

  [[nodiscard]] bool off() const { return weight_ == 1; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {weight_}); }

 private:
  double weight_;
};

}  // namespace decant
