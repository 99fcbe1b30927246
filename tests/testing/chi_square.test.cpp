// SPDX-License-Identifier: MIT
#include <decant/testing/chi_square.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <decant/core/draws.hpp>

namespace chi_square_tests {

using namespace decant::testing;
using counts = std::vector<std::size_t>;
using weights = std::vector<double>;

bool close(double x, double y, double relative = 1e-10) { return std::abs(x - y) <= relative * std::abs(y); }

TEST_CASE("the incomplete gamma function has its closed forms", "[testing]") {
  // Q(1, x) = e^-x, Q(1/2, x) = erfc(sqrt x), Q(n, x) = e^-x sum of x^k / k! for k < n
  for (const double x : {1e-8, 0.001, 0.3, 0.999, 1.0, 1.999, 2.0, 2.5, 7.0, 20.0, 100.0, 600.0}) {
    CHECK(close(gamma_q(1, x), std::exp(-x)));
    CHECK(close(gamma_q(0.5, x), std::erfc(std::sqrt(x))));
    double term = 1, sum = 0;
    for (int k = 0; k < 7; term *= x / ++k) sum += term;
    CHECK(close(gamma_q(7, x), std::exp(-x) * sum));
    CHECK(close(gamma_p(0.5, x), std::erf(std::sqrt(x))));
    CHECK(close(gamma_p(3, x) + gamma_q(3, x), 1));
  }
  CHECK(close(gamma_p(1, 1e-12), 1e-12));
  CHECK(gamma_p(2, 0) == 0);
  CHECK(gamma_q(2, 0) == 1);
}

TEST_CASE("the chi-square tail has its tabulated values", "[testing]") {
  CHECK(close(chi_square_tail(3.841458820694124, 1), 0.05));
  CHECK(close(chi_square_tail(5.991464547107979, 2), 0.05));
  CHECK(close(chi_square_tail(6.634896601021213, 1), 0.01));
  CHECK(close(chi_square_tail(11.070497693516351, 5), 0.05));
  CHECK(close(chi_square_tail(18.307038053275146, 10), 0.05));
  CHECK(close(chi_square_tail(124.342113404004, 100), 0.05));
  // Even degrees have a closed form: e^-50 (1 + 50), far out in the tail.
  CHECK(close(chi_square_tail(100, 4), std::exp(-50.0) * 51));
  CHECK(chi_square_tail(7, 0) == 1);
  CHECK(chi_square_tail(0, 3) == 1);
}

TEST_CASE("a z score has its two-sided probability", "[testing]") {
  CHECK(close(two_sided_p(1.959963984540054), 0.05));
  CHECK(close(two_sided_p(-1.959963984540054), 0.05));
  CHECK(close(two_sided_p(4.891638475699415), 1e-6));
  CHECK(two_sided_p(0) == 1);
  CHECK(close(z_score(60, 100, 0.5), 2));
  CHECK(close(z_score(40, 100, 0.5), -2));
  CHECK_THROWS_AS(z_score(1, 0, 0.5), assertion_error);
  CHECK_THROWS_AS(z_score(1, 2, 1.0), assertion_error);
}

TEST_CASE("the statistic is Pearson's", "[testing]") {
  const auto test = chi_square(counts{10, 20, 30}, weights{1.0 / 3, 1.0 / 3, 1.0 / 3});
  CHECK(close(test.statistic, 10));
  CHECK(test.degrees == 2);
  CHECK(close(test.p_value, std::exp(-5.0)));
  const auto scaled = chi_square(counts{10, 20, 30}, weights{7, 7, 7});
  CHECK(close(scaled.statistic, 10));
}

TEST_CASE("counts as expected have statistic 0", "[testing]") {
  const auto test = chi_square(counts{25, 50, 25}, weights{0.25, 0.5, 0.25});
  CHECK(test.statistic == 0);
  CHECK(test.p_value == 1);
}

TEST_CASE("small cells are pooled", "[testing]") {
  // Expectations 50, 44, 3, 3: the last two become one cell of 6.
  const auto test = chi_square(counts{50, 44, 6, 0}, weights{0.5, 0.44, 0.03, 0.03});
  CHECK(test.degrees == 2);
  CHECK(test.statistic == Approx(0).margin(1e-12));
}

TEST_CASE("a pool that stays small joins the smallest cell, and is judged by itself", "[testing]") {
  const auto fine = chi_square(counts{60, 39, 1}, weights{0.6, 0.39, 0.01});
  CHECK(fine.degrees == 1);
  CHECK(fine.p_value > 0.5);
  // Three draws of an event of expectation 10^-6: P(X >= 3) is about 10^-18 / 6.
  const auto rare = chi_square(counts{60, 37, 3}, weights{0.6, 0.4, 1e-8});
  CHECK(rare.p_value < 1e-15);
  const auto lone = chi_square(counts{97, 3}, weights{1, 1e-8});
  CHECK(lone.degrees == 0);
  CHECK(lone.p_value < 1e-15);
}

TEST_CASE("a draw that cannot be has p = 0, an empty impossible cell does not count", "[testing]") {
  CHECK(chi_square(counts{50, 49, 1}, weights{0.5, 0.5, 0}).p_value == 0);
  const auto test = chi_square(counts{50, 50, 0}, weights{0.5, 0.5, 0});
  CHECK(test.p_value == 1);
  CHECK(test.degrees == 1);
}

TEST_CASE("one possible cell leaves no freedom", "[testing]") {
  const auto test = chi_square(counts{0, 80}, weights{0, 1});
  CHECK(test.degrees == 0);
  CHECK(test.p_value == 1);
}

TEST_CASE("misuse of a chi-square test is found", "[testing]") {
  CHECK_THROWS_AS(chi_square(counts{1}, weights{0.5, 0.5}), assertion_error);
  CHECK_THROWS_AS(chi_square(counts{1, 1}, weights{1.5, -0.5}), assertion_error);
  CHECK_THROWS_AS(chi_square(counts{1, 1}, weights{0, 0}), assertion_error);
  CHECK_THROWS_AS(chi_square_of_two(counts{1, 1}, counts{1}), assertion_error);
  CHECK_THROWS_AS(gamma_p(0, 1), assertion_error);
  CHECK_THROWS_AS(gamma_q(1, -1), assertion_error);
}

TEST_CASE("two rows of counts from one law agree, from two laws do not", "[testing]") {
  CHECK(chi_square_of_two(counts{100, 200, 300}, counts{100, 200, 300}).p_value == 1);
  CHECK(chi_square_of_two(counts{100, 200, 300}, counts{50, 100, 150}).p_value == Approx(1));
  CHECK(chi_square_of_two(counts{100, 200, 300}, counts{300, 200, 100}).p_value < 1e-20);
  CHECK(chi_square_of_two(counts{0, 0}, counts{3, 4}).p_value == 1);
  // 2 x 2 by hand: n (ad - bc)^2 / product of the margins.
  const auto test = chi_square_of_two(counts{30, 70}, counts{50, 50});
  CHECK(close(test.statistic, 200.0 * 2000 * 2000 / (80.0 * 120 * 100 * 100)));
  CHECK(test.degrees == 1);
}

TEST_CASE("p-values of right draws are uniform, small cells included", "[testing]") {
  const weights law{0.4, 0.3, 0.2, 0.09, 0.006, 0.003, 0.001};
  std::vector<int> below(3);
  constexpr int rounds = 2000;
  for (int round = 0; round < rounds; ++round) {
    counts drawn(law.size());
    const decant::draw_stream draws(7, static_cast<std::uint64_t>(round));
    for (std::size_t i = 0; i < 300; ++i) ++drawn[draws.at(i).choose(law, 1, decant::purpose::user)];
    const double p = chi_square(drawn, law).p_value;
    below[0] += p < 0.5;
    below[1] += p < 0.1;
    below[2] += p < 0.01;
  }
  // Twice the smaller of two p-values is conservative, hence only upper bounds that are tight below.
  CHECK(below[0] < rounds * 0.56);
  CHECK(below[0] > rounds * 0.3);
  CHECK(below[1] < rounds * 0.13);
  CHECK(below[1] > rounds * 0.05);
  CHECK(below[2] < rounds * 0.02);
}

}  // namespace chi_square_tests
