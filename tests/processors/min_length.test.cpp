// SPDX-License-Identifier: MIT
#include <decant/processors/min_length.hpp>

#include "processors/lists.hpp"

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/processors/min_new_tokens.hpp>
#include <decant/testing/markov_model.hpp>

namespace min_length_tests {

using namespace lists;
using decant::min_length;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

TEST_CASE("the cases of the golden file of min_length", "[processors]") {
  check_becomes(min_length(3, {7}), g8, {{1, 2}}, without(g8, {7}));
  check_leaves(min_length(3, {7}), g8, {{1, 2, 3}});
  check_leaves(min_length(3, {7}), g8, {{1, 2, 3, 4}});
  check_becomes(min_length(5, {6, 7}), g8, {{1}}, without(g8, {6, 7}));
  check_becomes(min_length(5, {1, 0}), inf8, {{1}}, without(inf8, {0}));
  check_becomes(min_length(2, {0}), flat8, {{1}}, without(flat8, {0}));
  check_becomes(min_length(4, {15}), g16, {{1, 2, 3}}, without(g16, {15}));
  check_becomes(min_length(100, {0, 3, 11}), neg12, {{1}}, without(neg12, {0, 3, 11}));
  check_leaves(min_length(1, {7}), g8, {{1}});
}

TEST_CASE("min_length: prompt and output count together", "[processors]") {
  for (std::size_t prompt = 0; prompt <= 3; ++prompt) {
    check_becomes(min_length(4, {7}), g8, {{1, 2, 3}, prompt}, without(g8, {7}));
    check_leaves(min_length(3, {7}), g8, {{1, 2, 3}, prompt});
  }
}

TEST_CASE("all end tokens are banned (ScaleLLM PR305, transformers PR20727, llama.cpp#4000)", "[processors]") {
  check_becomes(min_length(1, {2, 5, 0, 5}), g8, {}, without(g8, {0, 2, 5}));
}

TEST_CASE("banning the only tokens left empties the row", "[processors]") {
  check_becomes(min_length(2, {5}), single8, {{0}}, row(8, gone));
}

TEST_CASE("without a prompt min_length is min_new_tokens", "[processors]") {
  for (std::int64_t length = 0; length <= 5; ++length) {
    for (std::size_t written = 0; written <= 5; ++written) {
      const past before{tokens(written, 1), 0};
      CHECK(same_bits(logits_after(min_length(length, {2, 7}), g8, before),
                      logits_after(decant::min_new_tokens(length, {2, 7}), g8, before)));
    }
  }
}

TEST_CASE("no generated text is shorter than min_length", "[processors]") {
  std::size_t shortest = 1000;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    auto model = decant::testing::random_markov_model(5, 1, seed, 1);
    const tokens prompt{0, 1};
    decant::generate_options options;
    options.max_new_tokens = 100;
    options.stop_tokens = {2, 4};
    options.seed = seed;
    const auto result = decant::generate(model, prompt, min_length(6, {2, 4}) | decant::multinomial{}, options);
    // Four tokens of output make six with the prompt; then the end may come.
    CHECK(result.tokens.size() >= 5);
    for (std::size_t i = 0; i < 4; ++i) CHECK((result.tokens[i] != 2 && result.tokens[i] != 4));
    shortest = std::min(shortest, result.tokens.size());
  }
  CHECK(shortest == 5);
}

TEST_CASE("a length of 0 and a list without end tokens are off", "[processors]") {
  CHECK(min_length(0, {0}).off());
  CHECK(min_length(most, {}).off());
  CHECK(!min_length(1, {0}).off());
  check_identity(min_length(0, {0}));
  check_identity(min_length(most, {}));
}

TEST_CASE("min_length refuses a negative length", "[processors]") {
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{-1000}}) {
    check_refused<min_length>("min_length.length", "min_length: length = " + std::to_string(bad) + " must be >= 0", bad,
                              tokens{0});
  }
  check_made<min_length>("min_length(0)", std::int64_t{0}, tokens{0});
  check_made<min_length>("min_length(32)", std::int64_t{32}, tokens{0, 1});
  CHECK(min_length::make(most, tokens{0}).has_value());
}

TEST_CASE("min_length with an end token outside the vocabulary is misuse when it would be banned", "[processors]") {
  check_misuse(min_length(1, {8}), g8);
  check_misuse(min_length(most, {-1}), g8);
  check_leaves(min_length(1, {8}), g8, {{1}});
}

TEST_CASE("min_length on all sizes and on bad rows", "[processors]") {
  for (const std::int64_t length : {std::int64_t{0}, std::int64_t{9}, std::int64_t{10}, most}) {
    check_sizes(min_length(length, {0}), true);
    check_bad_rows(min_length(length, {0}), true);
  }
}

TEST_CASE("min_length passes check_processor", "[processors]") {
  check_report_with_ids(min_length(100, {0, 7}), 8);
  check_report_with_ids(min_length(2, {0, 7}), 8);
  check_report_of(min_length(0, {0}));
}

}  // namespace min_length_tests
