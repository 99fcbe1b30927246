// SPDX-License-Identifier: MIT
#include <decant/speculative/suffix_draft.hpp>

#include <limits>
#include <memory>

#include "speculative/proposals.hpp"
#include "support/catch.hpp"

namespace suffix_draft_tests {

using namespace decant;
using drafter_tests::chain_after;
using drafter_tests::ids;
using drafter_tests::proposed;
using drafter_tests::request_after;
using drafter_tests::tokens_of;

static_assert(DraftSource<suffix_draft>);

std::shared_ptr<const suffix_automaton> corpus(const ids& text) {
  return std::make_shared<const suffix_automaton>(text);
}

TEST_CASE("the longer the match, the longer the draft", "[speculative][suffix_draft]") {
  suffix_draft drafter({.factor = 1, .min_probability = 0});
  CHECK(chain_after(drafter, {1, 2, 3, 4, 9, 1}) == ids{2});
  CHECK(chain_after(drafter, {1, 2, 3, 4, 9, 1, 2}) == ids{3, 4});
  CHECK(chain_after(drafter, {1, 2, 3, 4, 9, 1, 2, 3}) == ids{4, 9, 1});
  suffix_draft longer({.factor = 0.5, .offset = 2, .min_probability = 0});
  CHECK(chain_after(longer, {1, 2, 3, 4, 9, 1, 2}) == ids{3, 4, 9});
  suffix_draft off({.factor = 0});
  CHECK(chain_after(off, {1, 1, 1, 1}).empty());
}

TEST_CASE("drafts follow the counts, lower ids among equals", "[speculative][suffix_draft]") {
  suffix_draft drafter({.offset = 1, .min_probability = 0});
  CHECK(chain_after(drafter, {1, 3, 9, 1, 2, 8, 1, 3, 7, 1}, 1) == ids{3});
  CHECK(chain_after(drafter, {1, 5, 8, 1, 4, 9, 1}, 1) == ids{4});
}

TEST_CASE("a path ends where its probability falls below the least", "[speculative][suffix_draft]") {
  const ids text{1, 2, 1, 3, 1, 2, 1};  // after 1: 2 with 2/4; then 1 with certainty, 3 with 1/4
  suffix_draft half({.factor = 0, .offset = 9, .min_probability = 0.5}),
      more({.factor = 0, .offset = 9, .min_probability = 0.51});
  const ids drafted = chain_after(half, {1, 2, 9, 1, 3, 8, 1});
  CHECK(drafted.empty());  // 1/3 each
  CHECK(chain_after(half, {1, 2, 9, 7, 1}) == ids{2, 9, 7, 1});
  CHECK(chain_after(more, {1, 2, 9, 7, 1}).empty());
  CHECK(!chain_after(half, text).empty());
}

TEST_CASE("a corpus is searched beside the text, and the better match is taken", "[speculative][suffix_draft]") {
  const auto earlier = corpus({5, 6, 7, 8, no_token, 5, 6, 7, 8});
  suffix_draft drafter({.factor = 1, .min_probability = 0}, earlier);
  CHECK(chain_after(drafter, {9, 5, 6}) == ids{7, 8});
  CHECK(chain_after(drafter, {9, 5, 6, 7, 8}).empty());          // what follows is a boundary
  CHECK(chain_after(drafter, {4, 6, 1, 2, 4, 6}) == ids{1, 2});  // the text's own match is longer
  CHECK(earlier->size() == 9);
}

TEST_CASE("matches are cut at the longest that counts", "[speculative][suffix_draft]") {
  suffix_draft drafter({.max_match = 2, .factor = 1, .min_probability = 0});
  CHECK(chain_after(drafter, {1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4}) == ids{5, 6});
  CHECK(chain_after(drafter, ids(100, 3), 50).size() == 2);
}

TEST_CASE("a tree holds the most probable continuations", "[speculative][suffix_draft]") {
  suffix_draft drafter({.factor = 0, .offset = 4, .min_probability = 0.01, .tree = true});
  // Of the four 1 two are followed by 2, one by 3; of the two 1 2 one by 1 and one by 5.
  const ids text{1, 2, 1, 2, 5, 1, 3, 9, 1};
  const draft tree = proposed(drafter, request_after(text, 8));
  CHECK(tokens_of(tree) == ids{2, 3, 1, 5});
  CHECK(tree.parent(1) == no_parent);
  CHECK(tree.parent(2) == 0);
  CHECK(tree.parent(3) == 0);
  CHECK(tokens_of(proposed(drafter, request_after(text, 8, 3))) == ids{2, 3, 1});
  const draft flat = proposed(drafter, request_after(text, 1));
  CHECK(tokens_of(flat) == ids{2, 3});
  CHECK(flat.child_count(no_parent) == 2);
}

TEST_CASE("it follows texts that change, and periodic ones", "[speculative][suffix_draft]") {
  suffix_draft drafter({.factor = 4, .min_probability = 0}), fresh({.factor = 4, .min_probability = 0});
  const ids first{1, 2, 3, 1, 2, 3, 1}, other{1, 2, 4, 1, 2};
  for (const ids& text : {first, other, first, ids{}, other}) {
    suffix_draft anew({.factor = 4, .min_probability = 0});
    CHECK(chain_after(drafter, text) == chain_after(anew, text));
  }
  ids periodic;
  for (int i = 0; i < 40; ++i) periodic.push_back(i % 4);
  CHECK(chain_after(fresh, periodic, 6) == ids{0, 1, 2, 3, 0, 1});
}

TEST_CASE("a draft ends with a stop token, and keeps to the request", "[speculative][suffix_draft]") {
  const ids text{1, 2, 7, 4, 1, 2}, stop{7};
  suffix_draft drafter({.offset = 5, .min_probability = 0});
  draft_request request = request_after(text, 9);
  request.stop_tokens = stop;
  CHECK(tokens_of(proposed(drafter, request)) == ids{7});
  CHECK(chain_after(drafter, text, 2) == ids{7, 4});
  CHECK(tokens_of(proposed(drafter, request_after(text, 9, 1))) == ids{7});
  CHECK(chain_after(drafter, text, 0).empty());
}

TEST_CASE("parameters of the suffix draft", "[speculative][suffix_draft]") {
  CHECK_THROWS_WITH(suffix_draft({.max_match = 0}), "suffix_draft: max_match = 0 must be at least 1");
  CHECK_THROWS_WITH(suffix_draft({.factor = -1}), "suffix_draft: factor = -1 must be a number >= 0");
  CHECK_THROWS_AS(suffix_draft({.offset = std::numeric_limits<double>::quiet_NaN()}), parameter_error);
  CHECK_THROWS_AS(suffix_draft({.min_probability = -0.1}), parameter_error);
  CHECK(!suffix_draft::make(suffix_draft_options{.max_match = 0}));
  CHECK(suffix_draft().describe() == "suffix_draft(1, 0, 0.1)");
}

}  // namespace suffix_draft_tests
