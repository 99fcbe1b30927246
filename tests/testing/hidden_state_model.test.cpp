// SPDX-License-Identifier: MIT
#include <decant/testing/hidden_state_model.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace hidden_state_model_test {

using decant::batch_item;
using decant::token_id;
using ids = std::vector<token_id>;
using numbers = std::vector<float>;

/// Rows hold the number of tokens, states the last token.
auto counting() {
  return decant::testing::hidden_state_model(
      2, [](std::span<const token_id> tokens) { return numbers(2, static_cast<float>(tokens.size())); },
      [](std::span<const token_id> tokens) { return numbers{static_cast<float>(tokens.back())}; });
}

static_assert(decant::HiddenStateModel<decltype(counting())>);

numbers copy(std::span<const float> row) { return {row.begin(), row.end()}; }

TEST_CASE("hidden_state_model: rows follow the last token of an item, states every one", "[testing]") {
  auto model = counting();
  CHECK(model.vocabulary_size() == 2);
  const std::size_t a = model.start();
  const ids prompt{7, 8, 9}, one{4}, other{5, 6};
  model.evaluate(std::vector<batch_item>{{a, prompt}});
  CHECK(copy(model.row(0)) == numbers{3, 3});
  CHECK(copy(model.hidden(0, 1)) == numbers{8});
  const std::size_t b = model.fork(a);
  model.evaluate(std::vector<batch_item>{{b, other}, {a, one}});
  CHECK(copy(model.row(0)) == numbers{5, 5});
  CHECK(copy(model.row(1)) == numbers{4, 4});
  CHECK(copy(model.hidden(0, 1)) == numbers{6});
  CHECK(copy(model.hidden(1, 0)) == numbers{4});
  model.truncate(b, 2);
  CHECK(model.size(b) == 2);
  CHECK(model.size(a) == 4);
  CHECK(model.passes() == 2);
  CHECK(model.evaluated() == 6);
  model.drop(a);
  CHECK(model.sequences() == 1);
}

TEST_CASE("hidden_state_model: misuse is caught", "[testing]") {
  auto model = counting();
  const std::size_t a = model.start();
  const ids one{1};
  CHECK_THROWS_AS(model.evaluate(std::vector<batch_item>{{a, {}}}), assertion_error);
  CHECK_THROWS_AS(model.evaluate(std::vector<batch_item>{{a, one}, {a, one}}), assertion_error);
  CHECK_THROWS_AS(model.evaluate(std::vector<batch_item>{{1, one}}), assertion_error);
  CHECK_THROWS_AS(model.truncate(a, 9), assertion_error);
  model.evaluate(std::vector<batch_item>{{a, one}});
  CHECK_THROWS_AS(model.row(1), assertion_error);
  CHECK_THROWS_AS(model.hidden(0, 1), assertion_error);
  model.drop(a);
  CHECK_THROWS_AS(model.fork(a), assertion_error);
}

}  // namespace hidden_state_model_test
