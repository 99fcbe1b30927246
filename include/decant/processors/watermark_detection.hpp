// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <decant/core/token.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// What a text says about a watermark. Under the null hypothesis, that the text knows nothing of the key, z has mean 0
/// and variance 1, and p_value is the probability of so high a score.
struct watermark_evidence {
  std::size_t tokens = 0;  ///< how many tokens count
  double score = 0;        ///< the watermark's own measure: the detector says which
  double z = 0;            ///< the score's distance from its mean, in standard deviations
  double p_value = 1;      ///< one-sided; 1 where no token counts

  friend bool operator==(const watermark_evidence&, const watermark_evidence&) = default;
};

/// Which tokens of a text a detector counts.
struct detection_options {
  std::size_t prompt_size = 0;  ///< so many tokens at the start are context alone
  /// Whether a token counts each time that it stands behind the same seed. Such a repeat is no new evidence, and a text
  /// full of them would be taken for watermarked by chance.
  bool count_repeats = false;
};

/// The probability of a standard normal variable to be at least z.
[[nodiscard]] inline double normal_tail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

/// The probability that the sum of `count` independent variables of law Exp(1) is at least x: the upper tail of
/// Gamma(count, 1), which is the chance of fewer than `count` events of a Poisson process up to x. O(count), by
/// logarithms; 1 for x <= 0.
[[nodiscard]] inline double exponential_sum_tail(std::size_t count, double x) {
  if (!(x > 0)) return 1;
  if (!math::is_finite(x)) return 0;
  double log_term = -x, sum = 0;
  for (std::size_t events = 0; events < count; ++events) {
    if (events > 0) log_term += math::log(x / static_cast<double>(events));
    sum += math::exp(log_term);
  }
  return std::min(sum, 1.0);
}

/// Evidence from a score that is a sum, or a mean, of this mean and standard deviation under the null hypothesis.
[[nodiscard]] inline watermark_evidence normal_evidence(std::size_t tokens, double score, double mean,
                                                        double deviation) {
  if (tokens == 0 || !(deviation > 0)) return {tokens, score, 0, 1};
  const double z = (score - mean) / deviation;
  return {tokens, score, z, normal_tail(z)};
}

/// A token of a text, and the seed of what was chosen for its place: all that a mark depends on.
struct seeded_token {
  std::uint64_t seed;
  token_id token;

  friend auto operator<=>(const seeded_token&, const seeded_token&) = default;
};

/// Orders tokens by seed, and keeps one of those that are alike: they are one piece of evidence. O(size log size).
inline void count_once(std::vector<seeded_token>& tokens) {
  std::ranges::sort(tokens);
  const auto repeats = std::ranges::unique(tokens);
  tokens.erase(repeats.begin(), repeats.end());
}

/// Keeps the first token of each seed, ordered by seed. O(size log size).
inline void count_seeds_once(std::vector<seeded_token>& tokens) {
  std::vector<std::size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(tokens[i].seed, i); });
  std::vector<seeded_token> first;
  for (const std::size_t i : order) {
    if (first.empty() || first.back().seed != tokens[i].seed) first.push_back(tokens[i]);
  }
  tokens = std::move(first);
}

}  // namespace decant
