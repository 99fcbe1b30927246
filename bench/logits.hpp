// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include <decant/core/draws.hpp>

/// The one source of rows that benchmarks run on, made from decant's own generator: the same everywhere.
namespace bench {

enum class row_kind : std::uint8_t {
  zipf,  ///< N(0, 2), then 300 random ids at 20 - 1.3 ln(r + 1) + N(0, 0.1), r = 0 .. 299
  flat,  ///< N(0, 1): a nucleus of three quarters of the vocabulary
};

inline const char* name_of(row_kind kind) { return kind == row_kind::zipf ? "zipf" : "flat"; }

inline std::vector<float> make_row(row_kind kind, std::size_t size, std::uint64_t seed) {
  const decant::draw_stream draws(seed, 0x62656e6368);
  std::uint32_t used = 0;
  const auto uniform = [&] { return draws.uniform(decant::purpose::user, used++); };
  const auto normal = [&](double deviation) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return deviation * radius * std::cos(2 * std::numbers::pi * uniform());
  };
  std::vector<float> row(size);
  for (float& z : row) z = static_cast<float>(normal(kind == row_kind::flat ? 1 : 2));
  if (kind == row_kind::zipf) {
    for (int r = 0; r < 300; ++r) {
      row[static_cast<std::size_t>(uniform() * static_cast<double>(size))] =
          static_cast<float>(20 - 1.3 * std::log(r + 1.0) + normal(0.1));
    }
  }
  return row;
}

}  // namespace bench
