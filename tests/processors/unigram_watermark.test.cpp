// SPDX-License-Identifier: MIT
#include <decant/processors/unigram_watermark.hpp>

#include "processors/policies.hpp"
#include "processors/written_texts.hpp"

namespace unigram_watermark_tests {

using namespace policies;
using decant::unigram_options;
using decant::unigram_watermark;

tokens green_of(const unigram_options& options, std::size_t size) {
  const unigram_watermark mark(options);
  tokens ids;
  for (std::size_t i = 0; i < size; ++i) {
    if (mark.green(static_cast<token_id>(i), size)) ids.push_back(static_cast<token_id>(i));
  }
  return ids;
}

TEST_CASE("a unigram watermark raises one list of floor(fraction n) tokens, whatever the text", "[processors]") {
  for (const double fraction : {0.1, 0.5, 0.75}) {
    for (const std::size_t size : {std::size_t{8}, std::size_t{39}, std::size_t{500}}) {
      const unigram_options options{.fraction = fraction, .key = 11};
      const tokens list = green_of(options, size);
      CHECK(list.size() == decant::green_size(fraction, size));
      const row logits = random_row(size, size);
      const row out = logits_after(unigram_watermark(options), logits);
      for (std::size_t i = 0; i < size; ++i) {
        const bool green = std::ranges::find(list, static_cast<token_id>(i)) != list.end();
        CHECK(out[i] == (green ? static_cast<float>(static_cast<double>(logits[i]) + 2) : logits[i]));
      }
      CHECK(same_bits(logits_after(unigram_watermark(options), logits, some_past(size)), out));
    }
  }
  CHECK(green_of({.key = 1}, 200) != green_of({.key = 2}, 200));
}

TEST_CASE("the law under a unigram watermark is proportional to p e^(bias [green])", "[processors]") {
  const unigram_options options{.bias = 1.5, .key = 4};
  const row logits = random_row(60, 2);
  law expected = reference::exact_law(logits);
  for (const token_id id : green_of(options, 60)) expected[static_cast<std::size_t>(id)] *= std::exp(1.5);
  double sum = 0;
  for (const double p : expected) sum += p;
  for (double& p : expected) p /= sum;
  CHECK(difference(enumerated_law(unigram_watermark(options), logits), expected) < of_float);
}

TEST_CASE("hard unigram: only green tokens are left, and every one counts", "[processors]") {
  const unigram_options options{.bias = 0, .key = 3, .hard = true};
  CHECK(survivors(unigram_watermark(options), row(90, 1.0F)) == green_of(options, 90));
  const tokens text = written::text_by(unigram_watermark(options), 5, 80);
  const auto found = unigram_watermark(options).detect(text, written::vocabulary,
                                                       {.prompt_size = written::prompt, .count_repeats = true});
  CHECK(found.tokens == 80);
  CHECK(found.score == 80);
  CHECK(survivors(unigram_watermark({.fraction = 0.2, .hard = true}), {1, 2, 3}) == tokens{0, 1, 2});
}

TEST_CASE("over keys, half of the tokens of any text are green", "[processors]") {
  const tokens text = written::plain_text(2, 100);
  double greens = 0, squares = 0, count = 0;
  constexpr std::size_t keys = 1000;
  for (std::uint64_t key = 0; key < keys; ++key) {
    const auto found = unigram_watermark({.key = key}).detect(text, written::vocabulary);
    greens += found.score;
    squares += found.z * found.z;
    count += static_cast<double>(found.tokens);
  }
  CHECK(std::abs(greens - 0.5 * count) < 4.5 * std::sqrt(count * 0.25));
  // Distinct tokens of one list: a little less than binomial.
  CHECK(squares / keys > 0.6);
  CHECK(squares / keys < 1.15);
}

TEST_CASE("unigram-marked text is found also after edits, other text is not: 150 tokens", "[processors]") {
  const unigram_watermark mark({.key = 21}), other({.key = 22});
  const auto detect = [&](const tokens& text) {
    return mark.detect(text, written::vocabulary, {.prompt_size = written::prompt});
  };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    tokens text = written::text_by(mark, seed, 150);
    CHECK(detect(text).p_value < 1e-4);
    CHECK(other.detect(text, written::vocabulary, {.prompt_size = written::prompt}).p_value > 1e-4);
    std::ranges::reverse(text);  // no order survives
    CHECK(mark.detect(text, written::vocabulary).p_value < 1e-4);
  }
  // Each text of one writer prefers the same tokens, so for one key all texts err alike: the level holds over keys.
  const tokens text = written::plain_text(9, 150);
  std::size_t alarms = 0;
  for (std::uint64_t key = 0; key < 1000; ++key) {
    alarms += unigram_watermark({.key = key}).detect(text, written::vocabulary).p_value < 0.01;
  }
  CHECK(alarms <= 25);  // ten expected at most
}

TEST_CASE("a token counts once in a unigram watermark, unless repeats are asked for", "[processors]") {
  const unigram_watermark mark;
  CHECK(mark.detect(tokens{1, 2, 1, 1}, 10).tokens == 2);
  CHECK(mark.detect(tokens{1, 2, 1, 1}, 10, {.count_repeats = true}).tokens == 4);
  CHECK(mark.detect(tokens{1, 2, 1, 1}, 10, {.prompt_size = 2, .count_repeats = true}).tokens == 2);
  CHECK(mark.detect(tokens{}, 10) == decant::watermark_evidence{});
  CHECK(mark.detect(tokens{1}, 10, {.prompt_size = 5}) == decant::watermark_evidence{});
  CHECK_THROWS_AS(mark.detect(tokens{10}, 10), assertion_error);
}

TEST_CASE("a unigram watermark refuses bad parameters", "[processors]") {
  for (const double fraction : {0.0, 1.0, -0.5, not_a_number}) {
    CHECK(complaint([&] { return unigram_watermark({.fraction = fraction}); }) ==
          "unigram_watermark: fraction = " + decant::detail::number_text(fraction) + " must lie in (0, 1)");
    CHECK_FALSE(unigram_watermark::make(unigram_options{.fraction = fraction}).has_value());
  }
  for (const double bias : {-1.0, not_a_number, infinity}) {
    CHECK(complaint([&] { return unigram_watermark({.bias = bias}); }) ==
          "unigram_watermark: bias = " + decant::detail::number_text(bias) + " must be a finite number >= 0");
  }
  CHECK(unigram_watermark::make().has_value());
}

TEST_CASE("a unigram watermark as any processor: off, sizes, bad rows, check_processor", "[processors]") {
  check_identity(unigram_watermark({.bias = 0}));
  CHECK(unigram_watermark({.bias = 0}).off());
  for (const bool hard : {false, true}) {
    const unigram_watermark mark({.hard = hard});
    check_sizes(mark);
    check_bad_rows(mark);
    check_report_of(mark, {.permutation = false, .shift_invariant = true, .allocations = decant::testing::allocations});
  }
  CHECK(unigram_watermark().describe() == "unigram_watermark(0.5, 2)");
  CHECK(unigram_watermark({.fraction = 0.25, .hard = true}).describe() == "unigram_watermark(0.25, 2, hard = true)");
}

}  // namespace unigram_watermark_tests
