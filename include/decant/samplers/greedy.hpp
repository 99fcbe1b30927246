// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>

namespace decant {

/// Takes the token with the largest logit, the lowest id among equals. Needs no random number. One pass.
///
/// No off value, no errors; no_token on a bad row. Choosing the best token at each step does not find the most probable
/// sequence: that is search.
/// Reference: folklore.
class greedy {
 public:
  static constexpr bool takes_argmax = true;
  static constexpr bool only_narrows = true;

  token_id operator()(candidates& row, const step_context& context) const {
    narrow(row, context);
    return row.argmax();
  }

  /// Leaves the argmax alone.
  void narrow(candidates& row, const step_context&) const { row.keep_largest(1); }

  [[nodiscard]] std::string describe() const { return "greedy"; }
};

}  // namespace decant
