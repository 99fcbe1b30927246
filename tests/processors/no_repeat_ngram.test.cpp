// SPDX-License-Identifier: MIT
#include <decant/processors/no_repeat_ngram.hpp>

#include "processors/policies.hpp"

#include <cstdint>
#include <limits>
#include <set>

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/testing/markov_model.hpp>

namespace no_repeat_ngram_tests {

using namespace policies;
using decant::no_repeat_ngram;

const row flat(4, 1.0F);

TEST_CASE("an n-gram that has occurred is not repeated (fairseq#5206, TensorRT-LLM PR690)", "[processors]") {
  CHECK(survivors(no_repeat_ngram(2), flat, {{1, 2, 1}}) == tokens{0, 1, 3});
  CHECK(survivors(no_repeat_ngram(3), flat, {{1, 2, 3, 1, 2}}) == tokens{0, 1, 2});
  CHECK(survivors(no_repeat_ngram(3), flat, {{1, 2, 3, 0, 2}}) == tokens{0, 1, 2, 3});
  CHECK(survivors(no_repeat_ngram(2), flat, {{1, 2, 1, 3, 1}}) == tokens{0, 1});
}

TEST_CASE("n = 1 bans every token that has occurred", "[processors]") {
  CHECK(survivors(no_repeat_ngram(1), flat, {{2, 0, 2}}) == tokens{1, 3});
  CHECK(survivors(no_repeat_ngram(1), flat) == tokens{0, 1, 2, 3});
}

TEST_CASE("an n longer than the text bans nothing", "[processors]") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(survivors(no_repeat_ngram(4), flat, {{1, 1, 1}}) == tokens{0, 1, 2, 3});
  CHECK(survivors(no_repeat_ngram(most), flat, {{1, 1, 1}}) == tokens{0, 1, 2, 3});
  CHECK(survivors(no_repeat_ngram(3), flat, {{1, 1}}) == tokens{0, 1, 2, 3});
}

TEST_CASE("an n-gram may overlap itself", "[processors]") {
  CHECK(survivors(no_repeat_ngram(2), flat, {{1, 1}}) == tokens{0, 2, 3});
  CHECK(survivors(no_repeat_ngram(3), flat, {{1, 1, 1}}) == tokens{0, 2, 3});
  CHECK(survivors(no_repeat_ngram(4), flat, {{1, 2, 1, 2, 1}}) == tokens{0, 1, 3});
}

TEST_CASE("the last n - 1 tokens alone are no occurrence", "[processors]") {
  CHECK(survivors(no_repeat_ngram(2), flat, {{1}}) == tokens{0, 1, 2, 3});
  CHECK(survivors(no_repeat_ngram(3), flat, {{0, 1, 2}}) == tokens{0, 1, 2, 3});
}

TEST_CASE("n-grams of the prompt count", "[processors]") {
  CHECK(survivors(no_repeat_ngram(2), flat, {{1, 2, 1}, 3}) == tokens{0, 1, 3});
  CHECK(survivors(no_repeat_ngram(2), flat, {{1, 2, 0, 1}, 2}) == tokens{0, 1, 3});
}

TEST_CASE("when all tokens are banned the row is empty and nothing is drawn (OpenNMT-py#745)", "[processors]") {
  const past before{{0, 1, 2, 3}};
  CHECK(status_after(no_repeat_ngram(1), flat, before) == row_status::empty);
  CHECK(drawn_after(no_repeat_ngram(1), flat, 5, before) == tokens(5, no_token));
  CHECK(law_after(no_repeat_ngram(1), flat, before) == law(4, 0));
}

TEST_CASE("n <= 0 is off bit for bit", "[processors]") {
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    CHECK(no_repeat_ngram(n).off());
    check_identity(no_repeat_ngram(n));
  }
  CHECK(!no_repeat_ngram(1).off());
}

TEST_CASE("no_repeat_ngram equals the reference, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const row logits = random_row(5, seed);
    const draw_stream draws(seed);
    past before;
    for (std::size_t i = 0; i < 12; ++i) {
      before.text.push_back(
          static_cast<token_id>(draws.at(i).uniform(decant::purpose::user) * (seed % 2 == 0 ? 2 : 5)));
    }
    for (std::int64_t n = 1; n <= 5; ++n) {
      const law expected = reference::exact_law(
          reference::no_repeat_ngram(reference::widened(logits), before.text, static_cast<std::size_t>(n)));
      CHECK(difference(law_after(no_repeat_ngram(n), logits, before), expected) < of_float);
      CHECK(difference(enumerated_law(no_repeat_ngram(n), logits, before), expected) < of_float);
    }
  }
}

TEST_CASE("what is generated repeats no n-gram", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (std::int64_t n = 1; n <= 4; ++n) {
      auto model = decant::testing::random_markov_model(6, 1, seed, 3);
      const tokens prompt{0, 1};
      decant::generate_options options;
      options.max_new_tokens = 200;
      options.seed = seed;
      const auto result = decant::generate(model, prompt, no_repeat_ngram(n) | decant::multinomial{}, options);
      tokens text = prompt;
      text.insert(text.end(), result.tokens.begin(), result.tokens.end());
      const auto length = static_cast<std::size_t>(n);
      std::set<tokens> seen;
      for (std::size_t i = 0; i + length <= text.size(); ++i) {
        const auto at = text.begin() + static_cast<std::ptrdiff_t>(i);
        CHECK(seen.emplace(at, at + static_cast<std::ptrdiff_t>(length)).second);
      }
      if (n == 1) {
        // Six tokens, each once: then every one is banned.
        CHECK(text.size() == 6);
        CHECK(result.finish == decant::finish_reason::bad_row);
        CHECK(result.status == row_status::empty);
      }
    }
  }
}

TEST_CASE("a ban can remove the token that would make the row bad", "[processors]") {
  CHECK(survivors(no_repeat_ngram(1), {1, nan_float, 2}, {{1}}) == tokens{0, 2});
}

TEST_CASE("every n can be made", "[processors]") {
  CHECK(no_repeat_ngram::make(std::int64_t{-5}).has_value());
  CHECK(no_repeat_ngram::make(std::int64_t{3}).has_value());
  CHECK(no_repeat_ngram(3).describe() == "no_repeat_ngram(3)");
}

TEST_CASE("no_repeat_ngram on all sizes and on bad rows", "[processors]") {
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}}) {
    check_sizes(no_repeat_ngram(n), true);
    check_bad_rows(no_repeat_ngram(n), true);
  }
}

TEST_CASE("no_repeat_ngram passes check_processor", "[processors]") {
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}}) {
    check_report_of(no_repeat_ngram(n),
                    {.shift_invariant = true, .may_empty = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace no_repeat_ngram_tests
