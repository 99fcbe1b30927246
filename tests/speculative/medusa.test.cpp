// SPDX-License-Identifier: MIT
#include <decant/speculative/medusa.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "toy_target.hpp"

namespace medusa_tests {

using decant::draft;
using decant::medusa;
using decant::no_parent;
using decant::token_id;
using decant::tree_shape;

static_assert(decant::DraftSource<medusa>);

const std::vector<std::size_t> widths{2, 3, 1};

/// A target that holds the text, with all its rows shown.
toy::target shown(medusa& drafter, const toy::tokens& text, std::size_t heads = 3) {
  toy::target model(5, 21, heads);
  model.score(text);
  std::vector<std::size_t> rows(text.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  drafter.observe(model, rows);
  return model;
}

/// The tokens of a row, the most probable first.
toy::tokens ranked(std::span<const float> row) {
  toy::tokens ids(row.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(
      ids, [&](token_id a, token_id b) { return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)]; });
  return ids;
}

TEST_CASE("medusa: every node has its head's pick", "[speculative]") {
  const tree_shape shape = tree_shape::cartesian(widths);
  medusa drafter(shape);
  const toy::tokens text{0, 3, 1};
  const toy::target model = shown(drafter, text);
  draft out;
  const toy::tokens waiting{0, 3, 1, 4};
  drafter.propose(toy::request_after(waiting), out);
  CHECK(out.mode() == decant::proposal::deterministic);
  REQUIRE(out.size() == 2 + 6 + 6);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const tree_shape::node& node = shape.nodes()[i];
    CHECK(out.parents()[i] == node.parent);
    CHECK(out.tokens()[i] == ranked(model.head(node.depth).row_after(text))[node.pick]);
  }
}

TEST_CASE("medusa: limits cut the tree and leave a tree", "[speculative]") {
  medusa drafter(tree_shape::cartesian(widths));
  const toy::target model = shown(drafter, {0, 3, 1});
  const toy::tokens waiting{0, 3, 1, 4};
  const auto size = [&](const decant::draft_request& request) {
    draft out;
    drafter.propose(request, out);
    return out.size();
  };
  CHECK(size(toy::request_after(waiting, 2)) == 8);
  CHECK(size(toy::request_after(waiting, 0)) == 0);
  CHECK(size(toy::request_after(waiting, 8, 5)) == 5);
  auto request = toy::request_after(waiting);
  request.min_confidence = 1;
  CHECK(size(request) == 0);

  // The first pick of head 1 stops: its six descendants and no others are left out.
  const toy::tokens stop{ranked(model.head(1).row_after(toy::tokens{0, 3, 1}))[0]};
  request = toy::request_after(waiting, 2);
  request.stop_tokens = stop;
  CHECK(size(request) == 5);
}

TEST_CASE("medusa: fewer heads than the shape is deep, and fewer tokens than it is wide", "[speculative]") {
  medusa drafter(tree_shape::cartesian(std::vector<std::size_t>{9, 1, 1}));
  const toy::target model = shown(drafter, {0, 3, 1}, 2);
  draft out;
  drafter.propose(toy::request_after(toy::tokens{0, 3, 1, 4}), out);
  CHECK(out.size() == 5 + 5);
  CHECK(out.max_depth() == 2);
}

TEST_CASE("medusa: nothing to say before it has seen the target, nor after a reset", "[speculative]") {
  medusa drafter(tree_shape::chain(3));
  draft out;
  drafter.propose(toy::request_after(toy::tokens{1, 2}), out);
  CHECK(out.empty());
  const toy::target model = shown(drafter, {1, 2});
  drafter.propose(toy::request_after(toy::tokens{1, 2, 3}), out);
  CHECK(out.size() == 3);
  drafter.reset();
  out.clear();
  drafter.propose(toy::request_after(toy::tokens{1, 2, 3}), out);
  CHECK(out.empty());
}

TEST_CASE("medusa: greedy output is the target's own, whatever the heads say", "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    toy::target model(4, seed);
    medusa drafter(tree_shape::cartesian(widths));
    const auto done = toy::greedy_rounds(model, drafter, {0, 1}, 30);
    CHECK(done.text == toy::greedy_text(model, {0, 1}, 30));
    CHECK(done.passes < 30);
  }
}

TEST_CASE("medusa: a wider tree holds the narrower one, so it is accepted at least as far", "[speculative]") {
  std::size_t narrow = 0, wide = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    toy::target model(4, seed);
    medusa chain(tree_shape::chain(3)), tree(tree_shape::cartesian(std::vector<std::size_t>{4, 4, 4}));
    narrow += toy::greedy_rounds(model, chain, {0, 1}, 40).passes;
    const auto full = toy::greedy_rounds(model, tree, {0, 1}, 40);
    wide += full.passes;
    // All tokens stand in the tree at every depth: three drafts and the target's own a pass.
    CHECK(full.passes == 10);
  }
  CHECK(wide < narrow);
}

}  // namespace medusa_tests
