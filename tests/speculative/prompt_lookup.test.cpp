// SPDX-License-Identifier: MIT
#include <decant/speculative/prompt_lookup.hpp>

#include "speculative/proposals.hpp"
#include "support/catch.hpp"

namespace prompt_lookup_tests {

using namespace decant;
using drafter_tests::chain_after;
using drafter_tests::ids;
using drafter_tests::proposed;
using drafter_tests::request_after;
using drafter_tests::tokens_of;

static_assert(DraftSource<prompt_lookup>);

TEST_CASE("prompt lookup copies what followed the last tokens before", "[speculative][prompt_lookup]") {
  prompt_lookup drafter({.max_ngram = 2, .max_tokens = 3});
  CHECK(chain_after(drafter, {1, 2, 3, 4, 1, 2}) == ids{3, 4, 1});
  CHECK(chain_after(drafter, {1, 2, 3, 9, 2}) == ids{3, 9, 2});           // one token matches
  CHECK(chain_after(drafter, {9, 2, 7, 1, 2, 8, 1, 2}) == ids{8, 1, 2});  // two tokens go before one
  CHECK(chain_after(drafter, {4, 4, 4, 4}) == ids{4, 4});                 // the earliest place, and the text ends
  CHECK(proposed(drafter, request_after({1, 2, 3, 1}, 9)).mode() == proposal::deterministic);
}

TEST_CASE("no match, no draft", "[speculative][prompt_lookup]") {
  prompt_lookup drafter;
  CHECK(chain_after(drafter, {}).empty());
  CHECK(chain_after(drafter, {3}).empty());
  CHECK(chain_after(drafter, {1, 2, 3, 4}).empty());
  prompt_lookup only_long({.max_ngram = 3, .min_ngram = 2});
  CHECK(chain_after(only_long, {1, 2, 3, 9, 2}).empty());
  CHECK(chain_after(only_long, {1, 2, 3, 1, 2}) == ids{3, 1, 2});
  prompt_lookup off({.max_tokens = 0});
  CHECK(chain_after(off, {1, 1, 1}).empty());
}

TEST_CASE("the first match or the most recent, and copies that run on", "[speculative][prompt_lookup]") {
  const ids text{1, 2, 5, 6, 1, 2, 7, 1, 2};
  prompt_lookup first({.max_tokens = 4}), recent({.max_tokens = 4, .order = match_order::most_recent}),
      endless({.max_tokens = 8, .order = match_order::most_recent, .run_on = true});
  CHECK(chain_after(first, text) == ids{5, 6, 1, 2});
  CHECK(chain_after(recent, text) == ids{7, 1, 2});
  CHECK(chain_after(endless, text) == ids{7, 1, 2, 7, 1, 2, 7, 1});
  CHECK(chain_after(endless, {4, 4}) == ids(8, 4));
}

TEST_CASE("a periodic text is copied whole", "[speculative][prompt_lookup]") {
  ids text;
  for (int i = 0; i < 30; ++i) text.push_back(i % 5);
  prompt_lookup drafter;
  CHECK(chain_after(drafter, text) == ids{0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
}

TEST_CASE("limits of the request", "[speculative][prompt_lookup]") {
  const ids text{1, 2, 3, 4, 1, 2};
  prompt_lookup drafter;
  CHECK(chain_after(drafter, text, 2) == ids{3, 4});
  CHECK(tokens_of(proposed(drafter, request_after(text, 9, 1))) == ids{3});
  CHECK(chain_after(drafter, text, 0).empty());
}

// transformers pull request 31301: nothing after a stop token, which need not be there.
TEST_CASE("a draft ends with a stop token, or before it", "[speculative][prompt_lookup]") {
  const ids text{1, 2, 3, 7, 4, 1, 2}, stop{7}, at_once{3};
  draft_request request = request_after(text, 9);
  request.stop_tokens = stop;
  prompt_lookup with, before({.before_stop = true});
  CHECK(tokens_of(proposed(with, request)) == ids{3, 7});
  CHECK(tokens_of(proposed(before, request)) == ids{3});
  request.stop_tokens = at_once;
  CHECK(tokens_of(proposed(with, request)) == ids{3});
  CHECK(proposed(before, request).empty());
  request.stop_tokens = {};
  CHECK(tokens_of(proposed(before, request)) == ids{3, 7, 4, 1, 2});
}

TEST_CASE("banned tokens end a copy; an empty one makes way for the next match", "[speculative][prompt_lookup]") {
  prompt_lookup drafter({.max_ngram = 2, .banned = {3}});
  CHECK(chain_after(drafter, {1, 2, 3, 1, 2, 4, 1, 2}) == ids{4, 1, 2});
  CHECK(chain_after(drafter, {1, 2, 4, 3, 1, 2}) == ids{4});
  CHECK(chain_after(drafter, {2, 5, 1, 2, 3, 1, 2}) == ids{5, 1, 2});  // then the shorter n-gram
}

TEST_CASE("parameters of prompt lookup", "[speculative][prompt_lookup]") {
  CHECK_THROWS_WITH(prompt_lookup({.min_ngram = 0}), "prompt_lookup: min_ngram = 0 must be at least 1");
  CHECK_THROWS_WITH(prompt_lookup({.max_ngram = 1, .min_ngram = 2}),
                    "prompt_lookup: max_ngram = 1 must be at least min_ngram");
  CHECK(!prompt_lookup::make(prompt_lookup_options{.min_ngram = 0}));
  CHECK(prompt_lookup().describe() == "prompt_lookup(3, 1, 10)");
}

}  // namespace prompt_lookup_tests
