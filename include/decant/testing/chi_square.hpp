// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <decant/core/errors.hpp>

namespace decant::testing {

namespace detail {

/// x^a e^-x / Gamma(a), by logarithms so that nothing overflows.
inline double gamma_prefactor(double a, double x) { return std::exp(a * std::log(x) - x - std::lgamma(a)); }

/// The lower function by its series: converges fast for x < a + 1.
inline double gamma_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (double n = a + 1; std::abs(term) > std::abs(sum) * 1e-17; ++n) {
    term *= x / n;
    sum += term;
  }
  return sum * gamma_prefactor(a, x);
}

/// The upper function by its continued fraction, evaluated from the front (Lentz): converges fast for x >= a + 1.
inline double gamma_fraction(double a, double x) {
  constexpr double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / b, value = d;
  for (int n = 1; n < 100'000; ++n) {
    const double numerator = -n * (n - a);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    if (std::abs(d) < tiny) d = tiny;
    if (std::abs(c) < tiny) c = tiny;
    d = 1 / d;
    value *= c * d;
    if (std::abs(c * d - 1) < 1e-16) break;
  }
  return value * gamma_prefactor(a, x);
}

}  // namespace detail

/// The regularised lower incomplete gamma function P(a, x) for a > 0, x >= 0.
[[nodiscard]] inline double gamma_p(double a, double x) {
  DECANT_ASSERT(a > 0 && x >= 0, "gamma_p needs a > 0 and x >= 0");
  if (x == 0) return 0;
  return x < a + 1 ? detail::gamma_series(a, x) : 1 - detail::gamma_fraction(a, x);
}

/// The regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), accurate where it is small.
[[nodiscard]] inline double gamma_q(double a, double x) {
  DECANT_ASSERT(a > 0 && x >= 0, "gamma_q needs a > 0 and x >= 0");
  if (x == 0) return 1;
  return x < a + 1 ? 1 - detail::gamma_series(a, x) : detail::gamma_fraction(a, x);
}

/// The probability of a chi-square variable of so many degrees of freedom to exceed `statistic`; 1 for no freedom.
[[nodiscard]] inline double chi_square_tail(double statistic, std::size_t degrees) {
  return degrees == 0 ? 1 : gamma_q(static_cast<double>(degrees) / 2, statistic / 2);
}

/// The probability of a standard normal variable to lie at least |z| from 0.
[[nodiscard]] inline double two_sided_p(double z) { return std::erfc(std::abs(z) / std::sqrt(2.0)); }

/// How many standard deviations a count of successes lies from what `probability` promises.
[[nodiscard]] inline double z_score(std::size_t successes, std::size_t trials, double probability) {
  DECANT_ASSERT(trials > 0 && probability > 0 && probability < 1,
                "z_score needs trials and a probability inside (0, 1)");
  const double n = static_cast<double>(trials);
  return (static_cast<double>(successes) - n * probability) / std::sqrt(n * probability * (1 - probability));
}

/// What a chi-square test came to. A small p_value speaks against the expected law.
struct chi_square_result {
  double statistic = 0;
  std::size_t degrees = 0;
  double p_value = 1;
};

/// Pearson's chi-square test of counts against probabilities (normalised here).
///
/// Cells of expectation below 5 are pooled into one. If even that one stays below 5, it joins the smallest other cell,
/// and its own count is judged by a Poisson tail; the p-value is then twice the smaller of the two. A draw in a cell of
/// probability 0 gives p = 0. O(n). Misuse: spans of different size, a negative probability, none positive.
[[nodiscard]] inline chi_square_result chi_square(std::span<const std::size_t> counts,
                                                  std::span<const double> probabilities) {
  DECANT_ASSERT(counts.size() == probabilities.size(), "one count for each probability");
  DECANT_ASSERT(std::ranges::all_of(probabilities, [](double p) { return p >= 0; }), "probabilities are not negative");
  const double mass = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  DECANT_ASSERT(mass > 0, "no positive probability");
  const double draws = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  struct cell {
    double expected = 0, observed = 0;
    [[nodiscard]] double term() const { return (observed - expected) * (observed - expected) / expected; }
  };
  cell rest, smallest{std::numeric_limits<double>::max(), 0};
  std::size_t large = 0;
  chi_square_result out;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const cell here{draws * (probabilities[i] / mass), static_cast<double>(counts[i])};
    if (!(probabilities[i] > 0)) {
      if (counts[i] > 0) return {std::numeric_limits<double>::max(), counts.size() - 1, 0};
    } else if (here.expected < 5) {
      rest.expected += here.expected;
      rest.observed += here.observed;
    } else {
      ++large;
      out.statistic += here.term();
      if (here.expected < smallest.expected) smallest = here;
    }
  }
  double tail = 1;
  if (rest.expected >= 5) {
    out.statistic += rest.term();
    ++large;
  } else if (rest.expected > 0 && large > 0) {
    if (rest.observed > 0) tail = gamma_p(rest.observed, rest.expected);
    const cell joined{smallest.expected + rest.expected, smallest.observed + rest.observed};
    out.statistic += joined.term() - smallest.term();
  }
  out.degrees = large > 0 ? large - 1 : 0;
  out.statistic = out.degrees > 0 ? std::max(0.0, out.statistic) : 0;
  out.p_value = chi_square_tail(out.statistic, out.degrees);
  if (tail < 1) out.p_value = std::min(1.0, 2 * std::min(out.p_value, tail));
  return out;
}

/// Whether two rows of counts come from one law: the chi-square test of homogeneity. Cells with fewer than 10 draws in
/// both rows together are pooled. Misuse: spans of different size.
[[nodiscard]] inline chi_square_result chi_square_of_two(std::span<const std::size_t> a,
                                                         std::span<const std::size_t> b) {
  DECANT_ASSERT(a.size() == b.size(), "rows of counts over the same cells");
  const double draws_a = static_cast<double>(std::accumulate(a.begin(), a.end(), std::size_t{0}));
  const double draws_b = static_cast<double>(std::accumulate(b.begin(), b.end(), std::size_t{0}));
  if (!(draws_a > 0) || !(draws_b > 0)) return {};
  const double scale_a = std::sqrt(draws_b / draws_a), scale_b = std::sqrt(draws_a / draws_b);
  chi_square_result out;
  std::size_t cells = 0;
  double rest_a = 0, rest_b = 0;
  const auto include = [&](double x, double y) {
    const double difference = scale_a * x - scale_b * y;
    out.statistic += difference * difference / (x + y);
    ++cells;
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] + b[i] >= 10) {
      include(static_cast<double>(a[i]), static_cast<double>(b[i]));
    } else {
      rest_a += static_cast<double>(a[i]);
      rest_b += static_cast<double>(b[i]);
    }
  }
  if (rest_a + rest_b > 0) include(rest_a, rest_b);
  out.degrees = cells > 0 ? cells - 1 : 0;
  out.p_value = chi_square_tail(out.statistic, out.degrees);
  return out;
}

}  // namespace decant::testing
