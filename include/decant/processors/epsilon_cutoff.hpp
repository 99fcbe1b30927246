// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>
#include <decant/processors/keep_within.hpp>
#include <decant/processors/ties.hpp>

namespace decant {

/// Keeps tokens of probability >= epsilon.
///
/// Effect: an absolute threshold on the probabilities of the tokens left, so equal tokens fare alike; where fewer than
/// `min_keep` reach it, the largest `min_keep` are kept, ties by lower id or, with ties::keep, all of them. One
/// pass, another two in float where the sum that goes along with it does not decide.
/// Off: epsilon = 0. Errors: parameter_error for NaN, negative epsilon, or epsilon > 1.
/// Reference: Hewitt, Manning, Liang, "Truncation sampling as language model desmoothing", Findings of EMNLP 2022,
/// arXiv 2210.15191.
class epsilon_cutoff : public made_or_error<epsilon_cutoff> {
 public:
  static constexpr std::string_view name = "epsilon_cutoff";
  static constexpr bool argmax_invariant = true;

  /// Keeps at least `min_keep` tokens (at least one).
  explicit epsilon_cutoff(double epsilon, std::size_t min_keep = 1, ties at_border = ties::lower_id)
      : epsilon_(epsilon), min_keep_(min_keep), at_border_(at_border) {
    detail::raise_if(validate(epsilon));
  }

  static std::optional<parameter_fault> validate(double epsilon, std::size_t = 1, ties = ties::lower_id) {
    if (epsilon >= 0 && epsilon <= 1) return {};
    return parameter_fault{name, "epsilon", epsilon, "must lie in [0, 1]"};
  }

  void operator()(candidates& row, const step_context&) const {
    if (!off()) detail::keep_probable(row, {math::log(epsilon_)}, min_keep_, at_border_);
  }

  [[nodiscard]] bool off() const { return epsilon_ == 0; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {epsilon_}); }

 private:
  double epsilon_;
  std::size_t min_keep_;
  ties at_border_;
};

}  // namespace decant
