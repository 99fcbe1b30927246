// SPDX-License-Identifier: MIT
#include <decant/search/owned_sequence.hpp>

#include "support/catch.hpp"

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <decant/testing/hidden_state_model.hpp>

namespace owned_sequence_test {

using decant::owned_sequence;
using decant::token_id;

auto toy() {
  const auto nothing = [](std::span<const token_id>) { return std::vector<float>{0, 0}; };
  return decant::testing::hidden_state_model(2, nothing, nothing);
}

using model = decltype(toy());
static_assert(!std::is_copy_constructible_v<owned_sequence<model>>);
static_assert(std::is_nothrow_move_constructible_v<owned_sequence<model>>);
static_assert(std::is_nothrow_move_assignable_v<owned_sequence<model>>);

TEST_CASE("a sequence is dropped with its owner, once", "[search]") {
  model m = toy();
  {
    owned_sequence a(m);
    const std::vector<token_id> tokens{1, 0};
    m.evaluate(std::vector{a.with(tokens)});
    const auto b = a.fork();
    CHECK(b.number() != a.number());
    CHECK(m.size(b.number()) == 2);
    owned_sequence moved = std::move(a);
    CHECK(moved);
    owned_sequence<model> none;
    CHECK(!none);
    none = std::move(moved);
    CHECK(none);
    CHECK(m.sequences() == 2);
    none = owned_sequence(m);  // what it held before goes with the temporary
    CHECK(m.sequences() == 2);
  }
  CHECK(m.sequences() == 0);
}

TEST_CASE("owners in a vector: dropped where they are erased", "[search]") {
  model m = toy();
  std::vector<owned_sequence<model>> all;
  for (int i = 0; i < 5; ++i) all.emplace_back(m);
  std::swap(all[0], all[3]);
  const auto kept = all[0].number();
  all.erase(all.begin() + 1, all.end());
  CHECK(m.sequences() == 1);
  CHECK(m.size(kept) == 0);
  all.clear();
  CHECK(m.sequences() == 0);
}

}  // namespace owned_sequence_test
