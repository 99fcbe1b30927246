// SPDX-License-Identifier: MIT
#include <decant/testing/markov_model.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/testing/chi_square.hpp>
#include <decant/testing/reference_law.hpp>

namespace markov_model_tests {

using namespace decant::testing;
using decant::token_id;
using tokens = std::vector<token_id>;
using row = std::vector<float>;

static_assert(decant::Model<markov_model>);
static_assert(decant::ScoringModel<markov_model>);

row copy(std::span<const float> values) { return {values.begin(), values.end()}; }

/// Two tokens, order 1: contexts 0, 1 and "start".
markov_model two_token_chain() { return {2, 1, {1, 2, 3, 4, 5, 6}}; }

TEST_CASE("the last token chooses the row, and the beginning has its own", "[testing]") {
  markov_model model = two_token_chain();
  CHECK(copy(model.row_after({})) == row{5, 6});
  CHECK(copy(model.evaluate(tokens{0})) == row{1, 2});
  CHECK(copy(model.evaluate(tokens{1})) == row{3, 4});
  CHECK(copy(model.evaluate(tokens{1, 0})) == row{1, 2});
  CHECK(model.size() == 4);
  CHECK(model.vocabulary_size() == 2);
}

TEST_CASE("an order of 0 has one row, whatever came before", "[testing]") {
  markov_model model(3, 0, {7, 8, 9});
  CHECK(copy(model.row_after({})) == row{7, 8, 9});
  CHECK(copy(model.evaluate(tokens{2, 1})) == row{7, 8, 9});
}

TEST_CASE("a context is a number in base vocabulary + 1, missing tokens its largest digit", "[testing]") {
  std::vector<float> table;
  for (int i = 0; i < 27; ++i) table.push_back(static_cast<float>(i));
  const markov_model model(1, 3, std::vector<float>(table.begin(), table.begin() + 8));
  CHECK(model.row_after(tokens{})[0] == 7);         // start start start
  CHECK(model.row_after(tokens{0})[0] == 6);        // start start 0
  CHECK(model.row_after(tokens{0, 0})[0] == 4);     // start 0 0
  CHECK(model.row_after(tokens{0, 0, 0})[0] == 0);  // 0 0 0
  CHECK(model.row_after(tokens{0, 0, 0, 0})[0] == 0);
  CHECK(markov_model::context_count(2, 2) == 9);
  CHECK(markov_model::context_count(5, 0) == 1);
}

TEST_CASE("truncate forgets", "[testing]") {
  markov_model model = two_token_chain();
  static_cast<void>(model.evaluate(tokens{0, 1, 1}));
  model.truncate(1);
  CHECK(model.size() == 1);
  CHECK(copy(model.evaluate(tokens{0})) == row{1, 2});
  model.truncate(0);
  CHECK(model.size() == 0);
}

TEST_CASE("score gives the row after each token, all valid together", "[testing]") {
  markov_model model = random_markov_model(3, 2, 5);
  const tokens text{2, 0, 1, 1, 2, 0};
  static_cast<void>(model.evaluate(std::span(text).first(2)));
  model.score(std::span(text).subspan(2));
  const auto first = model.row(0);
  for (std::size_t i = 0; i < 4; ++i) CHECK(copy(model.row(i)) == copy(model.row_after(std::span(text).first(3 + i))));
  CHECK(first.data() == model.row(0).data());
  CHECK(model.size() == 6);
}

TEST_CASE("misuse of a tabular model is found", "[testing]") {
  CHECK_THROWS_AS(markov_model(0, 1, {}), assertion_error);
  CHECK_THROWS_AS(markov_model(2, 1, {1, 2, 3, 4}), assertion_error);
  markov_model model = two_token_chain();
  CHECK_THROWS_AS(model.evaluate(tokens{2}), assertion_error);
  CHECK_THROWS_AS(model.evaluate(tokens{-1}), assertion_error);
  CHECK(model.size() == 0);
  CHECK_THROWS_AS(model.truncate(1), assertion_error);
  model.score(tokens{0, 1});
  CHECK_THROWS_AS(model.row(2), assertion_error);
  model.truncate(1);
  CHECK_THROWS_AS(model.row(0), assertion_error);
}

TEST_CASE("a random model is a function of its arguments", "[testing]") {
  const markov_model a = random_markov_model(4, 2, 9), b = random_markov_model(4, 2, 9),
                     c = random_markov_model(4, 2, 10);
  const tokens text{3, 1};
  CHECK(copy(a.row_after(text)) == copy(b.row_after(text)));
  CHECK(copy(a.row_after(text)) != copy(c.row_after(text)));
  CHECK(copy(a.row_after(text)) != copy(a.row_after(tokens{1, 3})));
}

TEST_CASE("random rows are a flat Dirichlet", "[testing]") {
  // Of three tokens the first probability then has the density 2 (1 - p): P(p < x) = 1 - (1 - x)^2.
  std::vector<std::size_t> cells(10);
  std::vector<double> expected;
  for (int i = 0; i < 10; ++i)
    expected.push_back((1 - i / 10.0) * (1 - i / 10.0) - (0.9 - i / 10.0) * (0.9 - i / 10.0));
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const double p = reference::exact_law(random_markov_model(3, 0, seed).row_after({}))[0];
    ++cells[std::min<std::size_t>(9, static_cast<std::size_t>(p * 10))];
  }
  CHECK(chi_square(cells, expected).p_value > 1e-4);
}

TEST_CASE("a random model can have impossible tokens, but no empty row", "[testing]") {
  std::size_t zeros = 0, rows = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const markov_model model = random_markov_model(3, 1, seed, 1, 0.5);
    for (token_id last = 0; last < 3; ++last, ++rows) {
      const auto logits = model.row_after(tokens{last});
      const auto gone = static_cast<std::size_t>(std::ranges::count_if(logits, decant::is_gone));
      CHECK(gone < 3);
      zeros += gone;
    }
  }
  CHECK(zeros > rows);
  CHECK(zeros < rows * 2);
  const markov_model all = random_markov_model(2, 0, 1, 1, 1);
  CHECK(std::ranges::count_if(all.row_after({}), decant::is_gone) == 1);
}

}  // namespace markov_model_tests
