// SPDX-License-Identifier: MIT
#include <decant/speculative/lookahead.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <decant/generate/stateless.hpp>

#include "speculative/proposals.hpp"
#include "support/catch.hpp"

namespace lookahead_tests {

using namespace decant;
using drafter_tests::ids;
using drafter_tests::proposed;
using drafter_tests::request_after;
using drafter_tests::tokens_of;

static_assert(DraftSource<lookahead>);

auto counting_model() {
  return stateless([](std::span<const token_id> tokens) {
    std::vector<float> row(10, 0.0F);
    row[static_cast<std::size_t>(tokens.back() + 1) % 10] = 5;
    return row;
  });
}

/// The tokens from below the root down to every leaf, in the order of leaves.
std::vector<ids> paths(const draft& tree) {
  std::vector<ids> found;
  std::vector<std::size_t> path;
  for (std::int32_t node = 0; node < static_cast<std::int32_t>(tree.size()); ++node) {
    if (tree.first_child(node) != no_node) continue;
    tree.path_to(node, path);
    ids& tokens = found.emplace_back();
    for (const std::size_t n : path) tokens.push_back(tree.tokens()[n]);
  }
  return found;
}

/// One round on a text, of which the draft's nodes in `accepted` come true; returns the draft.
template <class M>
draft round(lookahead& drafter, M& model, const ids& text, const std::vector<std::size_t>& accepted) {
  const draft tree = proposed(drafter, request_after(text, 20));
  model.truncate(0);
  if (text.size() > 1) (void)model.evaluate(std::span(text).first(text.size() - 1));
  ids nodes{text.back()};
  std::vector<std::int32_t> parents{no_parent};
  nodes.insert(nodes.end(), tree.tokens().begin(), tree.tokens().end());
  for (const std::int32_t parent : tree.parents()) parents.push_back(parent + 1);
  model.score(nodes, parents);
  std::vector<std::size_t> rows{0};
  for (const std::size_t node : accepted) rows.push_back(node + 1);
  drafter.observe(model, rows);
  return tree;
}

TEST_CASE("the window is a chain with its later guesses above each node", "[speculative][lookahead]") {
  lookahead drafter({.window = 3, .ngram = 4, .candidates = 2, .from_prompt = false});
  const draft tree = proposed(drafter, request_after({0, 1, 2, 3, 4, 5, 6, 7, 8}, 20));
  // Levels 0 1 2 | 3 4 5 | 6 7 8: columns 0 3 6, 1 4 7, 2 5 8.
  CHECK(paths(tree) == std::vector<ids>{{0, 3, 6}, {0, 1, 4, 7}, {0, 1, 2, 5, 8}});
  CHECK(tree.size() == 9);
  CHECK(tree.mode() == proposal::deterministic);
}

TEST_CASE("a round completes runs, and later rounds propose them", "[speculative][lookahead]") {
  auto model = counting_model();
  lookahead drafter({.window = 2, .ngram = 3, .candidates = 2, .from_prompt = false});
  const draft first = round(drafter, model, {3, 3}, {});
  CHECK(paths(first) == std::vector<ids>{{3, 3, 3}});  // equal nodes are one
  // Runs 3 3 4 and 3 3 4 are in the pool; the newest level is 4 4.
  const draft second = round(drafter, model, {3, 3}, {});
  CHECK(paths(second) == std::vector<ids>{{3, 4}, {3, 3, 4}});
  const draft third = round(drafter, model, {3, 3}, {});
  // Now 3 4 5 has been seen: it is the newest that begins with 3.
  CHECK(paths(third).front() == ids{4, 5});
}

TEST_CASE("runs of the text are proposed at once", "[speculative][lookahead]") {
  lookahead drafter({.window = 1, .ngram = 3, .candidates = 2});
  const auto all = paths(proposed(drafter, request_after({1, 2, 3, 1, 4, 5, 1}, 20)));
  CHECK(all.size() >= 2);
  CHECK(all[0] == ids{4, 5});  // the newest first
  CHECK(all[1] == ids{2, 3});
  lookahead without({.window = 1, .ngram = 3, .candidates = 2, .from_prompt = false});
  CHECK(paths(proposed(without, request_after({1, 2, 3, 1, 4, 5, 1}, 20))) == std::vector<ids>{{1, 2}});
}

TEST_CASE("the window gets narrower where there is no room", "[speculative][lookahead]") {
  const ids text{0, 1, 2, 3, 4, 5, 6, 7, 8};
  for (std::size_t depth = 0; depth < 8; ++depth) {
    for (std::size_t nodes = 0; nodes < 12; ++nodes) {
      lookahead drafter({.window = 3, .ngram = 4, .candidates = 2});
      const draft tree = proposed(drafter, request_after(text, depth, nodes));
      CHECK(tree.size() <= nodes);
      CHECK(tree.max_depth() <= depth);
      CHECK(tree.empty() == (depth < 3 || nodes < 3));
    }
  }
}

TEST_CASE("stop tokens do not get into the window, nor into the middle of a run", "[speculative][lookahead]") {
  auto model = counting_model();
  const ids stop{5}, text{4, 4};
  lookahead drafter({.window = 1, .ngram = 3, .candidates = 4});
  draft_request request = request_after(text, 9);
  request.stop_tokens = stop;
  for (int i = 0; i < 6; ++i) {
    const draft tree = proposed(drafter, request);
    for (const ids& path : paths(tree)) CHECK(std::find(path.begin(), path.end() - 1, 5) == path.end() - 1);
    model.truncate(0);
    (void)model.evaluate(ids{4});
    ids nodes{4};
    std::vector<std::int32_t> parents{no_parent};
    nodes.insert(nodes.end(), tree.tokens().begin(), tree.tokens().end());
    for (const std::int32_t parent : tree.parents()) parents.push_back(parent + 1);
    model.score(nodes, parents);
    drafter.observe(model, std::vector<std::size_t>{0});
  }
}

TEST_CASE("an empty text, a new generation, parameters", "[speculative][lookahead]") {
  lookahead drafter({.window = 2, .ngram = 2, .candidates = 1});
  CHECK(proposed(drafter, request_after({}, 9)).empty());
  CHECK(paths(proposed(drafter, request_after({1, 2}, 9))) == std::vector<ids>{{1, 2}});
  CHECK(paths(proposed(drafter, request_after({3, 1}, 9))).front() == ids{2});  // 1 2 is in the pool
  drafter.reset();
  CHECK(paths(proposed(drafter, request_after({3, 1}, 9))) == std::vector<ids>{{3, 1}});
  CHECK_THROWS_WITH(lookahead({.window = 0}), "lookahead: window = 0 must be at least 1");
  CHECK_THROWS_WITH(lookahead({.ngram = 1}), "lookahead: ngram = 1 must be at least 2");
  CHECK(lookahead().describe() == "lookahead(7, 5, 7)");
}

}  // namespace lookahead_tests
