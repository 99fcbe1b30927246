// SPDX-License-Identifier: MIT
#include <decant/reference/early_exit_transformer.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/reference/transformer.hpp>

#include "fixtures.hpp"

using namespace decant;
using namespace reference_tests;

namespace early_exit_transformer_tests {

static_assert(LayeredModel<early_exit_transformer> && HiddenRowModel<early_exit_transformer>);

using row_copy = std::vector<float>;

row_copy copy(std::span<const float> numbers) { return {numbers.begin(), numbers.end()}; }

/// The rows that the plain model gives to every prefix of a text.
std::vector<row_copy> rows_of(const checkpoint& weights, std::span<const token_id> tokens) {
  transformer model(weights);
  model.score(tokens);
  std::vector<row_copy> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) rows.push_back(copy(model.row(i)));
  return rows;
}

TEST_CASE("early_exit_transformer: without a peek it is the transformer", "[reference][early_exit_transformer]") {
  const checkpoint weights = random_checkpoint(small_config(), 90);
  const auto tokens = number_source(91).tokens(9, 31);
  const auto expected = rows_of(weights, tokens);
  early_exit_transformer model(weights);
  CHECK(copy(model.evaluate(std::span(tokens).first(4))) == expected[3]);
  CHECK(copy(model.row(0)) == expected[3]);
  model.score(std::span(tokens).subspan(4));
  for (std::size_t i = 4; i < 9; ++i) CHECK(copy(model.row(i - 4)) == expected[i]);
  model.truncate(2);
  CHECK(model.size() == 2);
  model.score(std::span(tokens).subspan(2, 3));
  CHECK(copy(model.row(2)) == expected[4]);
}

TEST_CASE("early_exit_transformer: a peek is the transformer left early", "[reference][early_exit_transformer]") {
  const checkpoint weights = random_checkpoint(small_config(), 92);
  const auto tokens = number_source(93).tokens(7, 31);
  for (std::size_t depth = 1; depth <= 4; ++depth) {
    early_exit_transformer model(weights);
    transformer plain(weights);
    model.evaluate(std::span(tokens).first(3));
    plain.evaluate(std::span(tokens).first(3));
    for (std::size_t i = 3; i < 7; ++i) {
      const auto token = std::span(tokens).subspan(i, 1);
      CHECK(copy(model.peek(token, depth)) == copy(plain.evaluate(token, {.layers = depth})));
    }
    CHECK(model.size() == 3);
    CHECK(model.peeked() == 4);
  }
}

TEST_CASE("early_exit_transformer: going on from a peek is the full pass, bit for bit",
          "[reference][early_exit_transformer]") {
  const checkpoint weights = random_checkpoint(small_config(), 94);
  const auto tokens = number_source(95).tokens(10, 31);
  const auto expected = rows_of(weights, tokens);
  const auto other = number_source(96).tokens(10, 31);
  for (std::size_t depth = 1; depth <= 4; ++depth) {
    // How many of the tokens peeked at are those that come, and how many come in all.
    for (std::size_t common = 0; common <= 4; ++common) {
      for (std::size_t count = 1; count <= 6; ++count) {
        early_exit_transformer model(weights);
        model.evaluate(std::span(tokens).first(3));
        for (std::size_t i = 0; i < 4; ++i) {
          model.peek(std::span(i < common ? tokens : other).subspan(3 + i, 1), depth);
        }
        model.score(std::span(tokens).subspan(3, count));
        for (std::size_t i = 0; i < count; ++i) CHECK(copy(model.row(i)) == expected[3 + i]);
        CHECK(model.size() == 3 + count);
        CHECK(model.peeked() == 0);
        if (count == 6) CHECK(copy(model.evaluate(std::span(tokens).subspan(9))) == expected[9]);
      }
    }
  }
}

TEST_CASE("early_exit_transformer: what forgets a peek", "[reference][early_exit_transformer]") {
  const checkpoint weights = random_checkpoint(small_config(), 97);
  const auto tokens = number_source(98).tokens(6, 31);
  const auto expected = rows_of(weights, tokens);
  early_exit_transformer model(weights);
  model.evaluate(std::span(tokens).first(3));
  model.peek(std::span(tokens).subspan(3, 2), 2);
  model.truncate(3);
  CHECK(model.peeked() == 2);
  model.peek(std::span(tokens).subspan(3, 1), 1);
  CHECK(model.peeked() == 1);
  model.truncate(2);
  CHECK(model.peeked() == 0);
  model.score(std::span(tokens).subspan(2));
  for (std::size_t i = 2; i < 6; ++i) CHECK(copy(model.row(i - 2)) == expected[i]);
}

TEST_CASE("early_exit_transformer: misuse", "[reference][early_exit_transformer]") {
  early_exit_transformer model(random_checkpoint(small_config(), 99));
  const std::vector<token_id> tokens{1, 2}, outside{31};
  CHECK_THROWS_AS(model.peek(tokens, 0), assertion_error);
  CHECK_THROWS_AS(model.peek(tokens, 5), assertion_error);
  CHECK_THROWS_AS(model.peek({}, 1), assertion_error);
  CHECK_THROWS_AS(model.score(outside), assertion_error);
  CHECK_THROWS_AS(model.truncate(1), assertion_error);
  CHECK_THROWS_AS(model.row(0), assertion_error);
  const std::vector<token_id> many(64, 3);
  model.peek(tokens, 1);
  CHECK_THROWS_AS(model.peek(std::span(many).first(63), 1), assertion_error);
  CHECK_NOTHROW(model.score(many));
}

}  // namespace early_exit_transformer_tests
