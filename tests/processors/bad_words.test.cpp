// SPDX-License-Identifier: MIT
#include <decant/processors/bad_words.hpp>

#include "processors/lists.hpp"

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/processors/suppress_tokens.hpp>
#include <decant/testing/markov_model.hpp>

namespace bad_words_tests {

using namespace lists;
using decant::bad_words;
using options = decant::bad_words_options;
using words = std::vector<tokens>;

TEST_CASE("a token that would complete a word is banned", "[processors]") {
  check_becomes(bad_words(words{{1, 2}}), g8, {{0, 1}}, without(g8, {2}));
  check_becomes(bad_words(words{{1, 2, 3}, {2, 4}, {6}}), g8, {{1, 2}}, without(g8, {3, 4, 6}));
  check_leaves(bad_words(words{{1, 2}}), g8, {{1, 0}});
  check_leaves(bad_words(words{{1, 2}}), g8, {{1, 2, 3}});
}

TEST_CASE("bad_words: a text that is just the prefix counts (transformers misses it)", "[processors]") {
  check_becomes(bad_words(words{{1, 2}}), g8, {{1}}, without(g8, {2}));
  check_leaves(bad_words(words{{1, 2}}, {.hf_prefix = true}), g8, {{1}});
}

TEST_CASE("the cases of the golden file of bad_words_ids", "[processors]") {
  const auto hf = [](const words& list, const tokens& end = {}) {
    return bad_words(list, {.spared_end_tokens = end, .hf_prefix = true});
  };
  check_becomes(hf({{3}}), g8, {{1}}, without(g8, {3}));
  check_becomes(hf({{1, 2}}), g8, {{0, 1}}, without(g8, {2}));
  check_leaves(hf({{1, 2}}), g8, {{1, 0}});
  check_becomes(hf({{7, 3}}, {7}), g8, {{1, 7}}, without(g8, {3}));
  check_becomes(hf({{1, 2, 3}, {2, 3}}), g8, {{1, 2}}, without(g8, {3}));
  check_becomes(hf({{0}, {4}}), inf8, {{1}}, without(inf8, {0, 4}));
  check_leaves(hf({{1, 2}}), g8, {{1}});
  check_becomes(hf({{0}, {1}, {2}, {3}, {4}, {5}, {6}}, {7}), g8, {{1}}, only(g8, {7}));
  check_becomes(hf({{0}, {1, 1}}, {11}), neg12, {{1, 1}}, without(neg12, {0, 1}));
}

TEST_CASE("an end token can be banned, unless it is spared", "[processors]") {
  check_becomes(bad_words(words{{7}, {2}}), g8, {{1}}, without(g8, {2, 7}));
  check_becomes(bad_words(words{{7}, {2}}, {.spared_end_tokens = {7, 6}}), g8, {{1}}, without(g8, {2}));
  // Only entries that are nothing but an end token are spared.
  check_becomes(bad_words(words{{1, 7}}, {.spared_end_tokens = {7}}), g8, {{1}}, without(g8, {7}));
  CHECK(bad_words(words{{7}}, {.spared_end_tokens = {7}}).off());
}

TEST_CASE("words of one token are suppress_tokens", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(40, seed);
    CHECK(same_bits(logits_after(bad_words(words{{3}, {9}, {3}}), logits),
                    logits_after(decant::suppress_tokens({3, 9}), logits)));
    CHECK(drawn_after(bad_words(words{{3}, {9}}), logits) == drawn_after(decant::suppress_tokens({3, 9}), logits));
  }
}

TEST_CASE("bad_words: all tokens banned leave an empty row", "[processors]") {
  check_becomes(bad_words(words{{1, 0}, {1}, {2}}), {1, 1, 1}, {{1}}, row(3, gone));
}

TEST_CASE("no word is ever generated, also across the prompt", "[processors]") {
  const words list{{0, 1}, {1, 2, 3}, {3, 3}, {2, 1, 2, 1}, {4, 0, 2}};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto model = decant::testing::random_markov_model(5, 1, seed, 1);
    tokens text{1, 2};
    decant::generate_options settings;
    settings.max_new_tokens = 200;
    settings.seed = seed;
    const auto result = decant::generate(model, text, bad_words(list) | decant::multinomial{}, settings);
    CHECK(result.tokens.size() == 200);
    text.insert(text.end(), result.tokens.begin(), result.tokens.end());
    for (const tokens& word : list) CHECK(std::ranges::search(text, word).empty());
  }
}

TEST_CASE("bad_words: an empty list is off", "[processors]") {
  CHECK(bad_words(words{}).off());
  CHECK(!bad_words(words{{0}}).off());
  check_identity(bad_words(words{}));
  check_identity(bad_words(words{{0}}, {.spared_end_tokens = {0}}));
}

TEST_CASE("bad_words refuses an empty word", "[processors]") {
  check_refused<bad_words>("bad_words.length of a sequence", "bad_words: length of a sequence = 0 must be >= 1",
                           words{{1}, {}});
  check_made<bad_words>("bad_words(0 sequences)", words{});
  check_made<bad_words>("bad_words(2 sequences)", words{{1}, {2, 3}});
  check_made<bad_words>("bad_words(1 sequence, hf_prefix = true)", words{{1}}, options{.hf_prefix = true});
}

TEST_CASE("bad_words: an id outside the vocabulary is misuse at the first row", "[processors]") {
  check_misuse(bad_words(words{{1}, {1, 2, 8}}), g8);
  check_misuse(bad_words(words{{-1, 2}}), g8);
}

TEST_CASE("bad_words on all sizes and on bad rows", "[processors]") {
  check_sizes(bad_words(words{{0}, {0, 0}}), true);
  check_bad_rows(bad_words(words{{0}, {0, 0}}), true);
}

TEST_CASE("bad_words passes check_processor", "[processors]") {
  check_report_with_ids(bad_words(words{{2, 9, 4}, {9, 5}, {6}}), 12);
  check_report_of(bad_words(words{}));
}

}  // namespace bad_words_tests
