// SPDX-License-Identifier: MIT
#include <decant/speculative/verdict.hpp>

#include <vector>

#include <decant/testing/chi_square.hpp>
#include <decant/testing/enumerate.hpp>

#include "support/catch.hpp"

namespace verdict_tests {

using decant::draw_stream;
using decant::stream_decisions;

static_assert(decant::Decisions<stream_decisions, double>);

TEST_CASE("a chance is taken with probability min(1, n / d)", "[speculative]") {
  std::size_t taken = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    taken += stream_decisions(draw_stream(seed)).chance(0.6, 2.0, 3) ? 1U : 0U;
  }
  CHECK(std::abs(decant::testing::z_score(taken, 20'000, 0.3)) < 4);
  const stream_decisions decide{draw_stream(1)};
  for (std::int32_t node = 0; node < 100; ++node) {
    CHECK(decide.chance(1.0, 1.0, node));
    CHECK(decide.chance(2.0, 0.5, node));
    CHECK(decide.chance(1e-300, 0.0, node));
    CHECK(!decide.chance(0.0, 0.0, node));
    CHECK(!decide.chance(0.0, 1.0, node));
    CHECK(!decide.chance(-1.0, 1.0, node));
  }
}

TEST_CASE("nodes have numbers of their own, and the same question the same answer", "[speculative]") {
  const stream_decisions decide{draw_stream(5)};
  std::vector<bool> answers;
  for (std::int32_t node = 0; node < 64; ++node) answers.push_back(decide.chance(1, 2, node));
  CHECK(std::ranges::count(answers, true) > 15);
  CHECK(std::ranges::count(answers, true) < 49);
  for (std::int32_t node = 0; node < 64; ++node)
    CHECK(decide.chance(1, 2, node) == answers[static_cast<std::size_t>(node)]);
}

TEST_CASE("a pick is what choosing among equal weights gives", "[speculative]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const draw_stream draws(seed);
    for (const std::size_t count : {1U, 2U, 7U, 128U}) {
      const std::vector<double> equal(count, 1.0);
      CHECK(stream_decisions(draws).pick(count, 4) ==
            draws.choose(equal, static_cast<double>(count), decant::purpose::sample, 5));
    }
  }
}

TEST_CASE("a hook answers for the stream", "[speculative]") {
  const auto law = decant::testing::enumerate_law([](decant::decision_hook& hook) {
    stream_decisions decide(draw_stream(0).with_hook(&hook));
    return std::pair(decide.chance(1, 4, 0), decide.pick(3, decant::no_parent));
  });
  CHECK(law.size() == 6);
  CHECK(std::abs(law.at({true, 2}) - 1.0 / 12) < 1e-15);
  CHECK(std::abs(law.at({false, 0}) - 3.0 / 12) < 1e-15);
}

TEST_CASE("a verdict keeps its room", "[speculative]") {
  decant::verdict v;
  v.workspace(3).ids = {1};
  v.path = {1, 2};
  v.next = &v.workspace(0);
  v.clear();
  CHECK(v.path.empty());
  CHECK(v.next == nullptr);
  CHECK(v.workspace(3).ids == std::vector<decant::token_id>{1});
}

}  // namespace verdict_tests
