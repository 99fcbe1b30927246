// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <decant/core/token.hpp>

// Policies by their definitions, in double, over a whole vector and with libm: slow, obvious, and sharing no code with
// the library. A token that is gone has the logit -inf.

namespace decant::testing::reference {

using logits = std::vector<double>;

inline constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// A row of floats in double.
[[nodiscard]] inline logits widened(std::span<const float> row) { return {row.begin(), row.end()}; }

/// softmax: the probabilities that logits stand for; all 0 where no token is left.
template <class Row>
[[nodiscard]] std::vector<double> exact_law(const Row& row) {
  double top = minus_infinity, sum = 0;
  for (const auto z : row) top = std::max(top, static_cast<double>(z));
  std::vector<double> law;
  for (const auto z : row) {
    law.push_back(top == minus_infinity ? 0.0 : std::exp(static_cast<double>(z) - top));
    sum += law.back();
  }
  for (double& p : law) p = sum > 0 ? p / sum : 0;
  return law;
}

/// The entropy of a law in nats; 0 ln 0 is 0.
[[nodiscard]] inline double entropy(std::span<const double> law) {
  double sum = 0;
  for (const double p : law) sum -= p > 0 ? p * std::log(p) : 0;
  return sum;
}

/// The ids that are left, by (logit descending, id ascending).
[[nodiscard]] inline std::vector<std::size_t> descending(const logits& z) {
  std::vector<std::size_t> ids;
  for (std::size_t i = 0; i < z.size(); ++i) {
    if (z[i] != minus_infinity) ids.push_back(i);
  }
  std::sort(ids.begin(), ids.end(),
            [&](std::size_t x, std::size_t y) { return z[x] > z[y] || (z[x] == z[y] && x < y); });
  return ids;
}

/// Bans all but the first `count` of an order.
[[nodiscard]] inline logits keep_first(const logits& z, const std::vector<std::size_t>& order, std::size_t count) {
  logits kept(z.size(), minus_infinity);
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) kept[order[i]] = z[order[i]];
  return kept;
}

[[nodiscard]] inline logits temperature(logits z, double t) {
  for (double& x : z) x /= t;
  return z;
}

[[nodiscard]] inline logits top_k(const logits& z, std::size_t k) { return keep_first(z, descending(z), k); }

[[nodiscard]] inline logits top_p(const logits& z, double p) {
  const auto law = exact_law(z);
  const auto order = descending(z);
  std::size_t count = 0;
  for (double mass = 0; count < order.size() && (count == 0 || mass < p); ++count) mass += law[order[count]];
  return keep_first(z, order, count);
}

[[nodiscard]] inline logits min_p(const logits& z, double p) {
  const auto order = descending(z);
  if (order.empty()) return z;
  std::size_t count = 0;
  while (count < order.size() && z[order[count]] >= z[order[0]] + std::log(p)) ++count;
  return keep_first(z, order, count);
}

[[nodiscard]] inline logits repetition_penalty(logits z, std::span<const token_id> history, double penalty) {
  std::vector<bool> seen(z.size());
  for (const token_id token : history) seen[static_cast<std::size_t>(token)] = true;
  for (std::size_t i = 0; i < z.size(); ++i) {
    if (seen[i]) z[i] = z[i] > 0 ? z[i] / penalty : z[i] * penalty;
  }
  return z;
}

/// Frequency and presence penalty together, over the tokens given.
[[nodiscard]] inline logits count_penalty(logits z, std::span<const token_id> output, double frequency,
                                          double presence) {
  for (std::size_t i = 0; i < z.size(); ++i) {
    const auto count = std::ranges::count(output, static_cast<token_id>(i));
    if (count > 0) z[i] -= frequency * static_cast<double>(count) + presence;
  }
  return z;
}

[[nodiscard]] inline logits no_repeat_ngram(logits z, std::span<const token_id> history, std::size_t n) {
  if (n == 0) return z;
  for (std::size_t v = 0; v < z.size(); ++v) {
    std::vector<token_id> text(history.begin(), history.end());
    text.push_back(static_cast<token_id>(v));
    if (text.size() < n) continue;
    const auto last = std::span<const token_id>(text).last(n);
    for (std::size_t i = 0; i + n < text.size(); ++i) {
      if (std::ranges::equal(std::span<const token_id>(text).subspan(i, n), last)) z[v] = minus_infinity;
    }
  }
  return z;
}

}  // namespace decant::testing::reference
