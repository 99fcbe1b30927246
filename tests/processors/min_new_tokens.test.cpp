// SPDX-License-Identifier: MIT
#include <decant/processors/min_new_tokens.hpp>

#include "processors/lists.hpp"

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/testing/markov_model.hpp>

namespace min_new_tokens_tests {

using namespace lists;
using decant::min_new_tokens;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

TEST_CASE("the cases of the golden file of min_new_tokens", "[processors]") {
  check_becomes(min_new_tokens(2, {7}), g8, {{1, 2, 3}, 2}, without(g8, {7}));
  check_leaves(min_new_tokens(2, {7}), g8, {{1, 2, 3, 4}, 2});
  check_becomes(min_new_tokens(1, {7}), g8, {{1, 2}, 2}, without(g8, {7}));
  check_becomes(min_new_tokens(5, {6, 7}), g8, {{1}, 1}, without(g8, {6, 7}));
  check_becomes(min_new_tokens(5, {1, 0}), inf8, {{1}, 1}, without(inf8, {0}));
  check_leaves(min_new_tokens(4, {15}), g16, {{1, 1, 1, 1, 1, 1, 1}, 3});
  check_becomes(min_new_tokens(9, {5}), single8, {{1}, 1}, row(8, gone));
  check_becomes(min_new_tokens(2, {7}), g8, {{1, 2, 3, 4, 5}, 4}, without(g8, {7}));
}

TEST_CASE("min_new_tokens: the prompt does not count, however long it is", "[processors]") {
  for (const std::size_t prompt : {0U, 1U, 1000U}) {
    check_becomes(min_new_tokens(1, {0}), flat8, {tokens(prompt, 1), prompt}, without(flat8, {0}));
    check_leaves(min_new_tokens(1, {0}), flat8, {tokens(prompt + 1, 1), prompt});
  }
}

TEST_CASE("tokens are counted, not steps: several accepted at once count each (SGLang PR #33643)", "[processors]") {
  const min_new_tokens policy(4, {7});
  check_becomes(policy, g8, {{1, 2, 3, 3}, 1}, without(g8, {7}));
  check_leaves(policy, g8, {{1, 2, 3, 3, 4}, 1});
}

TEST_CASE("the end is banned, not passed over (llama.cpp#4000)", "[processors]") {
  std::size_t shortest = 1000;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    auto model = decant::testing::random_markov_model(5, 1, seed, 1);
    const tokens prompt{0, 1, 2, 0};
    decant::generate_options options;
    options.max_new_tokens = 100;
    options.stop_tokens = {2, 4};
    options.seed = seed;
    const auto result = decant::generate(model, prompt, min_new_tokens(3, {2, 4}) | decant::multinomial{}, options);
    CHECK(result.tokens.size() >= 4);
    for (std::size_t i = 0; i < 3; ++i) CHECK((result.tokens[i] != 2 && result.tokens[i] != 4));
    shortest = std::min(shortest, result.tokens.size());
  }
  CHECK(shortest == 4);
}

TEST_CASE("a count of 0 and a list without end tokens are off", "[processors]") {
  CHECK(min_new_tokens(0, {0}).off());
  CHECK(min_new_tokens(most, {}).off());
  CHECK(!min_new_tokens(1, {0}).off());
  check_identity(min_new_tokens(0, {0}));
  check_identity(min_new_tokens(most, {}));
}

TEST_CASE("min_new_tokens refuses a negative count", "[processors]") {
  check_refused<min_new_tokens>("min_new_tokens.count", "min_new_tokens: count = -1 must be >= 0", std::int64_t{-1},
                                tokens{0});
  check_made<min_new_tokens>("min_new_tokens(0)", std::int64_t{0}, tokens{0});
  check_made<min_new_tokens>("min_new_tokens(4)", std::int64_t{4}, tokens{0, 1});
  CHECK(min_new_tokens::make(most, tokens{0}).has_value());
}

TEST_CASE("min_new_tokens with an end token outside the vocabulary is misuse when it would be banned", "[processors]") {
  check_misuse(min_new_tokens(1, {8}), g8);
  check_misuse(min_new_tokens(1, {-1}), g8);
}

TEST_CASE("min_new_tokens on all sizes and on bad rows", "[processors]") {
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{6}, std::int64_t{7}, most}) {
    check_sizes(min_new_tokens(count, {0}), true);
    check_bad_rows(min_new_tokens(count, {0}), true);
  }
}

TEST_CASE("min_new_tokens passes check_processor", "[processors]") {
  check_report_with_ids(min_new_tokens(100, {0, 7}), 8);
  check_report_with_ids(min_new_tokens(2, {0, 7}), 8);
  check_report_of(min_new_tokens(0, {0}));
}

}  // namespace min_new_tokens_tests
