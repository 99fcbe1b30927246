// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
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
  // Both sums, and not one minus the other: the share may be tiny. In four lanes, without a branch on random bits.
  std::array<double, 4> zero_lanes{}, one_lanes{};
  const auto add = [&](std::size_t i, std::size_t lane) {
    const std::uint64_t weight = std::bit_cast<std::uint64_t>(weights[i]), ones = 0 - (g[i] >> layer & 1);
    zero_lanes[lane] = math::rounded(zero_lanes[lane] + std::bit_cast<double>(weight & ~ones));
    one_lanes[lane] = math::rounded(one_lanes[lane] + std::bit_cast<double>(weight & ones));
  };
  const std::size_t even = weights.size() / 4 * 4;
  for (std::size_t i = 0; i < even; i += 4) {
#pragma GCC unroll 4
    for (std::size_t lane = 0; lane < 4; ++lane) add(i + lane, lane);
  }
  for (std::size_t i = even; i < weights.size(); ++i) add(i, i - even);
  const auto sum = [](const std::array<double, 4>& lanes) {
    return math::rounded(math::rounded(lanes[0] + lanes[1]) + math::rounded(lanes[2] + lanes[3]));
  };
  const double zeros = sum(zero_lanes), ones = sum(one_lanes);
  const double share = zeros / math::rounded(zeros + ones);
  double lose = 1, win = 1;
  for (std::size_t i = 1; i < leaves; ++i) {
    lose = math::product(lose, share);
    win = math::rounded(win + lose);
  }
  const double factor[2] = {lose, win};
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] *= factor[g[i] >> layer & 1];
}

}  // namespace decant
