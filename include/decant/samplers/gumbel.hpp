// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/exponential_race.hpp>

namespace decant {

/// Draws a token by the Gumbel-max trick: the argmax of logit + Gumbel noise, one noise value a token.
///
/// The same law as multinomial through other random numbers: each token's noise depends on its id and not on which
/// tokens are left, so two rows that are alike mostly draw the same token (common random numbers). One random number
/// for every 64 tokens, more for the few that may win (exponential_race).
/// No off value, no errors; no_token on a bad row.
/// Reference: Gumbel 1954; Maddison, Tarlow, Minka, "A* sampling", NeurIPS 2014, arXiv 1411.0030.
class gumbel {
 public:
  static constexpr bool only_narrows = true;

  token_id operator()(candidates& row, const step_context& context) const {
    if (row.size() == 1) return row.argmax();
    token_id best = row.argmax();
    if (best == no_token) return no_token;
    exponential_race race(context.draws.numbers(purpose::noise));
    double highest = race.noise(best);
    race.run(row, highest, [&](token_id id, double, double perturbed) {
      if (perturbed > highest || (perturbed == highest && id < best)) {
        highest = perturbed;
        best = id;
      }
      return highest;
    });
    return best;
  }

  /// The law is the row as it stands.
  void narrow(candidates&, const step_context&) const {}

  [[nodiscard]] std::string describe() const { return "gumbel"; }
};

}  // namespace decant
