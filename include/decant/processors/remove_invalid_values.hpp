// SPDX-License-Identifier: MIT
#pragma once

#include <limits>
#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>
#include <decant/processors/token_list.hpp>

namespace decant {

struct remove_invalid_values_options {
  /// Hugging Face's reading: -inf becomes the lowest float, which brings every token back, undoing bans; also makes a
  /// row good that was bad when read.
  bool revive = false;
};

/// Replaces NaN by 0 and +inf by the largest float, so that a row of a model that overflowed can be decoded.
///
/// Effect: must come before anything that reads the row, first in a chain: a row that was found bad stays bad. Tokens
/// that are gone stay gone (but see the option `revive`). What is drawn from such a row is a guess; without this step
/// the row is reported as not finite. One pass, which the next reading is spared; a row without such values is left as
/// it is, bit for bit. Off: none. Errors: none. Reference: Hugging Face transformers, "remove_invalid_values".
class remove_invalid_values : public made_or_error<remove_invalid_values> {
 public:
  static constexpr std::string_view name = "remove_invalid_values";

  explicit remove_invalid_values(remove_invalid_values_options options = {}) : options_(options) {}

  static std::optional<parameter_fault> validate(remove_invalid_values_options = {}) { return {}; }

  void operator()(candidates& row, const step_context&) const {
    if (!options_.revive && !row.holds_invalid()) return;
    constexpr float largest = std::numeric_limits<float>::max();
    row.rewrite([this](token_id, const float& z) {
      return is_gone(z)                  ? (options_.revive ? -largest : opaque_gone())
             : math::is_plus_infinity(z) ? largest
             : math::is_nan(z)           ? 0.0F
                                         : z;
    });
  }

  [[nodiscard]] std::string describe() const {
    return detail::option_text(detail::call_text(name), options_.revive, "revive = true");
  }

 private:
  remove_invalid_values_options options_;
};

}  // namespace decant
