// SPDX-License-Identifier: MIT
#include <decant/speculative/jacobi.hpp>

#include <cstddef>
#include <span>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/generate/generate.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/speculative/speculate.hpp>
#include <decant/testing/markov_model.hpp>

#include "speculative/proposals.hpp"
#include "support/catch.hpp"

namespace jacobi_tests {

using namespace decant;
using drafter_tests::chain_after;
using drafter_tests::ids;

static_assert(DraftSource<jacobi>);

/// Says that after a token comes the next number.
auto counting_model() {
  return stateless([](std::span<const token_id> tokens) {
    std::vector<float> row(10, 0.0F);
    row[static_cast<std::size_t>(tokens.back() + 1) % 10] = 5;
    return row;
  });
}

TEST_CASE("the guesses of a round are what the target said in the one before", "[speculative][jacobi]") {
  auto model = counting_model();
  jacobi drafter(4);
  const ids text{3, 3};
  CHECK(chain_after(drafter, text) == ids{3, 3, 3, 3});  // anything will do
  (void)model.evaluate(ids{3});
  model.score(ids{3, 3, 3, 3, 3});  // the last token, and the draft
  drafter.observe(model, std::vector<std::size_t>{0});
  // 4 is decided; the places after it, with nothing but threes before them, would hold 4.
  CHECK(chain_after(drafter, {3, 3, 4}) == ids{4, 4, 4, 4});
  model.truncate(2);
  model.score(ids{4, 4, 4, 4, 4});
  drafter.observe(model, std::vector<std::size_t>{0});
  CHECK(chain_after(drafter, {3, 3, 4, 5}) == ids{5, 5, 5, 5});
  // What was accepted leaves the window.
  jacobi other(3);
  CHECK(chain_after(other, {7, 8, 9}) == ids{7, 8, 9});
  model.truncate(0);
  (void)model.evaluate(ids{7, 8});
  model.score(ids{9, 7, 8, 9});
  other.observe(model, std::vector<std::size_t>{0, 1, 2});
  CHECK(chain_after(other, {7, 8, 9, 7, 8, 9}) == ids{0, 8, 9});
}

TEST_CASE("Jacobi decoding is greedy decoding, in no more passes than tokens", "[speculative][jacobi]") {
  constexpr std::size_t length = 12;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto table = testing::random_markov_model(6, 2, seed);
    stateless model([&](std::span<const token_id> tokens) { return table.row_after(tokens); }, 6);
    const ids prompt{static_cast<token_id>(seed % 6)};
    const auto decoder = temperature(1) | greedy{};
    const auto expected = generate(model, prompt, decoder, {.max_new_tokens = length}).tokens;
    for (const std::size_t window : {1U, 5U, 12U}) {
      jacobi drafter(window);
      const speculation got = speculate(model, prompt, drafter, decoder, {.max_new_tokens = length},
                                        {.length = draft_length::fixed(window)});
      CHECK(got.tokens == expected);
      CHECK(got.statistics.rounds <= length);
    }
  }
}

TEST_CASE("limits, an empty text, a new generation", "[speculative][jacobi]") {
  jacobi drafter(4);
  CHECK(chain_after(drafter, {}).empty());
  CHECK(chain_after(drafter, {1, 2}, 2) == ids{1, 2});
  CHECK(chain_after(drafter, {1, 2}, 9) == ids{1, 2, 1, 2});
  drafter.reset();
  CHECK(chain_after(drafter, {5}) == ids{5, 5, 5, 5});
  CHECK_THROWS_WITH(jacobi(0), "jacobi: window = 0 must be at least 1");
  CHECK(jacobi().describe() == "jacobi(8)");
}

}  // namespace jacobi_tests
