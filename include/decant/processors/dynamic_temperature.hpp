// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>
#include <decant/processors/temperature.hpp>

namespace decant {

/// A temperature that follows the entropy: low where the model is sure, high where it is not.
///
/// Effect: T = low + (high - low) (H / ln n)^exponent, n the number of tokens left and H their entropy; then as
/// temperature(T), so ranks and ties stay and T = 0 keeps the argmax. A single token is left as it is. One pass in
/// double: every logit is divided by what the entropy gives, so that nothing less than the exact one will do.
/// Off: low = high = 1. Errors: parameter_error unless low >= 0, high >= low and exponent > 0 are finite numbers.
/// Reference: kalomaze, "Dynamic temperature sampling", 2023. In llama.cpp, temp_ext(t, range) is
/// low = max(0, t - range), high = t + range.
class dynamic_temperature : public made_or_error<dynamic_temperature> {
 public:
  static constexpr std::string_view name = "dynamic_temperature";
  static constexpr bool argmax_invariant = true;

  explicit dynamic_temperature(double low, double high, double exponent = 1)
      : low_(low), high_(high), exponent_(exponent) {
    detail::raise_if(validate(low, high, exponent));
  }

  static std::optional<parameter_fault> validate(double low, double high, double exponent = 1) {
    if (!(low >= 0 && math::is_finite(low))) return parameter_fault{name, "low", low, "must be a finite number >= 0"};
    if (!(high >= low && math::is_finite(high))) {
      return parameter_fault{name, "high", high, "must be a finite number >= low"};
    }
    if (!(exponent > 0 && math::is_finite(exponent))) {
      return parameter_fault{name, "exponent", exponent, "must be a finite number > 0"};
    }
    return {};
  }

  void operator()(candidates& row, const step_context& context) const {
    if (off() || row.size() < 2) return;
    temperature(temperature_for(row))(row, context);
  }

  /// The temperature that a row of two or more tokens would get.
  [[nodiscard]] double temperature_for(candidates& row) const {
    const double share = std::min(1.0, row.entropy() / math::log(static_cast<double>(row.size())));
    if (share == 0 || low_ == high_) return low_;
    const double bent = exponent_ == 1 ? share : math::exp(math::product(exponent_, math::log(share)));
    return low_ + math::product(high_ - low_, bent);
  }

  [[nodiscard]] bool off() const { return low_ == 1 && high_ == 1; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {low_, high_, exponent_}); }

 private:
  double low_, high_, exponent_;
};

}  // namespace decant
