// SPDX-License-Identifier: MIT
#include <decant/search/beam_selection.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace beam_selection_test {

using decant::extension;
using decant::stage_quotas;

TEST_CASE("the order of continuations: score, then parent, then id", "[search][beam_selection]") {
  const extension best{.rank = -1, .parent = 2, .token = 9}, parent{.rank = -2, .parent = 0, .token = 9},
      low{.rank = -2, .parent = 1, .token = 3}, high{.rank = -2, .parent = 1, .token = 4};
  std::vector<extension> all{high, low, parent, best};
  std::ranges::sort(all, decant::ranks_before);
  std::vector<decant::token_id> tokens;
  for (const extension& e : all) tokens.push_back(e.token);
  CHECK(tokens == std::vector<decant::token_id>{9, 9, 3, 4});
  CHECK(all[0].rank == -1);
  CHECK_FALSE(decant::ranks_before(low, low));
}

TEST_CASE("the best are kept", "[search][beam_selection]") {
  for (const std::size_t count : {0U, 1U, 7U, 50U, 90U}) {
    std::vector<extension> all;
    for (int i = 0; i < 50; ++i) all.push_back({.rank = static_cast<double>(i * 37 % 25), .token = i});
    auto expected = all;
    std::ranges::sort(expected, decant::ranks_before);
    decant::keep_best(all, count);
    REQUIRE(all.size() == std::min<std::size_t>(count, 50));
    std::ranges::sort(all, decant::ranks_before);
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i].token == expected[i].token);
  }
}

/// Which of the candidates, given by their stages in the order of rank, live on.
std::vector<std::size_t> live(std::size_t places, const std::vector<std::size_t>& stages, std::size_t count) {
  stage_quotas quotas;
  quotas.begin(count, places);
  for (const std::size_t stage : stages) quotas.count(stage);
  quotas.share_out();
  std::vector<std::size_t> taken;
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < stages.size(); ++i) (quotas.take(stages[i]) ? taken : left).push_back(i);
  for (const std::size_t i : left) {
    if (quotas.take_spare()) taken.push_back(i);
  }
  std::ranges::sort(taken);
  return taken;
}

TEST_CASE("places are shared out among the stages that want some", "[search][beam_selection]") {
  using places = std::vector<std::size_t>;
  CHECK(live(3, {0, 0, 0, 0}, 1) == places{0, 1, 2});  // one stage has all
  CHECK(live(4, {0, 0, 0, 0, 1, 1, 1}, 2) == places{0, 1, 4, 5});
  CHECK(live(4, {0, 0, 0, 0, 3}, 4) == places{0, 1, 2, 4});  // what stage 3 cannot fill goes to the best
  CHECK(live(3, {0, 0, 0, 2, 2}, 3) == places{0, 3, 4});     // one is left over: for who has got furthest
  CHECK(live(2, {0, 1, 2, 3}, 4) == places{2, 3});           // more stages than places
  CHECK(live(9, {0, 1}, 2) == places{0, 1});
  CHECK(live(3, {}, 2).empty());
}

TEST_CASE("candidates of a stage are counted among themselves", "[search][beam_selection]") {
  stage_quotas quotas;
  quotas.begin(2, 4);
  CHECK(quotas.place(1) == 0);
  quotas.count(1);
  CHECK(quotas.place(1) == 2);
  CHECK(quotas.place(0) == 0);
  CHECK_THROWS_AS(quotas.place(2), assertion_error);
}

}  // namespace beam_selection_test
