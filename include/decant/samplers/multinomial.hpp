// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>

namespace decant {

/// Draws a token with its probability: ancestral sampling.
///
/// No off value, no errors; no_token on a bad row. The random numbers are a function of the stream, the position and
/// the law alone (see candidates::draw), and a token of probability 0 is never drawn.
/// One pass over the row, and few blocks of it after that.
/// Reference: Bishop, "Pattern recognition and machine learning", 2006, section 8.1.2.
class multinomial {
 public:
  static constexpr bool only_narrows = true;

  token_id operator()(candidates& row, const step_context& context) const { return row.draw(context.draws); }

  /// The law is the row as it stands.
  void narrow(candidates&, const step_context&) const {}

  [[nodiscard]] std::string describe() const { return "multinomial"; }
};

}  // namespace decant
