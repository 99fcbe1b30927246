// SPDX-License-Identifier: MIT
#include <decant/generate/stateless.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace stateless_test {

using decant::stateless;
using decant::token_id;
using ids = std::vector<token_id>;

/// {number of tokens, their sum, the last}.
const auto summary = [](std::span<const token_id> tokens) {
  float sum = 0;
  for (const token_id token : tokens) sum += static_cast<float>(token);
  return std::vector<float>{static_cast<float>(tokens.size()), sum, static_cast<float>(tokens.back())};
};

template <class F>
constexpr bool is_model =
    decant::Model<stateless<F>> && decant::ScoringModel<stateless<F>> && decant::BatchModel<stateless<F>>;
static_assert(is_model<decltype(summary)>);

std::vector<float> copy(std::span<const float> row) { return {row.begin(), row.end()}; }

TEST_CASE("any function of the tokens is a model", "[generate][stateless]") {
  stateless model(summary);
  CHECK(model.size() == 0);
  CHECK(model.vocabulary_size() == 0);
  CHECK(copy(model.evaluate(ids{3, 4})) == std::vector<float>{2, 7, 4});
  CHECK(model.vocabulary_size() == 3);
  CHECK(copy(model.evaluate(ids{5})) == std::vector<float>{3, 12, 5});
  CHECK(model.size() == 3);
  model.truncate(1);
  CHECK(model.size() == 1);
  CHECK(copy(model.evaluate(ids{1})) == std::vector<float>{2, 4, 1});
  model.truncate(0);
  CHECK(copy(model.evaluate(ids{9})) == std::vector<float>{1, 9, 9});
}

TEST_CASE("scoring gives a row after each token, all valid together", "[generate][stateless]") {
  stateless model(summary, 3);
  CHECK(model.vocabulary_size() == 3);
  (void)model.evaluate(ids{1});
  model.score(ids{2, 3, 4});
  const auto first = model.row(0), last = model.row(2);
  CHECK(copy(first) == std::vector<float>{2, 3, 2});
  CHECK(copy(model.row(1)) == std::vector<float>{3, 6, 3});
  CHECK(copy(last) == std::vector<float>{4, 10, 4});
  CHECK_THROWS_AS(model.row(3), assertion_error);
  model.truncate(2);
  model.score(ids{7});
  CHECK(copy(model.row(0)) == std::vector<float>{3, 10, 7});
  CHECK(copy(model.evaluate(ids{1})) == std::vector<float>{4, 11, 1});
}

TEST_CASE("many sequences advance in one pass", "[generate][stateless]") {
  stateless model(summary);
  const std::size_t a = model.start();
  const ids two{3, 4}, one{5}, other{1};
  model.evaluate(std::vector<decant::batch_item>{{a, two}});
  CHECK(copy(model.row(0)) == std::vector<float>{2, 7, 4});
  const std::size_t b = model.fork(a), c = model.start();
  CHECK((a != b && b != c && a != c));
  CHECK((model.size(a) == 2 && model.size(b) == 2 && model.size(c) == 0));
  model.evaluate(std::vector<decant::batch_item>{{b, one}, {c, two}, {a, other}});
  CHECK(copy(model.row(0)) == std::vector<float>{3, 12, 5});
  CHECK(copy(model.row(1)) == std::vector<float>{2, 7, 4});
  CHECK(copy(model.row(2)) == std::vector<float>{3, 8, 1});
  CHECK(model.size() == 0);  // the text of Model is another
  model.truncate(b, 1);
  model.evaluate(std::vector<decant::batch_item>{{b, one}});
  CHECK(copy(model.row(0)) == std::vector<float>{2, 8, 5});
  CHECK_THROWS_AS(model.row(1), assertion_error);
  model.drop(b);
  CHECK(model.start() == b);  // a number given again names an empty sequence
  CHECK(model.size(b) == 0);
}

TEST_CASE("misuse of sequences is caught", "[generate][stateless]") {
  stateless model(summary);
  const ids one{1};
  using items = std::vector<decant::batch_item>;
  CHECK_THROWS_AS(model.evaluate(items{{0, one}}), assertion_error);
  const std::size_t a = model.start();
  CHECK_THROWS_AS(model.evaluate(items{{a, ids{}}}), assertion_error);
  CHECK_THROWS_AS(model.evaluate(items{{a, one}, {a, one}}), assertion_error);
  CHECK_THROWS_AS(model.truncate(a, 5), assertion_error);
  model.drop(a);
  CHECK_THROWS_AS(model.drop(a), assertion_error);
  CHECK_THROWS_AS(model.fork(a), assertion_error);
  CHECK_THROWS_AS(model.size(a), assertion_error);
}

TEST_CASE("misuse of a model is caught", "[generate][stateless]") {
  stateless model(summary);
  CHECK_THROWS_AS(model.evaluate(ids{}), assertion_error);
  CHECK_THROWS_AS(model.truncate(1), assertion_error);
  CHECK_THROWS_AS(model.row(0), assertion_error);
}

TEST_CASE("the function may return any range of numbers, and a reference", "[generate][stateless]") {
  stateless array([](std::span<const token_id>) { return std::array<float, 2>{1, 2}; });
  CHECK(copy(array.evaluate(ids{0})) == std::vector<float>{1, 2});
  static const std::vector<float> kept{4, 5, 6};
  stateless reference([](std::span<const token_id>) -> const std::vector<float>& { return kept; });
  CHECK(copy(reference.evaluate(ids{0})) == kept);
  stateless counting(
      [calls = 0](std::span<const token_id>) mutable { return std::vector<float>{static_cast<float>(++calls)}; });
  (void)counting.evaluate(ids{1, 2, 3});
  CHECK(copy(counting.evaluate(ids{1})) == std::vector<float>{2});  // one call an evaluation
}

}  // namespace stateless_test
