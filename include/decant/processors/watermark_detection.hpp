// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <decant/core/errors.hpp>
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
  /// Whether a token counts each time that it follows the same context. A repeated n-gram is no new evidence, and a
  /// text full of them would be taken for watermarked by chance.
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

/// The places of a text, from `first` on, that a detector counts, ascending: all, or of each n-gram that is made of
/// `width` tokens and the one at the place only the first. O(text log text * width). `first` is at least `width`.
[[nodiscard]] inline std::vector<std::size_t> counted_places(std::span<const token_id> text, std::size_t first,
                                                             std::size_t width, bool count_repeats) {
  DECANT_ASSERT(first >= width, "no n-gram reaches before the text");
  std::vector<std::size_t> places(text.size() > first ? text.size() - first : 0);
  std::iota(places.begin(), places.end(), first);
  if (count_repeats) return places;
  const auto ngram = [&](std::size_t place) { return text.subspan(place - width, width + 1); };
  std::ranges::stable_sort(
      places, [&](std::size_t a, std::size_t b) { return std::ranges::lexicographical_compare(ngram(a), ngram(b)); });
  const auto repeats =
      std::ranges::unique(places, [&](std::size_t a, std::size_t b) { return std::ranges::equal(ngram(a), ngram(b)); });
  places.erase(repeats.begin(), repeats.end());
  std::ranges::sort(places);
  return places;
}

}  // namespace decant
