// SPDX-License-Identifier: MIT
#include <decant/processors/thinking_budget.hpp>

#include "processors/texts.hpp"

#include <limits>

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/testing/markov_model.hpp>
#include <decant/text/utf8_stream.hpp>

namespace thinking_budget_tests {

using namespace texts;
using decant::thinking_budget;
using decant::thinking_markers;

constexpr std::size_t vocabulary_size = 300;

/// The token that is forced after a text, no_token if the row is as it was.
token_id forced(const thinking_budget& policy, const past& before) {
  const row logits(vocabulary_size, 1.5F);
  const row out = logits_after(policy, logits, before);
  if (same_bits(out, logits)) return no_token;
  token_id found = no_token;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (decant::is_gone(out[i])) continue;
    CHECK(found == no_token);
    CHECK(out[i] == 0);
    found = static_cast<token_id>(i);
  }
  CHECK(found != no_token);
  return found;
}

/// What is forced after each beginning of a text, from none of it to all.
tokens forced_along(const thinking_budget& policy, const tokens& text, std::size_t prompt = 0) {
  tokens out;
  for (std::size_t n = prompt; n <= text.size(); ++n) {
    out.push_back(forced(policy, {tokens(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n)), prompt}));
  }
  return out;
}

constexpr token_id none = no_token;
const thinking_markers tags{.start = {100}, .end = {101}, .forced = {102, 101}};

TEST_CASE("a thinking budget has the numbers of llama.cpp's tests", "[processors]") {
  // Forced for tokens 3 and 4.
  CHECK(forced_along(thinking_budget(2, tags), {100, 50, 51, 102, 101}) == tokens{none, none, none, 102, 101, none});
  // Starts again, and is forced for 6 and 7.
  CHECK(forced_along(thinking_budget(2, tags), {100, 50, 101, 100, 60, 61, 102, 101, 7}) ==
        tokens{none, none, none, none, none, none, 102, 101, none, none});
  // The prompt has begun it, and the budget is 0: forced for 0 and 1.
  CHECK(forced_along(thinking_budget(0, {.start = {100}, .end = {101}, .forced = {102, 101}, .prompt = true}),
                     {9, 100, 102, 101, 5}, 2) == tokens{102, 101, none, none});
}

TEST_CASE("the end is forced for the fourth token of a budget of 3, also inside a draft (sglang#26330)",
          "[processors]") {
  const thinking_budget policy(3, {.start = {100}, .end = {101}});
  const tokens draft{100, 1, 2, 3, 4, 5};  // five drafted tokens after the start
  // Each row of the window by itself, in any order, by one policy or by copies.
  for (const std::size_t n : {4U, 1U, 3U, 2U}) {
    const past before{tokens(draft.begin(), draft.begin() + static_cast<std::ptrdiff_t>(n))};
    CHECK(forced(policy, before) == (n == 4 ? 101 : none));
    CHECK(forced(thinking_budget(policy), before) == (n == 4 ? 101 : none));
  }
}

TEST_CASE("an end inside a draft ends it, and one that was rejected does not (vLLM PR44297)", "[processors]") {
  const thinking_budget policy(2, {.start = {100}, .end = {101}});
  CHECK(forced(policy, {{100, 1, 101, 3, 4}}) == none);
  CHECK(forced(policy, {{100, 1, 2}}) == 101);
  CHECK(forced(policy, {{100, 1, 101}}) == none);
  CHECK(forced(policy, {{100, 1, 3}}) == 101);
}

TEST_CASE("a budget of 0 forces at once, one beyond the text never", "[processors]") {
  CHECK(forced_along(thinking_budget(0, tags), {5, 100, 102, 101}) == tokens{none, none, 102, 101, none});
  CHECK(forced_along(thinking_budget(std::numeric_limits<std::int64_t>::max(), tags), {100, 1, 2}) == tokens(4, none));
}

TEST_CASE("thinking that ends by itself in time is left alone", "[processors]") {
  CHECK(forced_along(thinking_budget(3, tags), {100, 1, 2, 101, 5, 6, 7}) == tokens(8, none));
  CHECK(forced_along(thinking_budget(3, tags), {1, 2, 3, 4, 5}) == tokens(6, none));
}

TEST_CASE("the end as the last token of the budget counts", "[processors]") {
  CHECK(forced_along(thinking_budget(3, tags), {100, 1, 2, 101, 5}) == tokens(6, none));
}

TEST_CASE("without forced tokens the end is forced", "[processors]") {
  CHECK(forced_along(thinking_budget(1, {.start = {100}, .end = {7, 8}}), {100, 1, 7, 8}) ==
        tokens{none, none, 7, 8, none});
}

TEST_CASE("forced tokens may go on after the end", "[processors]") {
  const thinking_budget policy(1, {.start = {100}, .end = {101}, .forced = {50, 101, 10, 10}});
  CHECK(forced_along(policy, {100, 1, 50, 101, 10, 10, 5}) == tokens{none, none, 50, 101, 10, 10, none, none});
}

TEST_CASE("an end that has begun is finished, not begun again", "[processors]") {
  const thinking_budget policy(3, {.start = {100}, .end = {7, 8, 9}});
  CHECK(forced_along(policy, {100, 1, 2, 7, 8, 9}) == tokens{none, none, none, none, 8, 9, none});
  CHECK(forced_along(policy, {100, 1, 7, 8, 9}) == tokens{none, none, none, none, 9, none});
  CHECK(forced_along(policy, {100, 7, 8, 1, 7, 8, 9}) == tokens{none, none, none, none, 7, 8, 9, none});
  // The longest beginning counts.
  CHECK(forced(thinking_budget(3, {.start = {100}, .end = {7, 7, 8}}), {{100, 7, 7, 7}}) == 8);
}

TEST_CASE("markers of several tokens are found where they stand whole", "[processors]") {
  const thinking_markers markers{.start = {1, 1, 2}, .end = {3, 4}};
  CHECK(forced_along(thinking_budget(1, markers), {1, 1, 1, 2, 9, 3, 4}) ==
        tokens{none, none, none, none, none, 3, 4, none});
  CHECK(forced(thinking_budget(0, markers), {{1, 2}}) == none);
  CHECK(forced(thinking_budget(0, markers), {{1, 1, 2}}) == 3);
  // The tokens of an end do not begin the next start, nor those of a start an end.
  CHECK(forced(thinking_budget(0, {.start = {1, 2}, .end = {2, 1}}), {{1, 2, 1}}) == 2);
  CHECK(forced(thinking_budget(5, {.start = {1, 2}, .end = {2, 1}}), {{1, 2, 2, 1, 2, 9, 9, 9, 9, 9, 9}}) == none);
}

TEST_CASE("the start and the end may be one marker", "[processors]") {
  CHECK(forced_along(thinking_budget(1, {.start = {5}, .end = {5}}), {5, 1, 5, 2, 2, 5, 1}) ==
        tokens{none, none, 5, none, none, none, none, 5});
}

TEST_CASE("a second start while it thinks does not renew the budget", "[processors]") {
  CHECK(forced(thinking_budget(3, tags), {{100, 1, 100, 2}}) == 102);
}

TEST_CASE("where forced tokens were not written they are forced from the beginning", "[processors]") {
  // A policy that joins late: far over budget.
  CHECK(forced(thinking_budget(2, tags), {{100, 1, 2, 3, 4, 5, 6}}) == 102);
  CHECK(forced(thinking_budget(2, tags), {{100, 1, 2, 102, 5}}) == 102);
  CHECK(forced(thinking_budget(2, tags), {{100, 1, 2, 5, 102}}) == 101);
  CHECK(forced(thinking_budget(2, tags), {{100, 1, 2, 5, 101}}) == none);
}

TEST_CASE("what the prompt thinks counts only if told so", "[processors]") {
  thinking_markers with_prompt = tags;
  with_prompt.prompt = true;
  const past ended{{100, 1, 101, 5}, 3}, open{{8, 100, 1, 2, 3}, 3};
  CHECK(forced(thinking_budget(2, tags), open) == none);
  CHECK(forced(thinking_budget(3, with_prompt), open) == 102);
  CHECK(forced(thinking_budget(4, with_prompt), open) == none);
  CHECK(forced(thinking_budget(0, with_prompt), ended) == none);
  // A start that the prompt begins and the output ends.
  CHECK(forced(thinking_budget(0, {.start = {1, 2}, .end = {101}}), {{1, 2}, 1}) == none);
  CHECK(forced(thinking_budget(0, {.start = {1, 2}, .end = {101}, .prompt = true}), {{1, 2}, 1}) == 101);
}

TEST_CASE("nothing is forced inside a UTF-8 character", "[processors]") {
  // Bytes are tokens; the markers lie above.
  const decant::vocabulary_bytes bytes = bytes_as_tokens();
  const thinking_markers markers{.start = {256}, .end = {257}};
  const auto thinks = [&](std::int64_t budget, std::string_view text) {
    tokens all{256};
    const tokens thought = spelled(text);
    all.insert(all.end(), thought.begin(), thought.end());
    return forced(thinking_budget(budget, markers, bytes), {all});
  };
  CHECK(thinks(1, "a") == 257);
  CHECK(thinks(1, "\xF0") == none);
  CHECK(thinks(1, "\xF0\x9F") == none);
  CHECK(thinks(1, "\xF0\x9F\x98") == none);
  CHECK(thinks(1, "\xF0\x9F\x98\x80") == 257);
  CHECK(thinks(2, "a\xC3") == none);
  CHECK(thinks(2, "a\xC3\xA4") == 257);
  CHECK(thinks(3, "\xE2\x82\xAC") == 257);
  CHECK(thinks(2, "\xE2\x82") == none);
  // Once forced, forced: what comes after does not matter.
  CHECK(thinks(1, "a\xC3") == 257);
  // Bytes that cannot become a character are no reason to wait.
  CHECK(thinks(1, "\x80") == 257);
  CHECK(thinks(1, "\xFF") == 257);
  CHECK(thinks(2, "\xE0\x80") == 257);
  CHECK(thinks(2, "\xED\xA0") == 257);
  CHECK(thinks(2, "\xF0\x41") == 257);
  CHECK(thinks(4, "\x80\x80\x80\x80") == 257);
  // Without the bytes it cannot know.
  CHECK(forced(thinking_budget(1, markers), {{256, 0xF0}}) == 257);
}

TEST_CASE("a character may end in the middle of a token, and the start has none of it", "[processors]") {
  const auto bytes = vocabulary(
      {"<think>", "</think>", "\xF0\x9F", "\x98\x80", "\x98\x80 and \xC3", "\xA4", "long text\xE2\x82", "\xAC", ""});
  const thinking_markers markers{.start = {0}, .end = {1}};
  CHECK(forced_along(thinking_budget(1, markers, bytes), {0, 2, 3}) == tokens{none, none, none, 1});
  CHECK(forced_along(thinking_budget(1, markers, bytes), {0, 2, 4, 5, 1}) == tokens{none, none, none, none, 1, none});
  CHECK(forced_along(thinking_budget(1, markers, bytes), {0, 6, 8, 7}) == tokens{none, none, none, none, 1});
  CHECK(forced(thinking_budget(0, {.start = {2}, .end = {1}}, bytes), {{2}}) == 1);
}

TEST_CASE("it waits where a stream of characters holds something back, for any bytes", "[processors]") {
  const decant::vocabulary_bytes bytes = bytes_as_tokens();
  const strings pool{"a",    "\xC3", "\xA4", "\xE2", "\x82", "\xAC", "\xF0",
                     "\x9F", "\x98", "\x80", "\xED", "\xF4", "\xC0", "\xFF"};
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const tokens picks = random_text(seed, 1 + seed % 9, pool.size());
    std::string text;
    for (const token_id pick : picks) text += pool[static_cast<std::size_t>(pick)];
    decant::utf8_stream stream;
    static_cast<void>(stream.push(text));
    tokens all{256};
    for (const token_id token : spelled(text)) all.push_back(token);
    const thinking_budget policy(static_cast<std::int64_t>(text.size()), {.start = {256}, .end = {257}}, bytes);
    INFO("seed " << seed);
    CHECK(forced(policy, {all}) == (stream.pending().empty() ? 257 : none));
  }
}

TEST_CASE("a forced token that is gone leaves the row empty", "[processors]") {
  row logits(vocabulary_size, 1);
  logits[102] = gone;
  CHECK(status_after(thinking_budget(0, tags), logits, {{100}}) == row_status::empty);
  CHECK(status_after(thinking_budget(1, tags), logits, {{100}}) == row_status::ok);
}

TEST_CASE("a negative thinking budget is off bit for bit", "[processors]") {
  for (const std::int64_t budget : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    CHECK(thinking_budget(budget, tags).off());
    check_identity(thinking_budget(budget, {.start = {0}, .end = {0}}));
  }
  CHECK(!thinking_budget(0, tags).off());
}

TEST_CASE("generated thinking never passes its budget", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto model = decant::testing::random_markov_model(8, 1, seed, 1);
    const tokens prompt{0};
    const std::int64_t budget = static_cast<std::int64_t>(seed % 5);
    decant::generate_options options;
    options.max_new_tokens = 300;
    options.seed = seed;
    const auto result = decant::generate(
        model, prompt, thinking_budget(budget, {.start = {1}, .end = {2, 3}}) | decant::multinomial{}, options);
    REQUIRE(result.tokens.size() == 300);
    bool thinking = false;
    std::int64_t count = 0;
    std::size_t thoughts = 0;
    token_id last = no_token;
    for (const token_id token : result.tokens) {
      if (thinking) {
        ++count;
        CHECK(count <= budget + 2);
        thinking = !(count > 1 && last == 2 && token == 3);
      } else if (token == 1) {
        thinking = true;
        count = 0;
        ++thoughts;
      }
      last = token;
    }
    CHECK(thoughts > 0);
  }
}

TEST_CASE("the law while it forces is one token, by enumeration", "[processors]") {
  law expected(10);
  expected[7] = 1;
  const thinking_budget policy(1, {.start = {1}, .end = {7}});
  CHECK(enumerated_law(policy, random_row(10, 3), {{1, 2}}) == expected);
  CHECK(law_after(policy, random_row(10, 3), {{1, 2}}) == expected);
}

TEST_CASE("a thinking budget needs a start and an end", "[processors]") {
  const std::string no_start = "thinking_budget: start = 0 tokens, must be at least one";
  const std::string no_end = "thinking_budget: end = 0 tokens, must be at least one";
  CHECK(complaint([] { return thinking_budget(1, {.end = {1}}); }) == no_start);
  CHECK(complaint([] { return thinking_budget(1, {.start = {1}}); }) == no_end);
  CHECK(complaint([] { return thinking_budget(-1, {.start = {1}}); }) == no_end);
  const auto made = thinking_budget::make(1, thinking_markers{.start = {1}});
  REQUIRE(!made.has_value());
  CHECK(made.error().where == "thinking_budget.end");
  CHECK(made.error().message == no_end);
  CHECK(thinking_budget::make(std::int64_t{5}, tags, bytes_as_tokens()).value().describe() == "thinking_budget(5)");
}

TEST_CASE("a forced token outside the vocabulary is misuse", "[processors]") {
  CHECK_THROWS_AS(status_after(thinking_budget(0, {.start = {1}, .end = {9}}), golden, {{1}}), assertion_error);
}

TEST_CASE("a thinking budget on all sizes and on bad rows", "[processors]") {
  for (const std::int64_t budget : {-1, 0, 1, 100}) {
    check_sizes(thinking_budget(budget, {.start = {0}, .end = {0}}));
    if (budget != 0 && budget != 1) check_bad_rows(thinking_budget(budget, {.start = {0}, .end = {0}}));
  }
  // Forcing sets what it leaves, so an unread NaN is no obstacle, at any place; all gone is.
  const thinking_budget policy(0, {.start = {1}, .end = {2}});
  for (const float bad : {nan_float, infinite_float}) {
    for (std::size_t place = 0; place < 4; ++place) {
      row logits(4, 1);
      logits[place] = bad;
      CHECK(survivors(policy, logits, {{1}}) == tokens{2});
      CHECK(status_after(policy, logits, {{3}}) == row_status::not_finite);
    }
  }
  CHECK(status_after(policy, row(4, gone), {{1}}) == row_status::empty);
}

TEST_CASE("a thinking budget passes check_processor", "[processors]") {
  for (const std::int64_t budget : {-1, 0, 2, 100}) {
    check_report_of(thinking_budget(budget, {.start = {33}, .end = {4}}),
                    {.permutation = false,
                     .shift_invariant = true,
                     .may_empty = true,
                     .min_vocabulary = 40,
                     .allocations = decant::testing::allocations});
  }
}

}  // namespace thinking_budget_tests
