// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// Makes the end of the text ever more likely once the output has become longer than `start`.
///
/// Effect: with m the number of output tokens beyond `start`, the logit z of each end token becomes
/// z + |z| (factor^m - 1), also where z is negative; one of 0 stays, and one that is gone stays gone. A factor below 1
/// puts the end off. Depends on where the zero of the logits is: shifting them all changes the result. O(ends), sparse
/// edits.
/// Off: factor = 1. Errors: parameter_error unless start >= 0, factor is a finite number > 0 and every end id >= 0.
/// Reference: Hugging Face transformers, `exponential_decay_length_penalty`.
class exponential_decay_length : public made_or_error<exponential_decay_length> {
 public:
  static constexpr std::string_view name = "exponential_decay_length";

  explicit exponential_decay_length(std::int64_t start, double factor, std::vector<token_id> ends)
      : start_(start), factor_(factor), ends_(std::move(ends)) {
    detail::raise_if(validate(start, factor, ends_));
  }

  static std::optional<parameter_fault> validate(std::int64_t start, double factor, const std::vector<token_id>& ends) {
    if (start < 0) return parameter_fault{name, "start", static_cast<double>(start), "must be >= 0"};
    if (!(factor > 0 && math::is_finite(factor))) {
      return parameter_fault{name, "factor", factor, "must be a finite number > 0"};
    }
    for (const token_id id : ends) {
      if (id < 0) return parameter_fault{name, "ends", static_cast<double>(id), "must be >= 0"};
    }
    return {};
  }

  void operator()(candidates& row, const step_context& context) const {
    const std::size_t length = context.output().size();
    if (off() || length <= static_cast<std::size_t>(start_)) return;
    const double growth = power(factor_, length - static_cast<std::size_t>(start_)) - 1;
    for (const token_id id : ends_) {
      const auto logit = static_cast<double>(row.logit(id));
      if (logit == 0 || !math::is_finite(logit)) continue;
      row.set(id, math::saturated(logit + math::product(std::abs(logit), growth)));
    }
  }

  [[nodiscard]] bool off() const { return factor_ == 1; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {static_cast<double>(start_), factor_}); }

 private:
  /// By squaring: the same on every machine, which std::pow is not.
  static double power(double base, std::size_t exponent) {
    double result = 1;
    for (; exponent > 0; exponent /= 2) {
      if (exponent % 2 != 0) result = math::product(result, base);
      base = math::product(base, base);
    }
    return result;
  }

  std::int64_t start_;
  double factor_;
  std::vector<token_id> ends_;
};

}  // namespace decant
