// SPDX-License-Identifier: MIT
#include <decant/search/any_constraint.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "search/constraints.hpp"

namespace any_constraint_test {

using namespace search_test;
using decant::any_constraint;

static_assert(decant::TokenConstraint<no_doubles>);
static_assert(!decant::ProgressConstraint<no_doubles>);
static_assert(decant::ProgressConstraint<any_constraint>);
static_assert(!decant::TokenConstraint<int>);

std::uint64_t mask_of(any_constraint& constraint) {
  std::uint64_t mask = 0;
  constraint.fill({&mask, 1});
  return mask;
}

TEST_CASE("no constraint allows everything and asks for nothing", "[search][any_constraint]") {
  any_constraint none;
  CHECK_FALSE(none);
  CHECK(none.finished());
  CHECK((none.progress() == 0 && none.goal() == 0 && none.progress_after(3) == 0));
  std::vector<token_id> tokens;
  none.advancing(tokens);
  CHECK(tokens.empty());
  CHECK_THROWS_AS(none.accept(1), assertion_error);
  CHECK_THROWS_AS(mask_of(none), assertion_error);
}

TEST_CASE("a constraint of any type is spoken to, and a copy goes its own way", "[search][any_constraint]") {
  any_constraint first = no_doubles{.vocabulary = 3};
  CHECK(first);
  CHECK(mask_of(first) == 0b111);
  CHECK_FALSE(first.finished());
  first.accept(1);
  any_constraint second = first;
  second.accept(2);
  CHECK(mask_of(first) == 0b101);
  CHECK(mask_of(second) == 0b011);
  CHECK(second.finished());
  second.rollback(2);
  CHECK(mask_of(second) == 0b111);
  CHECK(mask_of(first) == 0b101);
  CHECK((first.progress() == 0 && first.goal() == 0));
}

TEST_CASE("assigning takes the value, of one type or another, or none", "[search][any_constraint]") {
  any_constraint a = no_doubles{.vocabulary = 3}, b = no_doubles{.vocabulary = 3}, c = tokens_in_order{{7, 8}}, none;
  a.accept(0);
  b = a;
  CHECK(mask_of(b) == 0b110);
  b.accept(1);
  CHECK(mask_of(a) == 0b110);
  b = c;
  CHECK(b.goal() == 2);
  b.accept(7);
  CHECK((b.progress() == 1 && c.progress() == 0));
  CHECK(b.progress_after(8) == 2);
  std::vector<token_id> tokens;
  b.advancing(tokens);
  CHECK(tokens == std::vector<token_id>{8});
  any_constraint& same = b;
  b = same;
  CHECK(b.progress() == 1);
  b = none;
  CHECK_FALSE(b);
  b = c;
  CHECK(b.goal() == 2);
}

}  // namespace any_constraint_test
