// SPDX-License-Identifier: MIT
#include <decant/math/sum_tree.hpp>

#include "math/bits.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sum_tree_test {

using namespace test_bits;
using decant::math::block_weights;
using decant::math::sum_block;
using decant::math::sum_tree;

struct leaf {
  std::uint32_t index;
  double value;
};

void fill(sum_tree& tree, const std::vector<leaf>& leaves) {
  tree.clear();
  for (std::size_t i = 0; i < leaves.size(); ++i)
    tree.push(leaves[i].index, leaves[i].value, static_cast<std::uint32_t>(i));
  tree.build();
}

double sum_of(const std::vector<leaf>& leaves) {
  double sum = 0;
  for (const leaf& l : leaves) sum += l.value;
  return sum;
}

/// The leaf that a target falls into, by one walk along the leaves.
std::size_t naive_find(const std::vector<leaf>& leaves, double& target) {
  double before = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (target < before + leaves[i].value) {
      target -= before;
      return i;
    }
    before += leaves[i].value;
  }
  return leaves.size();
}

/// Whole numbers, so that every sum is exact and every target can be tried.
void check_every_target(sum_tree& tree, const std::vector<leaf>& leaves) {
  const double total = sum_of(leaves);
  REQUIRE(tree.total() == total);
  for (double t = 0; t < total; t += 0.5) {
    double target = t, expected = t;
    const std::size_t place = tree.find(target);
    const std::size_t right = naive_find(leaves, expected);
    if (place != right || target != expected || tree.leaf(place).index != leaves[right].index) {
      FAIL("target " << t << " falls into leaf " << right << ", not " << place);
    }
  }
}

std::vector<leaf> random_leaves(splitmix& next, std::size_t count, std::uint32_t spread) {
  std::vector<leaf> leaves;
  std::uint32_t index = static_cast<std::uint32_t>(next.below(spread));
  for (std::size_t i = 0; i < count; ++i) {
    leaves.push_back({index, static_cast<double>(next.below(4))});
    index += 1 + static_cast<std::uint32_t>(next.below(spread));
  }
  leaves[next.below(count)].value = 3;
  return leaves;
}

TEST_CASE("a tree finds the leaf that a cumulative sum falls into", "[math][sum_tree]") {
  splitmix next(21);
  sum_tree tree;
  for (const std::uint32_t spread : {1U, 2U, 70U, 5000U, 300000U}) {
    for (const std::size_t count :
         {std::size_t{1}, std::size_t{2}, std::size_t{63}, std::size_t{64}, std::size_t{65}, std::size_t{500}}) {
      const auto leaves = random_leaves(next, count, spread);
      fill(tree, leaves);
      check_every_target(tree, leaves);
    }
  }
  SUCCEED();
}

TEST_CASE("a tree over thousands of neighbouring leaves", "[math][sum_tree]") {
  splitmix next(22);
  sum_tree tree;
  const auto leaves = random_leaves(next, 64 * 64 + 17, 1);
  fill(tree, leaves);
  check_every_target(tree, leaves);
}

TEST_CASE("a leaf of weight 0 is never found, whatever the target", "[math][sum_tree]") {
  sum_tree tree;
  std::vector<leaf> leaves;
  for (std::uint32_t i = 0; i < 200; ++i) leaves.push_back({i, i % 5 == 3 ? 0.1 : 0.0});
  fill(tree, leaves);
  for (const double share : {0.0, 0.3, 0.999, 1.0, 1.0 + 1e-12, 2.0}) {
    double target = share * tree.total();
    CHECK(tree.leaf(tree.find(target)).value > 0);
  }
  // A target at or past the total, as rounding may produce it: the last leaf that has weight.
  double target = tree.total();
  CHECK(tree.leaf(tree.find(target)).index == 198);
}

TEST_CASE("a replaced leaf changes all sums above it, as building anew would", "[math][sum_tree]") {
  splitmix next(23);
  for (const std::uint32_t spread : {1U, 40U, 9000U}) {
    auto leaves = random_leaves(next, 300, spread);
    sum_tree tree, fresh;
    fill(tree, leaves);
    for (int change = 0; change < 40; ++change) {
      const std::size_t place = next.below(leaves.size());
      leaves[place].value = static_cast<double>(next.below(3));
      if (sum_of(leaves) == 0) leaves[place].value = 1;
      tree.replace(place, leaves[place].value);
      CHECK(tree.leaf(place).value == leaves[place].value);
    }
    check_every_target(tree, leaves);
    fill(fresh, leaves);
    CHECK(bits_of(fresh.total()) == bits_of(tree.total()));
  }
}

TEST_CASE("replaced fractions leave the same bits as building anew", "[math][sum_tree]") {
  splitmix next(24);
  std::vector<leaf> leaves;
  std::uint32_t index = 0;
  for (int i = 0; i < 700; ++i) {
    index += 1 + static_cast<std::uint32_t>(next.below(9));
    leaves.push_back({index, next.unit()});
  }
  sum_tree tree, fresh;
  fill(tree, leaves);
  for (int change = 0; change < 200; ++change) {
    const std::size_t place = next.below(leaves.size());
    leaves[place].value = next.unit();
    tree.replace(place, leaves[place].value);
    fill(fresh, leaves);
    REQUIRE(bits_of(fresh.total()) == bits_of(tree.total()));
  }
}

TEST_CASE("a tree takes the largest indices", "[math][sum_tree]") {
  sum_tree tree;
  const std::vector<leaf> leaves{{0, 1},           {1, 2},           {0x7FFFFFFFU, 3}, {0x80000000U, 1},
                                 {0xFFFFFFBFU, 2}, {0xFFFFFFFEU, 1}, {0xFFFFFFFFU, 4}};
  fill(tree, leaves);
  check_every_target(tree, leaves);
  tree.replace(6, 1);
  auto changed = leaves;
  changed[6].value = 1;
  check_every_target(tree, changed);
}

TEST_CASE("a tree can be used again after a larger one", "[math][sum_tree]") {
  splitmix next(25);
  sum_tree tree;
  for (const std::size_t count : {std::size_t{5000}, std::size_t{3}, std::size_t{1}, std::size_t{900}}) {
    const auto leaves = random_leaves(next, count, 3);
    fill(tree, leaves);
    check_every_target(tree, leaves);
  }
  SUCCEED();
}

TEST_CASE("tags travel with leaves", "[math][sum_tree]") {
  sum_tree tree;
  tree.clear();
  tree.push(7, 1, 1000);
  tree.push(900, 1, 2000);
  tree.build();
  double target = 1.5;
  CHECK(tree.leaf(tree.find(target)).begin == 2000);
  CHECK(target == 0.5);
}

TEST_CASE("64 slots are summed in one fixed order", "[math][sum_tree]") {
  splitmix next(26);
  for (int round = 0; round < 200; ++round) {
    block_weights w;
    for (double& x : w) x = next.below(3) == 0 ? 0 : std::ldexp(next.unit(), -static_cast<int>(next.below(40)));
    // The order, in words: four rows of sixteen are added pairwise, then the sixteen are halved four times.
    double lanes[16];
    for (std::size_t j = 0; j < 16; ++j) {
      volatile double low = w[j] + w[j + 16], high = w[j + 32] + w[j + 48];
      lanes[j] = low + high;
    }
    for (std::size_t half : {std::size_t{8}, std::size_t{4}, std::size_t{2}, std::size_t{1}}) {
      for (std::size_t j = 0; j < half; ++j) {
        volatile double sum = lanes[j] + lanes[j + half];
        lanes[j] = sum;
      }
    }
    CHECK(bits_of(sum_block(w)) == bits_of(lanes[0]));
  }
  block_weights one{};
  one[37] = 0.1;
  CHECK(bits_of(sum_block(one)) == bits_of(0.1));
}

TEST_CASE("sums have the same bits everywhere", "[math][sum_tree][golden]") {
  splitmix next(27);
  hash all;
  for (int round = 0; round < 500; ++round) {
    block_weights w;
    for (double& x : w) x = next.unit() * next.unit();
    all.add(sum_block(w));
  }
  sum_tree tree;
  for (int round = 0; round < 20; ++round) {
    tree.clear();
    std::uint32_t index = 0;
    for (int i = 0; i < 1000; ++i) {
      index += 1 + static_cast<std::uint32_t>(next.below(50));
      tree.push(index, next.unit());
    }
    tree.build();
    all.add(tree.total());
    for (int i = 0; i < 50; ++i) {
      volatile double product = next.unit() * tree.total();
      double target = product;
      all.add(std::uint64_t{tree.find(target)});
      all.add(target);
    }
  }
  CHECK(all.value() == 0x1044C92881539D9EU);
}

TEST_CASE("a dense tree has the bits of a sparse one of the leaves that are not 0", "[math][sum_tree]") {
  test_bits::splitmix next(77);
  decant::math::dense_sum_tree dense;
  decant::math::sum_tree sparse;
  for (int round = 0; round < 200; ++round) {
    const std::size_t leaves = 1 + next.below(round % 4 == 0 ? 300'000 : 3000);
    std::vector<std::uint32_t> there;
    std::vector<double> values;
    const auto out = dense.assign(leaves);
    std::fill(out.begin(), out.end(), 0.0);
    sparse.clear();
    for (std::size_t i = 0; i < leaves; ++i) {
      if (next.below(round % 3 == 0 ? 50 : 2) != 0 && i + 1 < leaves) continue;
      const double value = next.between(0.001, 9);
      out[i] = value;
      sparse.push(static_cast<std::uint32_t>(i), value);
      there.push_back(static_cast<std::uint32_t>(i));
    }
    dense.build();
    sparse.build();
    for (int draw = 0; draw < 50; ++draw) {
      REQUIRE(dense.total() == sparse.total());
      double target = next.between(0, 1) * sparse.total(), same = target;
      const std::size_t place = sparse.find(target);
      REQUIRE(dense.find(same) == sparse.leaf(place).index);
      REQUIRE(same == target);
      const double value = sparse.leaf(place).value / 2;
      sparse.replace(place, value);
      dense.replace(there[place], value);
      REQUIRE(dense.leaf(there[place]).value == value);
    }
  }
}

}  // namespace sum_tree_test
