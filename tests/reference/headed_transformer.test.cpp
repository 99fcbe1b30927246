// SPDX-License-Identifier: MIT
#include <decant/reference/headed_transformer.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>

#include "fixtures.hpp"

using namespace decant;
using namespace reference_tests;

namespace headed_transformer_tests {

static_assert(HeadedModel<headed_transformer> && HiddenRowModel<headed_transformer>);

std::vector<float> copy(std::span<const float> numbers) { return {numbers.begin(), numbers.end()}; }

row_matrix random_block(std::uint32_t seed, Eigen::Index dim) {
  row_matrix block;
  number_source(seed).fill(block, dim, dim, 0.5F);
  return block;
}

TEST_CASE("headed_transformer: a head's row is the classifier's of the head's state",
          "[reference][headed_transformer]") {
  const transformer plain(random_checkpoint(tiny_config(false), 80));
  const token_heads heads({{random_block(81, 18)}, {random_block(82, 18)}});
  headed_transformer model(plain, heads);
  const std::vector<token_id> tokens{3, 9, 27, 0};
  model.score(tokens);
  transformer other = plain;
  other.score(tokens);
  CHECK(model.head_count() == 2);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    CHECK(copy(model.row(i)) == copy(other.row(i)));
    for (std::size_t k = 1; k <= 2; ++k) {
      std::vector<float> state(18);
      heads.apply(k, other.hidden(i), state);
      CHECK(copy(model.head_row(k, i)) == other.classify(state));
    }
  }
}

TEST_CASE("headed_transformer: heads of zeros say what the model says", "[reference][headed_transformer]") {
  headed_transformer model(transformer(random_checkpoint(tiny_config(true), 83)),
                           token_heads({{row_matrix::Zero(18, 18)}}));
  const std::vector<token_id> tokens{5, 6};
  const auto row = copy(model.evaluate(tokens));
  CHECK(copy(model.head_row(1, 1)) == row);
}

TEST_CASE("headed_transformer: heads of another width", "[reference][headed_transformer]") {
  transformer model(random_checkpoint(tiny_config(true), 84));
  CHECK_THROWS_AS(headed_transformer(std::move(model), token_heads({{row_matrix::Zero(4, 4)}})), assertion_error);
}

}  // namespace headed_transformer_tests
