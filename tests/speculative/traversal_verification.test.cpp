// SPDX-License-Identifier: MIT
#include <decant/speculative/traversal_verification.hpp>

#include <decant/speculative/block_verification.hpp>
#include <decant/speculative/recursive_rejection.hpp>

#include "speculative/exact.hpp"

namespace traversal_verification_tests {

using namespace exact;

const decant::traversal_verification rule;

TEST_CASE("traversal verification is lossless in every mode: equality of fractions", "[speculative]") {
  const std::vector<std::vector<std::size_t>> trees = {{1}, {2}, {3}, {2, 2}, {1, 3}, {2, 1, 1}};
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    const model p = random_model(3, seed), q = random_model(3, seed + 100);
    for (const auto& children : trees) {
      for (const auto mode : {proposal::with_replacement, proposal::without_replacement, proposal::deterministic}) {
        CHECK(lossless(rule, p, q, {children, mode}));
      }
    }
  }
}

TEST_CASE("traversal verification on trees of two children over three tokens", "[speculative]") {
  for (std::uint32_t seed = 21; seed <= 22; ++seed) {
    const model p = random_model(3, seed), q = random_model(3, seed + 13, 4);
    CHECK(lossless(rule, p, q, {{3, 2}, proposal::without_replacement}));
    CHECK(lossless(rule, p, q, {{3, 2, 2}, proposal::deterministic}));
  }
}

TEST_CASE("traversal verification on larger trees", "[speculative][long]") {
  const model p = random_model(3, 21), q = random_model(3, 34, 4);
  CHECK(lossless(rule, p, q, {{3, 2}, proposal::with_replacement}));
  CHECK(lossless(rule, p, q, {{3, 2, 2}, proposal::without_replacement}));
  CHECK(lossless(rule, random_model(2, 3, 4), random_model(2, 8, 4), {{2, 2, 2}, proposal::with_replacement}));
}

TEST_CASE("traversal verification where q is 0, p = q, and nothing is in common", "[speculative]") {
  const model p = constant_model(law_of({2, 3, 1}));
  for (const auto mode : {proposal::with_replacement, proposal::without_replacement}) {
    const shape tree{{2, 1}, mode};
    CHECK(lossless(rule, p, constant_model(law_of({0, 1, 1})), tree));
    CHECK(lossless(rule, constant_model(law_of({0, 1, 1})), p, tree));
    const round_law same = round_of(rule, p, p, tree);
    CHECK(same.accepted == rational(2));
    CHECK(complete(same.outputs, p, 3) == law_of(p, 3));
    const model left = constant_model(law_of({1, 3, 0, 0})), right = constant_model(law_of({0, 0, 1, 1}));
    const round_law apart = round_of(rule, left, right, tree);
    CHECK(apart.accepted == rational(0));
    CHECK(complete(apart.outputs, left, 3) == law_of(left, 3));
  }
}

TEST_CASE("traversal of a chain is block verification, of depth 1 recursive rejection", "[speculative]") {
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    const model p = random_model(3, seed), q = random_model(3, seed + 9);
    const shape chain{{1, 1, 1}};
    const round_law as_chain = round_of(rule, p, q, chain), block = round_of(decant::block_verification{}, p, q, chain);
    CHECK(as_chain.outputs == block.outputs);
    CHECK(as_chain.accepted == block.accepted);
    for (const auto mode : {proposal::with_replacement, proposal::without_replacement, proposal::deterministic}) {
      const shape flat{{3}, mode};
      const round_law by_leaf = round_of(rule, p, q, flat),
                      in_turn = round_of(decant::recursive_rejection{}, p, q, flat);
      CHECK(by_leaf.outputs == in_turn.outputs);
      CHECK(by_leaf.accepted == in_turn.accepted);
    }
  }
}

TEST_CASE("traversal accepts as many as going down from the root or more", "[speculative]") {
  bool more = false;
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    const model p = random_model(3, seed), q = random_model(3, seed + 1000);
    const shape tree{{2, 2}, proposal::without_replacement};
    const rational by_leaf = round_of(rule, p, q, tree).accepted,
                   from_root = round_of(decant::recursive_rejection{}, p, q, tree).accepted;
    CHECK(by_leaf >= from_root);
    more = more || by_leaf > from_root;
  }
  CHECK(more);
}

TEST_CASE("in traversal a target row that cannot be decoded ends its branch", "[speculative]") {
  draft drafted;
  drafted.clear(proposal::deterministic);
  drafted.add(0);
  drafted.add(1, 0);
  const law good = law_of({1}), bad;
  oracle decide;
  verdict found;
  rule(drafted, [&](std::int32_t n) -> const law& { return n == no_parent ? good : bad; }, decide, found);
  CHECK(found.path == std::vector<std::size_t>{0});
  CHECK(found.next->ids.empty());
}

}  // namespace traversal_verification_tests
