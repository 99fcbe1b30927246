// SPDX-License-Identifier: MIT
#include <decant/speculative/statistics.hpp>

#include <cmath>

#include "support/catch.hpp"

namespace statistics_tests {

using counts = std::vector<std::size_t>;

TEST_CASE("rounds are counted by position", "[speculative]") {
  decant::speculation_statistics seen;
  CHECK(seen.tokens_per_pass() == 0);
  CHECK(seen.acceptance_rate() == 0);
  CHECK(seen.measured_cost() == 0);
  seen.count(3, 3, 1, true);
  seen.count(2, 2, 2, false);
  seen.count(0, 0, 0, false);
  CHECK(seen.rounds == 3);
  CHECK(seen.drafted_rounds == 2);
  CHECK(seen.tokens == 6);
  CHECK(seen.nodes == 5);
  CHECK(seen.proposed == counts{2, 2, 1});
  CHECK(seen.tried == counts{2, 2});
  CHECK(seen.accepted == counts{2, 1});
  CHECK(seen.tokens_per_pass() == 2);
  CHECK(seen.acceptance_rate() == 0.75);
}

TEST_CASE("the measured cost is a drafted token's time in passes of the target", "[speculative]") {
  decant::speculation_statistics seen;
  seen.count(4, 4, 4, false);
  seen.count(4, 4, 0, true);
  seen.draft_seconds = 0.8;
  seen.target_seconds = 2;
  CHECK(std::abs(seen.measured_cost() - 0.1) < 1e-12);
}

}  // namespace statistics_tests
