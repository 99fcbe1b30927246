// SPDX-License-Identifier: MIT
#include <decant/processors/token_list.hpp>

#include "processors/lists.hpp"

namespace token_list_tests {

using namespace lists;
using decant::id_range;

bool inside(const tokens& ids, std::size_t vocabulary) {
  const row logits(vocabulary, 0.0F);
  candidates c;
  c.bind(std::span<const float>(logits));
  id_range range;
  range.include(ids);
  try {
    range.check(c);
  } catch (const assertion_error&) {
    return false;
  }
  return true;
}

TEST_CASE("an id outside the vocabulary is found by the range of ids", "[processors]") {
  CHECK(inside({}, 1));
  CHECK(inside({0}, 1));
  CHECK(inside({3, 0, 7, 2}, 8));
  CHECK(!inside({3, 0, 8, 2}, 8));
  CHECK(!inside({3, -1, 7}, 8));
  CHECK(!inside({std::numeric_limits<token_id>::max()}, 8));
  CHECK(!inside({std::numeric_limits<token_id>::min()}, 8));
}

TEST_CASE("a description counts a list and names options", "[processors]") {
  CHECK(decant::detail::counted_text("bans", 0) == "bans(0 tokens)");
  CHECK(decant::detail::counted_text("bans", 1) == "bans(1 token)");
  CHECK(decant::detail::counted_text("bans", 40, "sequence") == "bans(40 sequences)");
  CHECK(decant::detail::option_text("bans(1)", false, "revive = true") == "bans(1)");
  CHECK(decant::detail::option_text("bans(1)", true, "revive = true") == "bans(1, revive = true)");
  CHECK(decant::detail::option_text("bans", true, "revive = true") == "bans(revive = true)");
}

}  // namespace token_list_tests
