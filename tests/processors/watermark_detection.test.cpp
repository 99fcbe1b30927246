// SPDX-License-Identifier: MIT
#include <decant/processors/watermark_detection.hpp>

#include "processors/policies.hpp"

#include <decant/testing/chi_square.hpp>

namespace watermark_detection_tests {

using namespace policies;
using decant::exponential_sum_tail;
using decant::normal_evidence;
using decant::normal_tail;
using decant::seeded_token;
using decant::watermark_evidence;

TEST_CASE("normal_tail has the known values", "[processors]") {
  CHECK(normal_tail(0) == 0.5);
  CHECK(normal_tail(1.6448536269514722) == Approx(0.05).epsilon(1e-9));
  CHECK(normal_tail(-1.6448536269514722) == Approx(0.95).epsilon(1e-9));
  CHECK(normal_tail(4) == Approx(3.167124183311998e-5).epsilon(1e-9));
  CHECK(normal_tail(10) == Approx(7.619853024160527e-24).epsilon(1e-9));
}

TEST_CASE("exponential_sum_tail is the incomplete gamma function", "[processors]") {
  for (const std::size_t count : {1U, 2U, 3U, 10U, 100U, 1000U, 5000U}) {
    const double n = static_cast<double>(count);
    for (const double x : {1e-9, 0.1 * n, n - 1, n, n + 3 * std::sqrt(n), n + 8 * std::sqrt(n), 3 * n}) {
      if (!(x > 0)) continue;
      CAPTURE(count, x);
      CHECK(exponential_sum_tail(count, x) == Approx(decant::testing::gamma_q(n, x)).epsilon(1e-8));
    }
  }
  CHECK(exponential_sum_tail(1, 2) == Approx(std::exp(-2)).epsilon(1e-12));
  CHECK(exponential_sum_tail(5, 0) == 1);
  CHECK(exponential_sum_tail(5, -1) == 1);
  CHECK(exponential_sum_tail(0, 1) == 0);
  CHECK(exponential_sum_tail(5, infinity) == 0);
}

TEST_CASE("normal_evidence is the z-score, and nothing where nothing counts", "[processors]") {
  const watermark_evidence found = normal_evidence(100, 40, 25, 5);
  CHECK(found.tokens == 100);
  CHECK(found.score == 40);
  CHECK(found.z == 3);
  CHECK(found.p_value == normal_tail(3));
  CHECK(normal_evidence(0, 0, 0, 0) == watermark_evidence{});
  CHECK(normal_evidence(7, 0, 0, 0) == watermark_evidence{7, 0, 0, 1});
}

TEST_CASE("repeated evidence counts once: a token behind a seed, or a seed alone", "[processors]") {
  const std::vector<seeded_token> text{{5, 2}, {9, 1}, {5, 1}, {5, 2}, {9, 1}, {0, 7}};
  auto tokens_once = text, seeds_once = text;
  decant::count_once(tokens_once);
  CHECK(tokens_once == std::vector<seeded_token>{{0, 7}, {5, 1}, {5, 2}, {9, 1}});
  decant::count_seeds_once(seeds_once);
  CHECK(seeds_once == std::vector<seeded_token>{{0, 7}, {5, 2}, {9, 1}});
  std::vector<seeded_token> none;
  decant::count_once(none);
  decant::count_seeds_once(none);
  CHECK(none.empty());
}

}  // namespace watermark_detection_tests
