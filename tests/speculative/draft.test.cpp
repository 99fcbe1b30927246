// SPDX-License-Identifier: MIT
#include <decant/speculative/draft.hpp>

#include "support/catch.hpp"

namespace draft_tests {

using decant::draft;
using decant::no_node;
using decant::no_parent;
using decant::proposal;
using decant::token_id;
using path = std::vector<std::size_t>;

/// Root -> 5, 7; 5 -> 6, 6, 8; 8 -> 9.
draft sample_tree() {
  draft tree;
  tree.clear(proposal::with_replacement);
  const auto a = tree.add(5);
  const auto b = tree.add(7);
  CHECK(a == 0);
  CHECK(b == 1);
  CHECK(tree.add(6, a) == 2);
  CHECK(tree.add(6, a) == 3);
  const auto e = tree.add(8, a);
  CHECK(tree.add(9, e) == 5);
  return tree;
}

TEST_CASE("a draft is a tree in the form that a TreeModel takes", "[speculative]") {
  const draft tree = sample_tree();
  CHECK(std::vector<token_id>(tree.tokens().begin(), tree.tokens().end()) == std::vector<token_id>{5, 7, 6, 6, 8, 9});
  CHECK(std::vector<std::int32_t>(tree.parents().begin(), tree.parents().end()) ==
        std::vector<std::int32_t>{no_parent, no_parent, 0, 0, 0, 4});
  CHECK(tree.size() == 6);
  CHECK(tree.mode() == proposal::with_replacement);
  CHECK(!tree.is_chain());
  CHECK(tree.max_depth() == 3);
}

TEST_CASE("children come in the order in which they were added", "[speculative]") {
  const draft tree = sample_tree();
  CHECK(tree.first_child(no_parent) == 0);
  CHECK(tree.next_sibling(0) == 1);
  CHECK(tree.next_sibling(1) == no_node);
  CHECK(tree.first_child(0) == 2);
  CHECK(tree.next_sibling(2) == 3);
  CHECK(tree.next_sibling(3) == 4);
  CHECK(tree.next_sibling(4) == no_node);
  CHECK(tree.first_child(1) == no_node);
  CHECK(tree.child_count(no_parent) == 2);
  CHECK(tree.child_count(0) == 3);
  CHECK(tree.child_count(5) == 0);
  CHECK(tree.child_with(0, 6) == 2);
  CHECK(tree.child_with(0, 8) == 4);
  CHECK(tree.child_with(0, 9) == no_node);
  CHECK(tree.child_with(no_parent, 7) == 1);
}

TEST_CASE("depths and paths", "[speculative]") {
  const draft tree = sample_tree();
  CHECK(tree.depth(no_parent) == 0);
  CHECK(tree.depth(1) == 1);
  CHECK(tree.depth(5) == 3);
  path found;
  tree.path_to(5, found);
  CHECK(found == path{0, 4, 5});
  tree.path_to(no_parent, found);
  CHECK(found.empty());
}

TEST_CASE("a chain is a tree", "[speculative]") {
  draft chain;
  CHECK(chain.is_chain());
  CHECK(chain.max_depth() == 0);
  std::int32_t last = no_parent;
  for (token_id token = 0; token < 4; ++token) last = chain.add(token, last);
  CHECK(chain.is_chain());
  CHECK(chain.max_depth() == 4);
  CHECK(chain.mode() == proposal::deterministic);
}

TEST_CASE("the first path of a tree is a chain with the same tokens and laws", "[speculative]") {
  draft tree = sample_tree();  // first children: 5, 6
  tree.children_law(no_parent).ids = {5};
  tree.children_law(0).ids = {6};
  tree.children_law(4).ids = {9};
  tree.keep_first_path();
  CHECK(tree.is_chain());
  CHECK(std::vector<token_id>(tree.tokens().begin(), tree.tokens().end()) == std::vector<token_id>{5, 6});
  CHECK(tree.children_law(no_parent).ids == std::vector<token_id>{5});
  CHECK(tree.children_law(0).ids == std::vector<token_id>{6});
  CHECK(tree.first_child(1) == no_node);
  CHECK(tree.next_sibling(0) == no_node);
  CHECK(tree.add(3, 1) == 2);
  CHECK(tree.depth(2) == 3);

  draft late;  // the first path lies behind other branches
  late.add(1);
  late.add(2);
  const auto below = late.add(4, 0);
  const auto last = late.add(6, below);
  late.children_law(0).ids = {4};
  late.children_law(below).ids = {6};
  late.children_law(last).ids = {7};
  late.keep_first_path();
  CHECK(std::vector<token_id>(late.tokens().begin(), late.tokens().end()) == std::vector<token_id>{1, 4, 6});
  CHECK(late.children_law(0).ids == std::vector<token_id>{4});
  CHECK(late.children_law(1).ids == std::vector<token_id>{6});
  CHECK(late.children_law(2).ids == std::vector<token_id>{7});
}

TEST_CASE("laws belong to nodes, stay where they are and are empty after clear", "[speculative]") {
  draft tree;
  decant::law& at_root = tree.children_law(no_parent);
  at_root = {{3}, {1.0}, 1.0, {}};
  for (token_id token = 0; token < 1000; ++token) tree.add(token);
  CHECK(&at_root == &tree.children_law(no_parent));
  CHECK(at_root.ids == std::vector<token_id>{3});
  tree.children_law(999).ids = {1};
  tree.clear();
  CHECK(tree.empty());
  CHECK(tree.first_child(no_parent) == no_node);
  CHECK(tree.children_law(no_parent).empty());
  tree.add(1);
  CHECK(tree.children_law(0).empty());
}

TEST_CASE("a node that is not there is misuse", "[speculative]") {
  draft tree = sample_tree();
  CHECK_THROWS_AS(tree.add(1, 6), assertion_error);
  CHECK_THROWS_AS(tree.add(1, -2), assertion_error);
  CHECK_THROWS_AS(tree.token(no_parent), assertion_error);
  CHECK_THROWS_AS(tree.parent(17), assertion_error);
  CHECK_THROWS_AS(tree.children_law(6), assertion_error);
}

struct least {
  void propose(const decant::draft_request&, draft&) {}
};
struct not_a_drafter {
  void suggest(const decant::draft_request&, draft&) {}
};
static_assert(decant::DraftSource<least>);
static_assert(!decant::DraftSource<not_a_drafter>);

}  // namespace draft_tests
