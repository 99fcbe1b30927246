// SPDX-License-Identifier: MIT
#include <decant/search/beam_lanes.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "search/constraints.hpp"

namespace beam_lanes_test {

using decant::beam_lanes;
using lanes = std::vector<std::size_t>;

std::vector<std::pair<std::size_t, std::size_t>> forks(const beam_lanes& all) {
  std::vector<std::pair<std::size_t, std::size_t>> list;
  for (const auto& [from, to] : all.forks()) list.emplace_back(from, to);
  return list;
}

lanes list(std::span<const std::size_t> numbers) { return {numbers.begin(), numbers.end()}; }

TEST_CASE("a lane with one continuation is handed on, others are forked or dropped", "[search][beam_lanes]") {
  beam_lanes all;
  const std::size_t root = all.start();
  CHECK(list(all.in_use()) == lanes{root});
  all[root].tokens = {1, 2};
  all[root].last = 2;
  all[root].attention = {0.5};
  all[root].constraint = search_test::no_doubles{.vocabulary = 3};

  lanes children{root, root, root};
  all.hand_on(children);
  CHECK(children[0] == root);
  CHECK(list(all.in_use()) == children);
  CHECK(all.drops().empty());
  CHECK(forks(all) == std::vector<std::pair<std::size_t, std::size_t>>{{root, children[1]}, {root, children[2]}});
  CHECK(all[children[2]].tokens == std::vector<decant::token_id>{1, 2});
  CHECK(all[children[2]].attention == std::vector<double>{0.5});
  CHECK(all[children[2]].constraint);
  all[children[1]].tokens.push_back(3);
  CHECK(all[root].tokens.size() == 2);

  // The second goes on twice, the third once, the first not at all: its number serves the fork.
  const std::size_t second = children[1], third = children[2];
  lanes next{third, second, second};
  all.hand_on(next);
  CHECK(list(all.drops()) == lanes{root});
  CHECK(forks(all) == std::vector<std::pair<std::size_t, std::size_t>>{{second, root}});
  CHECK(next == lanes{third, second, root});
  CHECK(all[root].tokens == std::vector<decant::token_id>{1, 2, 3});
}

TEST_CASE("with no continuation every lane is dropped, once", "[search][beam_lanes]") {
  beam_lanes all;
  lanes two{all.start()};
  two.push_back(two[0]);
  all.hand_on(two);
  lanes none;
  all.hand_on(none);
  auto dropped = list(all.drops());
  std::ranges::sort(dropped);
  std::ranges::sort(two);
  CHECK(dropped == two);
  CHECK(all.in_use().empty());
  all.hand_on(none);
  CHECK(all.drops().empty());
}

TEST_CASE("a lane that is not there is misuse", "[search][beam_lanes]") {
  beam_lanes all;
  CHECK_THROWS_AS(all[0], assertion_error);
}

}  // namespace beam_lanes_test
