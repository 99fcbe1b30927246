// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>

namespace decant {

/// Draws a token by the Gumbel-max trick: the argmax of logit + Gumbel noise, one noise value a token.
///
/// The same law as multinomial through other random numbers: each token's noise depends on its id and not on which
/// tokens are left, so two rows that are alike mostly draw the same token (common random numbers). Two logarithms a
/// token; for a whole vocabulary multinomial is far cheaper.
/// No off value, no errors; no_token on a bad row.
/// Reference: Gumbel 1954; Maddison, Tarlow, Minka, "A* sampling", NeurIPS 2014, arXiv 1411.0030.
class gumbel {
 public:
  token_id operator()(candidates& row, const step_context& context) const {
    if (row.size() == 1) return row.argmax();
    token_id best = no_token;
    double highest = 0;
    row.visit_below_max([&](token_id id, double below) {
      const double perturbed = below + context.draws.gumbel(purpose::noise, id);
      if (best == no_token || perturbed > highest) {
        highest = perturbed;
        best = id;
      }
    });
    return best;
  }

  /// The law is the row as it stands.
  void narrow(candidates&, const step_context&) const {}

  [[nodiscard]] std::string describe() const { return "gumbel"; }
};

}  // namespace decant
