// SPDX-License-Identifier: MIT
#include <decant/speculative/dynamic_tree.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "toy_target.hpp"

namespace dynamic_tree_tests {

using decant::draft;
using decant::dynamic_tree;
using decant::dynamic_tree_options;
using decant::no_parent;
using decant::path_rows;
using decant::token_id;

const decant::testing::markov_model& model() {
  static const auto made = decant::testing::random_markov_model(5, 2, 41);
  return made;
}

auto drafter(const dynamic_tree_options& options) {
  return dynamic_tree(path_rows([](std::span<const token_id> text) { return model().row_after(text); }), options);
}

/// The value of a path: the product of the softmaxes of its rows.
double value_of(toy::tokens text, std::span<const token_id> path) {
  double value = 1;
  for (const token_id token : path) {
    double total = 0;
    const auto row = model().row_after(text);
    for (const float z : row) total += std::exp(static_cast<double>(z));
    value *= std::exp(static_cast<double>(row[static_cast<std::size_t>(token)])) / total;
    text.push_back(token);
  }
  return value;
}

toy::tokens path_of(const draft& tree, std::int32_t node) {
  toy::tokens path;
  for (; node != no_parent; node = tree.parent(node)) path.insert(path.begin(), tree.token(node));
  return path;
}

std::set<toy::tokens> paths(const draft& tree) {
  std::set<toy::tokens> all;
  for (std::size_t i = 0; i < tree.size(); ++i) all.insert(path_of(tree, static_cast<std::int32_t>(i)));
  return all;
}

draft grown(const dynamic_tree_options& options, const decant::draft_request& request) {
  draft out;
  drafter(options).propose(request, out);
  return out;
}

const toy::tokens text{0, 3};

TEST_CASE("dynamic_tree: parents are kept with their children, and no child is worth more", "[speculative]") {
  for (const std::size_t nodes : {1U, 3U, 7U, 20U, 60U}) {
    const draft tree = grown({.width = 3, .depth = 5, .nodes = nodes}, toy::request_after(text));
    CHECK(tree.size() == std::min<std::size_t>(nodes, 3 + 4 * 9));
    CHECK(tree.mode() == decant::proposal::deterministic);
    CHECK(paths(tree).size() == tree.size());
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const auto node = static_cast<std::int32_t>(i);
      CHECK(tree.parent(node) < node);
      const auto path = path_of(tree, node);
      CHECK(value_of(text, path) <= value_of(text, std::span(path).first(path.size() - 1)));
    }
  }
}

TEST_CASE("dynamic_tree: grown and ranked by hand", "[speculative]") {
  // Everything the tree can be made of: all paths within reach of the two best of each layer, by a search of its own.
  const dynamic_tree_options options{.width = 2, .depth = 3, .nodes = 6};
  const auto best = [](std::vector<toy::tokens> of, std::size_t count) {
    std::ranges::stable_sort(of, [](const auto& a, const auto& b) { return value_of(text, a) > value_of(text, b); });
    of.resize(std::min(of.size(), count));
    return of;
  };
  std::vector<toy::tokens> all, layer{{}};
  for (std::size_t depth = 0; depth < options.depth; ++depth) {
    std::vector<toy::tokens> next;
    for (const toy::tokens& path : layer) {
      std::vector<toy::tokens> children;
      for (token_id token = 0; token < 5; ++token) {
        children.push_back(path);
        children.back().push_back(token);
      }
      for (const toy::tokens& child : best(children, options.width)) next.push_back(child);
    }
    all.insert(all.end(), next.begin(), next.end());
    layer = best(next, options.width);
  }
  const auto kept = best(all, options.nodes);
  CHECK(paths(grown(options, toy::request_after(text))) == std::set<toy::tokens>(kept.begin(), kept.end()));
}

TEST_CASE("dynamic_tree: one child a node is the argmax chain", "[speculative]") {
  const draft tree = grown({.width = 1, .depth = 4, .nodes = 60}, toy::request_after(text));
  CHECK(tree.is_chain());
  toy::tokens history = text;
  for (const token_id token : tree.tokens()) {
    CHECK(token == toy::argmax(model().row_after(history)));
    history.push_back(token);
  }
  CHECK(tree.size() == 4);
}

TEST_CASE("dynamic_tree: room for all is the full tree", "[speculative]") {
  const draft tree = grown({.width = 25, .depth = 2, .nodes = 1000}, toy::request_after(text, 8, 1000));
  CHECK(paths(tree).size() == 5 + 25);
}

TEST_CASE("dynamic_tree: of equals the shallower and the earlier", "[speculative]") {
  // Sure rows: every child is worth as much as its parent.
  dynamic_tree sure(
      path_rows([](std::span<const token_id>) { return std::vector<float>{0, decant::gone, decant::gone}; }),
      {.width = 2, .depth = 4, .nodes = 3});
  draft out;
  sure.propose(toy::request_after(text), out);
  CHECK(out.size() == 3);
  CHECK(out.is_chain());
  // Flat rows: of 2 + 4 equal halves and quarters the two halves, then the first quarters.
  dynamic_tree flat(path_rows([](std::span<const token_id>) { return std::vector<float>{0, 0}; }),
                    {.width = 2, .depth = 2, .nodes = 4});
  out.clear();
  flat.propose(toy::request_after(text), out);
  CHECK(paths(out) == std::set<toy::tokens>{{0}, {1}, {0, 0}, {0, 1}});
}

TEST_CASE("dynamic_tree: what a request limits", "[speculative]") {
  const dynamic_tree_options options{.width = 3, .depth = 5, .nodes = 60};
  CHECK(grown(options, toy::request_after(text, 2)).size() == 3 + 9);
  CHECK(grown(options, toy::request_after(text, 0)).empty());
  CHECK(grown(options, toy::request_after(text, 8, 7)).size() == 7);
  auto request = toy::request_after(text);
  request.min_confidence = 1;
  CHECK(grown(options, request).empty());
  request.min_confidence = 0;
  const toy::tokens stop{0, 1, 2, 3, 4};
  request.stop_tokens = stop;
  CHECK(grown(options, request).max_depth() == 1);
  dynamic_tree spoilt(path_rows(
      [](std::span<const token_id> path) { return std::vector<float>{0, path.size() > 3 ? std::nanf("") : 1}; }));
  draft out;
  spoilt.propose(toy::request_after(text), out);
  CHECK(out.max_depth() == 2);
}

TEST_CASE("dynamic_tree: greedy output is the target's own", "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    toy::target model(5, seed);
    for (const std::size_t width : {1U, 2U, 5U}) {
      // The target itself draws its tree: with the argmax everywhere in it, all of the depth is accepted.
      dynamic_tree self(path_rows([&](std::span<const token_id> path) { return model.row_after(path); }),
                        {.width = width, .depth = 3, .nodes = 1000});
      const auto done = toy::greedy_rounds(model, self, {0, 1}, 41);
      CHECK(done.text == toy::greedy_text(model, {0, 1}, 41));
      if (width == 1) CHECK(done.passes == 10);
      dynamic_tree other(
          path_rows([](std::span<const token_id> path) { return dynamic_tree_tests::model().row_after(path); }),
          {.width = width, .depth = 3});
      CHECK(toy::greedy_rounds(model, other, {0, 1}, 41).text == done.text);
    }
  }
}

TEST_CASE("dynamic_tree: options of 0", "[speculative]") {
  using rows = path_rows<std::vector<float> (*)(std::span<const token_id>)>;
  const rows none(nullptr);
  for (const dynamic_tree_options& options :
       {dynamic_tree_options{.width = 0}, dynamic_tree_options{.depth = 0}, dynamic_tree_options{.nodes = 0}}) {
    CHECK_FALSE(dynamic_tree<rows>::make(none, options));
    CHECK_THROWS_AS(dynamic_tree<rows>(none, options), decant::parameter_error);
  }
  CHECK(dynamic_tree<rows>::make(none, dynamic_tree_options{.width = 0}).error().text() ==
        "dynamic_tree.width: dynamic_tree: width = 0 must be positive");
}

TEST_CASE("path_rows: rows of paths, and misuse", "[speculative]") {
  path_rows rows([](std::span<const token_id> path) { return std::vector<float>(path.begin(), path.end()); });
  const auto copy = [](std::span<const float> row) { return std::vector<float>(row.begin(), row.end()); };
  CHECK(copy(rows.start(text)) == std::vector<float>{0, 3});
  rows.grow(toy::tokens{7, 8}, std::vector<std::int32_t>{no_parent, no_parent});
  rows.grow(toy::tokens{9}, std::vector<std::int32_t>{1});
  CHECK(copy(rows.row(0)) == std::vector<float>{0, 3, 7});
  CHECK(copy(rows.row(2)) == std::vector<float>{0, 3, 8, 9});
  CHECK_THROWS_AS(rows.row(3), assertion_error);
  CHECK_THROWS_AS(rows.grow(toy::tokens{9}, std::vector<std::int32_t>{3}), assertion_error);
  rows.start(text);
  CHECK_THROWS_AS(rows.row(0), assertion_error);
}

}  // namespace dynamic_tree_tests
