// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>
#include <decant/processors/temperature.hpp>

namespace decant {

/// Entropy-based dynamic temperature (EDT): T = t0 * base^(theta / H).
///
/// Effect: T approaches t0 where the entropy H of the tokens left is high, and 0, which keeps the argmax, where it is
/// low; then as temperature(T), so ranks and ties stay. One pass in double.
/// Off: t0 = 1 with theta = 0 or base = 1. Errors: parameter_error unless t0 >= 0 and theta >= 0 are finite numbers and
/// base lies in (0, 1].
/// Reference: Zhang, Bao, Huang, "EDT: improving large language models' generation by entropy-based dynamic temperature
/// sampling", 2024, arXiv 2403.14541.
class edt : public made_or_error<edt> {
 public:
  static constexpr std::string_view name = "edt";
  static constexpr bool argmax_invariant = true;

  explicit edt(double t0, double theta, double base = 0.8) : t0_(t0), theta_(theta), base_(base) {
    detail::raise_if(validate(t0, theta, base));
  }

  static std::optional<parameter_fault> validate(double t0, double theta, double base = 0.8) {
    if (!(t0 >= 0 && math::is_finite(t0))) return parameter_fault{name, "t0", t0, "must be a finite number >= 0"};
    if (!(theta >= 0 && math::is_finite(theta))) {
      return parameter_fault{name, "theta", theta, "must be a finite number >= 0"};
    }
    if (!(base > 0 && base <= 1)) return parameter_fault{name, "base", base, "must lie in (0, 1]"};
    return {};
  }

  void operator()(candidates& row, const step_context& context) const {
    if (off() || row.status() != row_status::ok) return;
    temperature(temperature_for(row))(row, context);
  }

  /// The temperature that a good row would get.
  [[nodiscard]] double temperature_for(candidates& row) const {
    if (fixed()) return t0_;
    const double entropy = row.entropy();
    if (entropy == 0) return 0;
    return math::product(t0_, math::exp(math::product(theta_ / entropy, math::log(base_))));
  }

  [[nodiscard]] bool off() const { return t0_ == 1 && fixed(); }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {t0_, theta_, base_}); }

 private:
  [[nodiscard]] bool fixed() const { return theta_ == 0 || base_ == 1; }

  double t0_, theta_, base_;
};

}  // namespace decant
