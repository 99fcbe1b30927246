// SPDX-License-Identifier: MIT
#include <decant/core/context.hpp>

#include "support/catch.hpp"

#include <vector>

namespace context_test {

using decant::context_after;
using decant::draw_stream;
using decant::token_id;

TEST_CASE("a context tells output from prompt and sets the draw position", "[core][context]") {
  const std::vector<token_id> tokens{5, 6, 7, 8};
  const auto context = context_after(tokens, 3, draw_stream(1, 2));
  CHECK(context.tokens.size() == 4);
  CHECK(context.prompt_size == 3);
  REQUIRE(context.output().size() == 1);
  CHECK(context.output()[0] == 8);
  CHECK(context.draws.position() == 4);
  CHECK(context.draws.key(decant::purpose::sample) == draw_stream(1, 2).at(4).key(decant::purpose::sample));
  CHECK(context_after(tokens, 4, draw_stream(1)).output().empty());
  CHECK(context_after(tokens, 0, draw_stream(1)).output().size() == 4);
  CHECK(context_after({}, 0, draw_stream(1)).draws.position() == 0);
}

TEST_CASE("a prompt longer than all tokens is misuse", "[core][context]") {
  const std::vector<token_id> tokens{5, 6};
  CHECK_THROWS_AS(context_after(tokens, 3, draw_stream(1)), assertion_error);
}

}  // namespace context_test
