// SPDX-License-Identifier: MIT
#include <decant/processors/prefix_allowed_tokens.hpp>

#include "processors/lists.hpp"

#include <array>

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/processors/allowed_tokens.hpp>
#include <decant/testing/markov_model.hpp>

namespace prefix_allowed_tokens_tests {

using namespace lists;
using decant::prefix_allowed_tokens;

/// Allows the same list everywhere.
auto always(const tokens& ids) {
  return prefix_allowed_tokens([ids](const step_context&) { return ids; });
}

TEST_CASE("the cases of the golden file of prefix_allowed_tokens", "[processors]") {
  const past before{{1}};
  check_becomes(always({0}), g8, before, only(g8, {0}));
  check_becomes(always({0, 3, 5}), g8, before, only(g8, {0, 3, 5}));
  check_leaves(always({0, 1, 2, 3, 4, 5, 6, 7}), g8, before);
  check_becomes(always({1, 3}), inf8, before, row(8, gone));
  check_becomes(always({15, 15, 0}), g16, before, only(g16, {0, 15}));
  check_becomes(always({5}), single8, before, single8);
  check_becomes(always({10, 11}), neg12, before, only(neg12, {10, 11}));
  check_becomes(always({0}), peak8, before, only(peak8, {0}));
  check_becomes(always({3, 4}), big8, before, only(big8, {3, 4}));
}

TEST_CASE("the function sees the context of the step", "[processors]") {
  // What may follow a token: it and the next one; anything at the begin.
  const prefix_allowed_tokens policy([](const step_context& context) {
    if (context.tokens.empty()) return tokens{0, 1, 2, 3, 4, 5, 6, 7};
    const token_id last = context.tokens.back();
    return tokens{last, (last + 1) % 8};
  });
  check_leaves(policy, g8, {});
  check_becomes(policy, g8, {{5, 2}}, only(g8, {2, 3}));
  check_becomes(policy, g8, {{2, 7}}, only(g8, {7, 0}));
  const prefix_allowed_tokens by_length([](const step_context& context) {
    return tokens{static_cast<token_id>(context.prompt_size), static_cast<token_id>(context.output().size())};
  });
  check_becomes(by_length, g8, {{0, 0, 0, 0, 0}, 3}, only(g8, {2, 3}));
}

TEST_CASE("prefix_allowed_tokens: nothing allowed is an empty row, not an error", "[processors]") {
  check_becomes(always({}), g8, {}, row(8, gone));
}

TEST_CASE("the function may return a view of ids that it keeps, an array or a reference", "[processors]") {
  const tokens kept{1, 6};
  check_becomes(prefix_allowed_tokens([&](const step_context&) { return std::span<const token_id>(kept); }), g8, {},
                only(g8, {1, 6}));
  check_becomes(prefix_allowed_tokens([&](const step_context&) -> const tokens& { return kept; }), g8, {},
                only(g8, {1, 6}));
  check_becomes(prefix_allowed_tokens([](const step_context&) { return std::array<token_id, 2>{1, 6}; }), g8, {},
                only(g8, {1, 6}));
}

tokens evens(const step_context&) { return {0, 2, 4, 6}; }

TEST_CASE("a plain function will do, and a function that keeps scratch space", "[processors]") {
  check_becomes(prefix_allowed_tokens(evens), g8, {}, only(g8, {0, 2, 4, 6}));
  check_becomes(prefix_allowed_tokens([scratch = tokens{}](const step_context& context) mutable {
                  scratch.assign(context.tokens.begin(), context.tokens.end());
                  return std::span<const token_id>(scratch);
                }),
                g8, {{4, 1}}, only(g8, {1, 4}));
}

TEST_CASE("a function that does not answer with ids does not fit", "[processors]") {
  const auto answers_a_number = [](const step_context&) { return 3; };
  const auto answers_words = [](const step_context&) { return std::vector<std::uint64_t>{1}; };
  const auto asks_nothing = [] { return tokens{}; };
  STATIC_REQUIRE(!decant::AllowedTokens<decltype(answers_a_number)>);
  STATIC_REQUIRE(!decant::AllowedTokens<decltype(answers_words)>);
  STATIC_REQUIRE(!decant::AllowedTokens<decltype(asks_nothing)>);
  STATIC_REQUIRE(decant::AllowedTokens<decltype(evens)*>);
}

TEST_CASE("a function that ignores the context is allowed_tokens", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(70, seed);
    const tokens ids{3, 60, 7, 12};
    CHECK(same_bits(logits_after(always(ids), logits), logits_after(decant::allowed_tokens(ids), logits)));
    CHECK(drawn_after(always(ids), logits) == drawn_after(decant::allowed_tokens(ids), logits));
  }
}

TEST_CASE("only what the function allows is generated", "[processors]") {
  // The names 1 2, 1 3 4 and 4 4, one after the other: entity retrieval in small.
  const auto follow = [](const step_context& context) {
    const auto out = context.output();
    tokens state{0};
    for (const token_id token : out) state.assign(1, state[0] == 0 ? token : state[0] == 1 && token == 3 ? 3 : 0);
    switch (state[0]) {
      case 0: return tokens{1, 4};
      case 1: return tokens{2, 3};
      default: return tokens{4};
    }
  };
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    auto model = decant::testing::random_markov_model(5, 1, seed, 1);
    const tokens prompt{0};
    decant::generate_options settings;
    settings.max_new_tokens = 60;
    settings.seed = seed;
    const auto result =
        decant::generate(model, prompt, prefix_allowed_tokens(follow) | decant::multinomial{}, settings);
    REQUIRE(result.tokens.size() == 60);
    for (std::size_t i = 0; i < 57;) {
      const auto& t = result.tokens;
      const bool two = (t[i] == 1 && t[i + 1] == 2) || (t[i] == 4 && t[i + 1] == 4);
      const bool three = t[i] == 1 && t[i + 1] == 3 && t[i + 2] == 4;
      REQUIRE((two || three));
      i += two ? 2 : 3;
    }
  }
}

TEST_CASE("prefix_allowed_tokens: allowing an id outside the vocabulary is misuse", "[processors]") {
  check_misuse(always({8}), g8);
  check_misuse(always({0, -1}), g8);
}

TEST_CASE("prefix_allowed_tokens on all sizes and on bad rows", "[processors]") {
  CHECK(decant::describe(always({0})) == "prefix_allowed_tokens");
  check_sizes(always({0}));
  check_bad_rows(always({0}), true);
}

TEST_CASE("prefix_allowed_tokens passes check_processor", "[processors]") {
  static const tokens kept{0, 2, 3, 7};
  check_report_with_ids(prefix_allowed_tokens([](const step_context&) { return std::span<const token_id>(kept); }), 8);
  const prefix_allowed_tokens seen([](const step_context& context) { return context.tokens; });
  check_report_of(seen, {.shift_invariant = true, .may_empty = true, .allocations = decant::testing::allocations});
}

}  // namespace prefix_allowed_tokens_tests
