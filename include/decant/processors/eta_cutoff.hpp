// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
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

/// Keeps tokens of probability >= min(epsilon, sqrt(epsilon) e^-H), H the entropy: a threshold that sinks where the
/// model is unsure.
///
/// Effect: keeps a superset of epsilon_cutoff(epsilon); entropy and probabilities are those of the tokens left. Where
/// fewer than `min_keep` reach the threshold, the largest `min_keep` are kept, ties by lower id or, with ties::keep,
/// all of them. One pass and two in float.
/// Off: epsilon = 0. Errors: parameter_error for NaN, negative epsilon, or epsilon > 1.
/// Reference: Hewitt, Manning, Liang, "Truncation sampling as language model desmoothing", Findings of EMNLP 2022,
/// arXiv 2210.15191.
class eta_cutoff : public made_or_error<eta_cutoff> {
 public:
  static constexpr std::string_view name = "eta_cutoff";
  static constexpr bool argmax_invariant = true;

  /// Keeps at least `min_keep` tokens (at least one).
  explicit eta_cutoff(double epsilon, std::size_t min_keep = 1, ties at_border = ties::lower_id)
      : epsilon_(epsilon), min_keep_(min_keep), at_border_(at_border) {
    detail::raise_if(validate(epsilon));
  }

  static std::optional<parameter_fault> validate(double epsilon, std::size_t = 1, ties = ties::lower_id) {
    if (epsilon >= 0 && epsilon <= 1) return {};
    return parameter_fault{name, "epsilon", epsilon, "must lie in [0, 1]"};
  }

  void operator()(candidates& row, const step_context&) const {
    if (off() || row.status() != row_status::ok) return;
    const double log_epsilon = math::log(epsilon_);
    const bool sinks = row.entropy_exceeds(-log_epsilon / 2);
    const probability_threshold threshold{sinks ? log_epsilon / 2 : log_epsilon, 0, sinks ? 1.0 : 0.0};
    detail::keep_probable(row, threshold, min_keep_, at_border_);
  }

  [[nodiscard]] bool off() const { return epsilon_ == 0; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {epsilon_}); }

 private:
  double epsilon_;
  std::size_t min_keep_;
  ties at_border_;
};

}  // namespace decant
