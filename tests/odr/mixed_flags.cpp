// SPDX-License-Identifier: MIT
// Compiled twice, with different flags and UNIT naming the namespace: see CMakeLists.txt beside this file.
#include <decant/decant.hpp>

#include <bit>

#include "mixed_flags.hpp"

namespace UNIT {

std::vector<std::uint64_t> answers() {
  std::vector<std::uint64_t> bits;
  for (std::size_t i = 0; i < 1000; ++i) {
    const decant::draw_stream draws = decant::draw_stream(7, i).at(i);
    const double u = draws.uniform(decant::purpose::sample);
    const double noise = draws.gumbel(decant::purpose::noise, static_cast<decant::token_id>(i));
    for (const double x : {u, noise, decant::math::exp(noise), decant::math::log(u)}) {
      bits.push_back(std::bit_cast<std::uint64_t>(x));
    }
  }
  return bits;
}

}  // namespace UNIT
