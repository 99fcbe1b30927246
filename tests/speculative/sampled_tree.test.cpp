// SPDX-License-Identifier: MIT
#include <decant/speculative/sampled_tree.hpp>

#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/testing/enumerate.hpp>
#include <decant/testing/markov_model.hpp>

#include "speculative/proposals.hpp"
#include "support/catch.hpp"

namespace sampled_tree_tests {

using namespace decant;
using drafter_tests::ids;
using drafter_tests::proposed;
using drafter_tests::request_after;
using drafter_tests::tokens_of;

const auto table = testing::random_markov_model(4, 1, 8);
auto rows() {
  return path_rows([](std::span<const token_id> tokens) { return table.row_after(tokens); });
}
auto decoder() { return top_k(3) | multinomial{}; }

TEST_CASE("every node has its children, and the law that they were drawn from", "[speculative][sampled_tree]") {
  auto reference = decoder();
  for (const bool replacement : {false, true}) {
    sampled_tree drafter(rows(), decoder(), {.children = {3, 2, 1}, .replacement = replacement});
    const ids text{0, 2};
    const draft tree = proposed(drafter, request_after(text, 9));
    CHECK(tree.mode() == (replacement ? proposal::with_replacement : proposal::without_replacement));
    CHECK(tree.size() == 3 + 6 + 6);
    CHECK(tree.max_depth() == 3);
    std::vector<std::size_t> path;
    for (std::int32_t node = no_parent; node < static_cast<std::int32_t>(tree.size()); ++node) {
      if (tree.first_child(node) == no_node) continue;
      ids history = text;
      tree.path_to(node, path);
      for (const std::size_t n : path) history.push_back(tree.tokens()[n]);
      CHECK(tree.children_law(node) == reference.law_of(table.row_after(history), context_after(history, 2, {})));
      ids seen;
      for (auto child = tree.first_child(node); child != no_node; child = tree.next_sibling(child)) {
        CHECK(tree.children_law(node).probability(tree.token(child)) > 0);
        if (!replacement) CHECK(std::ranges::find(seen, tree.token(child)) == seen.end());
        seen.push_back(tree.token(child));
      }
    }
  }
}

TEST_CASE("children have the law of draws with and without replacement", "[speculative][sampled_tree]") {
  const ids text{1};
  const law p = decoder().law_of(table.row_after(text), context_after(text, 1, {}));
  for (const bool replacement : {false, true}) {
    sampled_tree drafter(rows(), decoder(), {.children = {2}, .replacement = replacement});
    const auto pairs = testing::enumerate_law([&](decision_hook& hook) {
      draft_request request = request_after(text, 1);
      request.draws = request.draws.with_hook(&hook);
      return tokens_of(proposed(drafter, request));
    });
    testing::result_law<ids> expected;
    for (const token_id a : p.ids) {
      for (const token_id b : p.ids) {
        const double first = p.probability(a), second = p.probability(b);
        if (replacement) {
          expected[{a, b}] = first * second;
        } else if (a != b) {
          expected[{a, b}] = first * second / (1 - first);
        }
      }
    }
    CHECK(testing::distance(pairs, expected) < 1e-14);
  }
}

TEST_CASE("a law with few tokens gives few children without replacement", "[speculative][sampled_tree]") {
  sampled_tree drafter(rows(), top_k(2) | multinomial{}, {.children = {5}});
  CHECK(proposed(drafter, request_after({1}, 3)).size() == 2);
  sampled_tree twice(rows(), top_k(2) | multinomial{}, {.children = {5}, .replacement = true});
  CHECK(proposed(twice, request_after({1}, 3)).size() == 5);
}

TEST_CASE("trees keep to the request", "[speculative][sampled_tree]") {
  sampled_tree drafter(rows(), decoder(), {.children = {2, 2, 2}});
  CHECK(proposed(drafter, request_after({1}, 0)).empty());
  CHECK(proposed(drafter, request_after({1}, 1)).size() == 2);
  CHECK(proposed(drafter, request_after({1}, 9, 5)).size() == 5);
  draft_request request = request_after({1}, 9);
  const ids text{1}, all{0, 1, 2, 3};
  request.context.tokens = text;
  request.stop_tokens = all;
  CHECK(proposed(drafter, request).size() == 2);
  request.stop_tokens = {};
  request.min_confidence = 1.01;
  CHECK(proposed(drafter, request).empty());
}

TEST_CASE("bad rows end a tree", "[speculative][sampled_tree]") {
  const auto failing = [](std::span<const token_id> tokens) {
    std::vector<float> row(4, 0.0F);
    if (tokens.back() == 1) row.assign(4, gone);
    return row;
  };
  sampled_tree drafter(path_rows{failing}, temperature(1) | multinomial{}, {.children = {4, 1}});
  const draft tree = proposed(drafter, request_after({0}, 9));
  CHECK(tree.size() == 4 + 3);
  CHECK(tree.first_child(tree.child_with(no_parent, 1)) == no_node);
  CHECK(proposed(drafter, request_after({1}, 9)).empty());
}

TEST_CASE("parameters of the sampled tree", "[speculative][sampled_tree]") {
  using tree = decltype(sampled_tree(rows(), decoder()));
  CHECK_THROWS_WITH(tree(rows(), decoder(), {.children = {}}),
                    "sampled_tree: children = 0 layers, must be at least one");
  CHECK_THROWS_WITH(tree(rows(), decoder(), {.children = {2, 0}}),
                    "sampled_tree: children = 0 must be positive in every layer");
}

}  // namespace sampled_tree_tests
