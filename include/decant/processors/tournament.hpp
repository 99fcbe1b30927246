// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <decant/core/errors.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// The law of a tournament's winner: `leaves` tokens are drawn from the weights, and one of those with the greatest bit
/// wins, by lot. In closed form, in place.
///
/// Bit `layer` of g[i] is token i's. With r the share of the tokens of bit 0: they lose a factor r^(leaves - 1), those
/// of bit 1 gain 1 + r + ... + r^(leaves - 1); for two leaves r and 1 + r. The sum of the weights stays. Two passes.
/// Reference: Dathathri et al., "Scalable watermarking for identifying large language model outputs", Nature 634, 2024.
inline void tournament_layer(std::span<double> weights, std::span<const std::uint64_t> g, std::size_t layer,
                             std::size_t leaves = 2) {
  DECANT_ASSERT(weights.size() == g.size() && layer < 64 && leaves >= 1, "a tournament needs a word of bits a token");
  // Both sums, and not one minus the other: the share may be tiny.
  double zeros = 0, ones = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    double& sum = (g[i] >> layer & 1) == 0 ? zeros : ones;
    sum = math::rounded(sum + weights[i]);
  }
  const double share = zeros / (zeros + ones);
  double lose = 1, win = 1;
  for (std::size_t i = 1; i < leaves; ++i) {
    lose = math::product(lose, share);
    win += lose;
  }
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] *= (g[i] >> layer & 1) == 0 ? lose : win;
}

}  // namespace decant
