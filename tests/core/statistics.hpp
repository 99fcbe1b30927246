// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace statistics {

/// Pearson's chi-square against expected counts, bins pooled until each expects five. True unless the result is rarer
/// than about one in a million (Wilson and Hilferty's normal approximation, 4.75 deviations).
inline bool plausible(const std::vector<double>& counts, const std::vector<double>& expected) {
  double chi_square = 0, pooled_count = 0, pooled = 0;
  std::size_t bins = 0;
  const auto close = [&] {
    chi_square += (pooled_count - pooled) * (pooled_count - pooled) / pooled;
    ++bins;
    pooled = pooled_count = 0;
  };
  double left = 0;
  for (const double e : expected) left += e;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (expected[i] == 0 && counts[i] > 0) return false;
    pooled_count += counts[i];
    pooled += expected[i];
    left -= expected[i];
    if (pooled >= 5 && left >= 5) close();
  }
  if (pooled > 0) close();
  if (bins < 2) return true;
  const double k = static_cast<double>(bins - 1), spread = 2 / (9 * k);
  return (std::cbrt(chi_square / k) - (1 - spread)) / std::sqrt(spread) < 4.75;
}

}  // namespace statistics
