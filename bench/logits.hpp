// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include <decant/core/draws.hpp>
#include <decant/core/token.hpp>

/// The one source of rows that benchmarks run on, made from decant's own generator: the same everywhere.
namespace bench {

enum class row_kind : std::uint8_t {
  zipf,    ///< N(0, 2), then 300 random ids at 20 - 1.3 ln(r + 1) + N(0, 0.1), r = 0 .. 299
  real,    ///< N(0, 2), then 200 random ids at uniform(8, 14)
  peaked,  ///< zipf with 3.0 in place of 1.3: a nucleus of a few tokens
  flat,    ///< N(0, 1): a nucleus of three quarters of the vocabulary
  wide,    ///< zipf with 4,000 ids and 0.9: a nucleus of some 2,900 tokens
  // What a selection may be bad at:
  ascending,    ///< zipf in ascending order
  descending,   ///< and in descending order
  all_equal,    ///< every logit 1
  two_valued,   ///< 1 or 2, by coin
  mostly_gone,  ///< zipf with 99.9 % of the logits -inf
  one_block,    ///< N(0, 2), then the 64 ids of one block as the first 64 of zipf
  shifted,      ///< zipf with every logit 15 higher
};

inline constexpr std::array ordinary_rows{row_kind::zipf, row_kind::real, row_kind::peaked, row_kind::flat,
                                          row_kind::wide};
inline constexpr std::array adversarial_rows{row_kind::ascending,  row_kind::descending,  row_kind::all_equal,
                                             row_kind::two_valued, row_kind::mostly_gone, row_kind::one_block,
                                             row_kind::shifted};

inline const char* name_of(row_kind kind) {
  constexpr const char* names[] = {"zipf",       "real",      "peaked",     "flat",        "wide",      "ascending",
                                   "descending", "all_equal", "two_valued", "mostly_gone", "one_block", "shifted"};
  return names[static_cast<std::size_t>(kind)];
}

/// Whether a row rotated by some ids is as good a row of its kind.
inline bool may_rotate(row_kind kind) {
  return kind != row_kind::ascending && kind != row_kind::descending && kind != row_kind::one_block;
}

inline std::vector<float> make_row(row_kind kind, std::size_t size, std::uint64_t seed) {
  const decant::draw_stream draws(seed, 0x62656e6368);
  std::uint32_t used = 0;
  const auto uniform = [&] { return draws.uniform(decant::purpose::user, used++); };
  double spare = 0;
  bool has_spare = false;
  const auto normal = [&](double deviation) {
    if (std::exchange(has_spare, !has_spare)) return deviation * spare;
    const double radius = std::sqrt(-2 * std::log(uniform())), angle = 2 * std::numbers::pi * uniform();
    spare = radius * std::sin(angle);
    return deviation * radius * std::cos(angle);
  };
  std::vector<std::size_t> ids(size);
  std::iota(ids.begin(), ids.end(), std::size_t{0});
  const auto below = [&](std::size_t end) {
    return std::min(static_cast<std::size_t>(uniform() * static_cast<double>(end)), end - 1);
  };
  /// Moves `count` random ids to the front.
  const auto choose = [&](std::size_t count) {
    count = std::min(count, size);
    for (std::size_t i = 0; i < count; ++i) std::swap(ids[i], ids[i + below(size - i)]);
    return count;
  };

  std::vector<float> row(size);
  for (float& z : row) z = static_cast<float>(normal(kind == row_kind::flat ? 1 : 2));
  const auto ranked = [&](std::size_t r, double exponent) {
    return static_cast<float>(20 - exponent * std::log(static_cast<double>(r) + 1) + normal(0.1));
  };
  const auto raise = [&](std::size_t count, double exponent) {
    count = choose(count);
    for (std::size_t r = 0; r < count; ++r) row[ids[r]] = ranked(r, exponent);
  };
  switch (kind) {
    case row_kind::zipf: raise(300, 1.3); break;
    case row_kind::real: {
      const std::size_t count = choose(200);
      for (std::size_t r = 0; r < count; ++r) row[ids[r]] = static_cast<float>(8 + 6 * uniform());
      break;
    }
    case row_kind::peaked: raise(300, 3.0); break;
    case row_kind::flat: break;
    case row_kind::wide: raise(4000, 0.9); break;
    case row_kind::ascending:
    case row_kind::descending:
      raise(300, 1.3);
      std::sort(row.begin(), row.end());
      if (kind == row_kind::descending) std::reverse(row.begin(), row.end());
      break;
    case row_kind::all_equal: std::fill(row.begin(), row.end(), 1.0F); break;
    case row_kind::two_valued:
      for (float& z : row) z = uniform() < 0.5 ? 1.0F : 2.0F;
      break;
    case row_kind::mostly_gone: {
      raise(300, 1.3);
      for (std::size_t i = choose(std::max<std::size_t>(size / 1000, 1)); i < size; ++i) row[ids[i]] = decant::gone;
      break;
    }
    case row_kind::one_block: {
      const std::size_t first = below((size + 63) / 64) * 64, end = std::min(size, first + 64);
      for (std::size_t i = first; i < end; ++i) row[i] = ranked(i - first, 1.3);
      break;
    }
    case row_kind::shifted:
      raise(300, 1.3);
      for (float& z : row) z += 15;
      break;
  }
  return row;
}

}  // namespace bench
