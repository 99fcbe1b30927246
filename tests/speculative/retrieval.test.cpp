// SPDX-License-Identifier: MIT
#include <decant/speculative/retrieval.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "math/bits.hpp"
#include "speculative/proposals.hpp"
#include "support/catch.hpp"

namespace retrieval_tests {

using namespace decant;
using drafter_tests::ids;
using drafter_tests::proposed;
using drafter_tests::request_after;
using drafter_tests::tokens_of;

static_assert(DraftSource<retrieval_draft>);

ids random_text(std::size_t size, std::uint64_t alphabet, std::uint64_t seed) {
  test_bits::splitmix next(seed);
  ids text;
  while (text.size() < size) text.push_back(static_cast<token_id>(next.below(alphabet)));
  return text;
}

TEST_CASE("a store finds every run of tokens, and nothing else", "[speculative][retrieval]") {
  for (const std::uint64_t alphabet : {1U, 2U, 4U}) {
    ids text = random_text(60, alphabet, alphabet);
    text[30] = no_token;
    const retrieval_store store(text);
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const ids wanted = random_text(1 + seed % 5, alphabet + 1, 100 + seed);
      std::vector<std::uint32_t> places;
      for (std::uint32_t i = 0; i + wanted.size() <= text.size(); ++i) {
        if (std::equal(wanted.begin(), wanted.end(), text.begin() + i)) places.push_back(i);
      }
      const auto found = store.find(wanted);
      std::vector<std::uint32_t> got(store.places(found).begin(), store.places(found).end());
      std::ranges::sort(got);
      CHECK(got == places);
      std::map<token_id, std::size_t> next, naive;
      store.visit(found, wanted.size(),
                  [&](token_id token, const retrieval_store::range& group) { next[token] = group.size(); });
      for (const std::uint32_t place : places) {
        const std::size_t at = place + wanted.size();
        if (at < text.size() && text[at] != no_token) ++naive[text[at]];
      }
      CHECK(next == naive);
    }
  }
  CHECK(retrieval_store(ids{}).find(ids{1}).empty());
  CHECK(retrieval_store(ids(300, 5)).find(ids(7, 5)).size() == 294);
}

TEST_CASE("the draft is the trie of the most frequent continuations", "[speculative][retrieval]") {
  const auto store =
      std::make_shared<const retrieval_store>(ids{1, 2, 3, 4, no_token, 1, 2, 3, 5, no_token, 1, 2, 6, no_token, 2, 9});
  retrieval_draft drafter(store);
  const draft all = proposed(drafter, request_after({8, 1, 2}, 9));
  CHECK(tokens_of(all) == ids{3, 6, 4, 5});  // 3 twice, then once each: the shallower, the lower
  CHECK(all.parent(2) == 0);
  CHECK(all.parent(3) == 0);
  CHECK(all.child_count(no_parent) == 2);
  CHECK(all.mode() == proposal::deterministic);
  CHECK(tokens_of(proposed(drafter, request_after({8, 1, 2}, 9, 2))) == ids{3, 6});
  CHECK(tokens_of(proposed(drafter, request_after({8, 1, 2}, 1))) == ids{3, 6});
  CHECK(tokens_of(proposed(drafter, request_after({8, 7, 2}, 1))) == ids{3, 6, 9});  // only 2 is known
  CHECK(proposed(drafter, request_after({8, 1, 2}, 0)).empty());
}

TEST_CASE("the longest match that goes on decides", "[speculative][retrieval]") {
  const auto store =
      std::make_shared<const retrieval_store>(ids{5, 6, 7, no_token, 4, 6, 8, no_token, 4, 6, 8, no_token, 3, 5, 6});
  retrieval_draft drafter(store);
  CHECK(tokens_of(proposed(drafter, request_after({5, 6}, 1))) == ids{7});
  CHECK(tokens_of(proposed(drafter, request_after({3, 5, 6}, 1))) == ids{7});  // 3 5 6 ends the store
  CHECK(tokens_of(proposed(drafter, request_after({0, 6}, 1))) == ids{8, 7});
  CHECK(proposed(drafter, request_after({7}, 3)).empty());
  CHECK(proposed(drafter, request_after({1}, 3)).empty());
  CHECK(proposed(drafter, request_after({}, 3)).empty());
  retrieval_draft longer(store, {.max_match = 3, .min_match = 2});
  CHECK(proposed(longer, request_after({0, 6}, 1)).empty());
  retrieval_draft shorter(store, {.max_match = 1});
  CHECK(tokens_of(proposed(shorter, request_after({5, 6}, 1))) == ids{8, 7});
}

TEST_CASE("nothing follows a stop token", "[speculative][retrieval]") {
  const auto store = std::make_shared<const retrieval_store>(ids{1, 2, 3, 1, 2, 3, 1, 2, 3});
  retrieval_draft drafter(store);
  const ids text{1}, stop{3};
  draft_request request = request_after(text, 8);
  request.stop_tokens = stop;
  CHECK(tokens_of(proposed(drafter, request)) == ids{2, 3});
}

TEST_CASE("parameters of retrieval", "[speculative][retrieval]") {
  const auto store = std::make_shared<const retrieval_store>(ids{1});
  CHECK_THROWS_WITH(retrieval_draft(store, {.min_match = 0}), "retrieval_draft: min_match = 0 must be at least 1");
  CHECK_THROWS_AS(retrieval_draft(store, {.max_match = 1, .min_match = 2}), parameter_error);
  CHECK_THROWS_AS(retrieval_draft(nullptr), assertion_error);
  CHECK(retrieval_draft(store).describe() == "retrieval_draft(16, 1)");
}

}  // namespace retrieval_tests
