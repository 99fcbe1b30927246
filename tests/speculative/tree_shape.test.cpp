// SPDX-License-Identifier: MIT
#include <decant/speculative/tree_shape.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tree_shape_tests {

using decant::no_parent;
using decant::tree_shape;
using node = tree_shape::node;
using nodes = std::vector<node>;
using shares = std::vector<std::vector<double>>;

nodes of(const tree_shape& shape) { return {shape.nodes().begin(), shape.nodes().end()}; }

TEST_CASE("tree_shape: a chain", "[speculative]") {
  CHECK(of(tree_shape::chain(3)) == nodes{{no_parent, 0, 1}, {0, 0, 2}, {1, 0, 3}});
  CHECK(tree_shape::chain(0).nodes().empty());
  CHECK(tree_shape::chain(3).max_depth() == 3);
}

TEST_CASE("tree_shape: every combination of picks", "[speculative]") {
  const tree_shape shape = tree_shape::cartesian(std::vector<std::size_t>{3, 2});
  CHECK(of(shape) == nodes{{no_parent, 0, 1},
                           {no_parent, 1, 1},
                           {no_parent, 2, 1},
                           {0, 0, 2},
                           {0, 1, 2},
                           {1, 0, 2},
                           {1, 1, 2},
                           {2, 0, 2},
                           {2, 1, 2}});
  CHECK(shape.picks(1) == 3);
  CHECK(shape.picks(2) == 2);
  CHECK(shape.picks(3) == 0);
}

TEST_CASE("tree_shape: the likely nodes by hand", "[speculative]") {
  // Values: a 0.6, b 0.3; under a 0.6 * 0.5 = 0.3 and 0.6 * 0.25 = 0.15; under b 0.15.
  const shares known{{0.6, 0.3}, {0.5, 0.25}};
  // 0.3 twice: b and a's first child could be added at the same time, the child was offered first.
  CHECK(of(tree_shape::likely(known, 4)) == nodes{{no_parent, 0, 1}, {0, 0, 2}, {no_parent, 1, 1}, {0, 1, 2}});
  CHECK(of(tree_shape::likely(known, 1)) == nodes{{no_parent, 0, 1}});
  CHECK(tree_shape::likely(known, 100).nodes().size() == 6);
  CHECK(tree_shape::likely({{0.5, 0}, {0.5}}, 100).nodes().size() == 2);
  CHECK(tree_shape::likely({}, 3).nodes().empty());
}

TEST_CASE("tree_shape: the likely nodes are the most valuable of all", "[speculative]") {
  const shares known{{0.4, 0.2, 0.1, 0.05}, {0.3, 0.15, 0.1}, {0.2, 0.1, 0.05}};
  std::vector<double> all;
  const auto value_of = [&](const nodes& tree, std::size_t i) {
    double value = 1;
    for (auto n = static_cast<std::int32_t>(i); n != no_parent; n = tree[static_cast<std::size_t>(n)].parent) {
      const node& at = tree[static_cast<std::size_t>(n)];
      value *= known[at.depth - 1][at.pick];
    }
    return value;
  };
  const nodes full = of(tree_shape::cartesian(std::vector<std::size_t>{4, 3, 3}));
  for (std::size_t i = 0; i < full.size(); ++i) all.push_back(value_of(full, i));
  std::ranges::sort(all, std::ranges::greater{});
  for (const std::size_t count : {1U, 5U, 12U, 30U}) {
    const nodes tree = of(tree_shape::likely(known, count));
    REQUIRE(tree.size() == count);
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(value_of(tree, i) == Approx(all[i]).epsilon(1e-12));
      CHECK(tree[i].parent < static_cast<std::int32_t>(i));
      CHECK(tree[i].depth ==
            (tree[i].parent == no_parent ? 1 : tree[static_cast<std::size_t>(tree[i].parent)].depth + 1));
    }
  }
}

}  // namespace tree_shape_tests
