// SPDX-License-Identifier: MIT
#include <decant/speculative/vocabulary_map.hpp>

#include <string>
#include <vector>

#include "support/catch.hpp"

namespace vocabulary_map_tests {

using decant::no_token;
using decant::vocabulary_map;
using names = std::vector<std::string>;

TEST_CASE("tokens with the same bytes are partners", "[speculative][vocabulary_map]") {
  const vocabulary_map map(names{"a", "b", "ab", ""}, names{"", "ba", "b", "a"});
  CHECK(map.to_target(0) == 3);
  CHECK(map.to_target(1) == 2);
  CHECK(map.to_target(2) == no_token);
  CHECK(map.to_target(3) == no_token);  // nothing stands for nothing
  CHECK(map.to_draft(3) == 0);
  CHECK(map.to_draft(2) == 1);
  CHECK(map.to_draft(1) == no_token);
  CHECK(map.to_draft(0) == no_token);
  CHECK(map.size() == 2);
  CHECK(map.draft_size() == 4);
  CHECK(map.target_size() == 4);
}

TEST_CASE("of tokens with the same bytes the lowest is the partner", "[speculative][vocabulary_map]") {
  const vocabulary_map map(names{"x", "a", "a"}, names{"b", "a", "a"});
  CHECK(map.to_target(1) == 1);
  CHECK(map.to_target(2) == 1);
  CHECK(map.to_draft(1) == 1);
  CHECK(map.to_draft(2) == no_token);
  CHECK(map.size() == 1);
}

TEST_CASE("vocabularies that share nothing are an error", "[speculative][vocabulary_map]") {
  CHECK_THROWS_WITH(vocabulary_map(names{"a"}, names{"b"}), "vocabulary_map: common tokens = 0 must be at least one");
  CHECK_THROWS_AS(vocabulary_map(names{""}, names{""}), decant::parameter_error);
  CHECK(!vocabulary_map::make(names{"a"}, names{"b"}));
  CHECK(vocabulary_map::make(names{"a"}, names{"a"}));
  const vocabulary_map map(names{"a"}, names{"a", "b"});
  CHECK_THROWS_AS(map.to_target(1), assertion_error);
  CHECK_THROWS_AS(map.to_draft(-1), assertion_error);
}

}  // namespace vocabulary_map_tests
