// SPDX-License-Identifier: MIT
#include <decant/processors/encoder_no_repeat_ngram.hpp>

#include "processors/lists.hpp"

#include <set>

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/processors/no_repeat_ngram.hpp>
#include <decant/testing/markov_model.hpp>

namespace encoder_no_repeat_ngram_tests {

using namespace lists;
using decant::encoder_no_repeat_ngram;

encoder_no_repeat_ngram with(std::int64_t n, const tokens& source) { return {n, source}; }

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

TEST_CASE("the cases of the golden file of encoder_no_repeat_ngram_size", "[processors]") {
  check_becomes(with(2, {1, 2, 3}), g8, {{1}}, without(g8, {2}));
  check_leaves(with(2, {1, 2, 3}), g8, {{3}});
  check_becomes(with(1, {1, 2, 3}), g8, {{0}}, without(g8, {1, 2, 3}));
  check_leaves(with(3, {1, 2, 3}), g8, {{2}});
  check_leaves(with(2, {5}), g8, {{5}});
  check_becomes(with(2, {4, 0}), inf8, {{4}}, without(inf8, {0}));
  check_becomes(with(4, {9, 8, 7, 6}), g16, {{9, 8, 7}}, without(g16, {6}));
  check_becomes(with(3, {1, 2, 3}), g8, {{1, 2}}, without(g8, {3}));
  check_becomes(with(2, {11, 0, 11, 1, 11, 2}), neg12, {{3, 11}}, without(neg12, {0, 1, 2}));
}

TEST_CASE("n = 1 bans every token of the source, also at the begin", "[processors]") {
  check_becomes(with(1, {4, 4, 0}), g8, {}, without(g8, {0, 4}));
}

TEST_CASE("an n longer than the source or the text bans nothing", "[processors]") {
  check_leaves(with(4, {1, 1, 1}), g8, {{1, 1, 1, 1}});
  check_leaves(with(most, {1, 1, 1}), g8, {{1, 1, 1, 1}});
  check_leaves(with(3, {1, 1, 1}), g8, {{1}});
  check_leaves(with(3, {1, 1, 1}), g8, {});
}

TEST_CASE("n-grams of the text itself do not count", "[processors]") { check_leaves(with(2, {5, 6}), g8, {{1, 2, 1}}); }

TEST_CASE("the last n - 1 tokens may lie in the prompt", "[processors]") {
  for (std::size_t prompt = 0; prompt <= 3; ++prompt) {
    check_becomes(with(3, {0, 1, 2, 3}), g8, {{0, 1, 2}, prompt}, without(g8, {3}));
  }
}

TEST_CASE("a source that the text repeats is no_repeat_ngram on both", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::uint32_t asked = 0;
    const auto some = [&](std::size_t size) {
      tokens out(size);
      for (token_id& id : out)
        id = static_cast<token_id>(draw_stream(seed).uniform(decant::purpose::user, asked++) * 4);
      return out;
    };
    const tokens source = some(15), suffix = some(4);
    const row logits = random_row(5, seed);
    for (std::int64_t n = 1; n <= 5; ++n) {
      // What follows the n-grams of the source, by their set.
      std::set<tokens> grams;
      for (std::size_t i = 0; i + static_cast<std::size_t>(n) <= source.size(); ++i) {
        const auto at = source.begin() + static_cast<std::ptrdiff_t>(i);
        grams.emplace(at, at + static_cast<std::ptrdiff_t>(n));
      }
      row expected = logits;
      for (token_id v = 0; v < 5; ++v) {
        tokens gram(suffix.end() - static_cast<std::ptrdiff_t>(n - 1), suffix.end());
        gram.push_back(v);
        if (grams.contains(gram)) expected[static_cast<std::size_t>(v)] = gone;
      }
      check_becomes(with(n, source), logits, {suffix}, expected);
      // Within the source's own text both agree.
      CHECK(same_bits(logits_after(with(n, source), logits, {source}),
                      logits_after(decant::no_repeat_ngram(n), logits, {source})));
    }
  }
}

TEST_CASE("encoder_no_repeat_ngram: all tokens banned leave an empty row", "[processors]") {
  check_becomes(with(1, {0, 1, 2}), {1, 1, 1}, {}, row(3, gone));
}

TEST_CASE("the output shares no n-gram with the source", "[processors]") {
  const tokens source{0, 1, 2, 3, 4, 0, 2, 4, 1, 3, 0};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto model = decant::testing::random_markov_model(5, 1, seed, 1);
    const tokens prompt{0};
    decant::generate_options settings;
    settings.max_new_tokens = 100;
    settings.seed = seed;
    const auto result = decant::generate(model, prompt, with(3, source) | decant::multinomial{}, settings);
    CHECK(result.tokens.size() == 100);
    for (std::size_t i = 0; i + 3 <= source.size(); ++i) {
      CHECK(std::ranges::search(result.tokens, std::span(source).subspan(i, 3)).empty());
    }
  }
}

TEST_CASE("n <= 0 and a source shorter than n are off", "[processors]") {
  for (const auto& policy : {with(0, {0}), with(-1, {0}), with(std::numeric_limits<std::int64_t>::min(), {0}),
                             with(1, {}), with(2, {0}), with(most, {0, 0})}) {
    CHECK(policy.off());
    check_identity(policy);
  }
  CHECK(!with(1, {0}).off());
}

TEST_CASE("encoder_no_repeat_ngram: the source is copied", "[processors]") {
  tokens source{1};
  const encoder_no_repeat_ngram policy(1, source);
  source[0] = 0;
  CHECK(survivors(policy, {1, 1}) == tokens{0});
}

TEST_CASE("encoder_no_repeat_ngram: every n can be made", "[processors]") {
  check_made<encoder_no_repeat_ngram>("encoder_no_repeat_ngram(-5)", std::int64_t{-5}, tokens{0});
  check_made<encoder_no_repeat_ngram>("encoder_no_repeat_ngram(3)", std::int64_t{3}, tokens{0, 1, 2});
}

TEST_CASE("a source token outside the vocabulary is misuse when it would be banned", "[processors]") {
  check_misuse(with(1, {0, 8}), g8);
  check_misuse(with(2, {1, -1}), g8, {{1}});
}

TEST_CASE("encoder_no_repeat_ngram on all sizes and on bad rows", "[processors]") {
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}}) {
    check_sizes(with(n, {0, 0}), true);
    check_bad_rows(with(n, {0, 0}), true);
  }
}

TEST_CASE("encoder_no_repeat_ngram passes check_processor", "[processors]") {
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}}) {
    check_report_with_ids(with(n, {2, 9, 4, 9, 5, 2}), 12);
  }
}

}  // namespace encoder_no_repeat_ngram_tests
