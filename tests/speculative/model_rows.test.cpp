// SPDX-License-Identifier: MIT
#include <decant/speculative/model_rows.hpp>

#include <cstddef>
#include <span>
#include <vector>

#include <decant/generate/stateless.hpp>
#include <decant/speculative/dynamic_tree.hpp>
#include <decant/testing/markov_model.hpp>

#include "speculative/proposals.hpp"
#include "support/catch.hpp"

namespace model_rows_tests {

using namespace decant;
using drafter_tests::ids;
using row_copy = std::vector<float>;
using links = std::vector<std::int32_t>;

row_copy copy(std::span<const float> row) { return {row.begin(), row.end()}; }

/// A model that scores no trees, or does; with a context that ends.
template <class M>
struct limited : M {
  explicit limited(M model, std::size_t length) : M(std::move(model)), length_(length) {}
  [[nodiscard]] std::size_t sequence_length() const { return length_; }
  std::size_t length_;
};

template <class M>
void check_rows(M& model, const testing::markov_model& table) {
  model_rows rows(model);
  static_assert(TreeRows<model_rows<M>>);
  const ids text{1, 0, 2};
  CHECK(copy(rows.start(text)) == copy(table.row_after(text)));
  rows.grow(ids{0, 2}, links{no_parent, no_parent});
  CHECK(copy(rows.row(0)) == copy(table.row_after(ids{1, 0, 2, 0})));
  CHECK(copy(rows.row(1)) == copy(table.row_after(ids{1, 0, 2, 2})));
  rows.grow(ids{1, 0, 1}, links{1, 0, 2});
  CHECK(copy(rows.row(2)) == copy(table.row_after(ids{1, 0, 2, 2, 1})));
  CHECK(copy(rows.row(3)) == copy(table.row_after(ids{1, 0, 2, 0, 0})));
  CHECK(copy(rows.row(4)) == copy(table.row_after(ids{1, 0, 2, 2, 1, 1})));
  CHECK_THROWS_AS(rows.row(5), assertion_error);
  CHECK_THROWS_AS(rows.grow(ids{1}, links{7}), assertion_error);
  // Another text, with the tree forgotten.
  CHECK(copy(rows.start(ids{1, 0, 1, 1})) == copy(table.row_after(ids{1, 0, 1, 1})));
  CHECK_THROWS_AS(rows.row(0), assertion_error);
  // The context ends after six tokens.
  rows.grow(ids{0, 0}, links{no_parent, 0});
  CHECK(!is_gone(rows.row(1)[0]));
  rows.grow(ids{0}, links{1});
  CHECK(rows.row(2).size() == 3);
  for (const float z : rows.row(2)) CHECK(is_gone(z));
  CHECK(rows.start(ids(7, 0)).empty());
  CHECK(rows.start({}).empty());
}

TEST_CASE("a model gives the rows of a tree, in one pass or path by path", "[speculative][model_rows]") {
  const auto table = testing::random_markov_model(3, 3, 4);
  stateless whole([&](std::span<const token_id> tokens) { return table.row_after(tokens); }, 3);
  static_assert(TreeModel<decltype(whole)>);
  limited<testing::markov_model> sequential(table, 6);
  static_assert(!TreeModel<limited<testing::markov_model>>);
  limited<decltype(whole)> tree(whole, 6);
  check_rows(sequential, table);
  check_rows(tree, table);
}

TEST_CASE("a dynamic tree over any model", "[speculative][model_rows]") {
  const auto table = testing::random_markov_model(4, 2, 5);
  stateless model([&](std::span<const token_id> tokens) { return table.row_after(tokens); }, 4);
  auto sequential = table;
  const auto function = [&](std::span<const token_id> tokens) { return table.row_after(tokens); };
  const dynamic_tree_options options{.width = 2, .depth = 4, .nodes = 9};
  dynamic_tree over_tree(model_rows{model}, options);
  dynamic_tree over_paths(model_rows{sequential}, options);
  dynamic_tree over_function(path_rows{function}, options);
  for (token_id last = 0; last < 4; ++last) {
    const ids text{2, last};
    const auto wanted = drafter_tests::proposed(over_function, drafter_tests::request_after(text, 9));
    for (const draft& got : {drafter_tests::proposed(over_tree, drafter_tests::request_after(text, 9)),
                             drafter_tests::proposed(over_paths, drafter_tests::request_after(text, 9))}) {
      CHECK(drafter_tests::tokens_of(got) == drafter_tests::tokens_of(wanted));
      CHECK(links(got.parents().begin(), got.parents().end()) ==
            links(wanted.parents().begin(), wanted.parents().end()));
    }
  }
}

}  // namespace model_rows_tests
