// SPDX-License-Identifier: MIT
#include <decant/speculative/draft_length.hpp>

#include <cmath>
#include <limits>

#include "support/catch.hpp"

namespace draft_length_tests {

using decant::draft_length;
using decant::expected_speedup;
using decant::expected_tokens;
using decant::optimal_draft_length;
using decant::speculation_statistics;

TEST_CASE("tokens a pass count the target's own (methods.md Q)", "[speculative]") {
  CHECK(std::abs(expected_tokens(0.7, 5) - 2.941168) < 5e-6);
  CHECK(std::abs(expected_tokens(0.7, 5) - (1 - std::pow(0.7, 6)) / 0.3) < 1e-12);
  CHECK(expected_tokens(1, 4) == 5);
  CHECK(expected_tokens(0, 4) == 1);
  CHECK(expected_tokens(0.5, 0) == 1);
}

TEST_CASE("the optimal draft length (methods.md D1)", "[speculative]") {
  struct row {
    double rate, cost;
    std::size_t best;
    double speedup;
  };
  for (const row& r : {row{0.6, 0.05, 4, 1.92}, row{0.8, 0.05, 8, 3.09}, row{0.9, 0.05, 13, 4.67},
                       row{0.8, 0.1, 6, 2.47}, row{0.8, 0.2, 4, 1.87}, row{0.9, 0.01, 24, 7.49}}) {
    CHECK(optimal_draft_length(r.rate, r.cost, 64) == r.best);
    CHECK(std::abs(expected_speedup(r.rate, r.best, r.cost) - r.speedup) < 0.005);
  }
}

TEST_CASE("drafting pays if and only if the rate exceeds the cost", "[speculative]") {
  CHECK(optimal_draft_length(0.3, 0.3, 64) == 0);
  CHECK(optimal_draft_length(0.29, 0.3, 64) == 0);
  CHECK(optimal_draft_length(0.31, 0.3, 64) == 1);
  CHECK(optimal_draft_length(0, 0, 64) == 0);
  CHECK(optimal_draft_length(1, 0, 64) == 64);
  CHECK(optimal_draft_length(0.9, 0.01, 10) == 10);
}

TEST_CASE("a fixed length stays", "[speculative]") {
  draft_length k = draft_length::fixed(3);
  k.feedback(3, 0);
  k.feedback(3, 3);
  CHECK(k.next({}) == 3);
}

TEST_CASE("the heuristic adds two and takes one", "[speculative]") {
  draft_length k = draft_length::heuristic(5, 8);
  k.feedback(5, 5);
  CHECK(k.next({}) == 7);
  k.feedback(7, 7);
  CHECK(k.next({}) == 8);
  for (int i = 0; i < 20; ++i) k.feedback(3, 2);
  CHECK(k.next({}) == 1);
  k.feedback(0, 0);  // nothing was drafted: nothing is learnt
  CHECK(k.next({}) == 1);
}

TEST_CASE("the heuristic is that of transformers (assisted_greedy.json, schedule_cases)", "[speculative]") {
  struct event {
    std::size_t accepted, drafted, next;
  };
  draft_length k = draft_length::heuristic(5);
  for (const event& e : {event{5, 5, 7}, event{3, 7, 6}, event{7, 7, 8}, event{0, 9, 7}, event{0, 8, 6}}) {
    k.feedback(e.drafted, e.accepted);
    CHECK(k.next({}) == e.next);
  }
  draft_length from_one = draft_length::heuristic(1);
  for (const event& e : {event{0, 1, 1}, event{0, 1, 1}, event{1, 1, 3}, event{3, 3, 5}}) {
    from_one.feedback(e.drafted, e.accepted);
    CHECK(from_one.next({}) == e.next);
  }
}

TEST_CASE("the optimal length follows the rate of the sequence", "[speculative]") {
  const draft_length k = draft_length::optimal(0.1);
  speculation_statistics seen;
  CHECK(k.next(seen) == optimal_draft_length(0.5, 0.1, 16));
  for (int i = 0; i < 300; ++i) seen.count(4, 4, 4, false);
  CHECK(k.next(seen) == 16);
  for (int i = 0; i < 300; ++i) seen.count(4, 4, 0, true);
  CHECK(k.next(seen) == optimal_draft_length(1201.0 / 1502, 0.1, 16));
  for (int i = 0; i < 30000; ++i) seen.count(4, 4, 0, true);
  CHECK(k.next(seen) == 1);  // it drafts all the same: see speculation_options::cost
}

TEST_CASE("the cost is a share of a pass", "[speculative]") {
  for (const double bad : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS(draft_length::optimal(bad), decant::parameter_error);
    CHECK(!draft_length::make_optimal(bad).has_value());
  }
  draft_length k = draft_length::make_optimal(0.5).value();
  CHECK(k.cost() == 0.5);
  k.set_cost(7);
  CHECK(k.cost() < 1);
}

}  // namespace draft_length_tests
