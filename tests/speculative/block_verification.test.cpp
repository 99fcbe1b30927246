// SPDX-License-Identifier: MIT
#include <decant/speculative/block_verification.hpp>

#include <decant/speculative/token_verification.hpp>

#include "speculative/exact.hpp"

namespace block_verification_tests {

using namespace exact;
using decant::block_verification;
using decant::token_verification;

const block_verification rule;

shape chain(std::size_t depth) { return {std::vector<std::size_t>(depth, 1)}; }

TEST_CASE("block verification is lossless: equality of fractions, depth 1 to 3", "[speculative]") {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    for (const std::size_t depth : {1U, 2U, 3U}) {
      CHECK(lossless(rule, random_model(3, seed), random_model(3, seed + 100), chain(depth)));
    }
  }
}

TEST_CASE("block verification where q is 0, p = q, and nothing is in common", "[speculative]") {
  const model p = constant_model(law_of({2, 3, 1}));
  CHECK(lossless(rule, p, constant_model(law_of({0, 1, 1})), chain(3)));
  CHECK(lossless(rule, constant_model(law_of({0, 1, 1})), p, chain(3)));
  const round_law same = round_of(rule, p, p, chain(3));
  CHECK(same.accepted == rational(3));
  CHECK(complete(same.outputs, p, 4) == law_of(p, 4));
  const model left = constant_model(law_of({1, 3, 0, 0})), right = constant_model(law_of({0, 0, 1, 1}));
  const round_law apart = round_of(rule, left, right, chain(2));
  CHECK(apart.accepted == rational(0));
  CHECK(complete(apart.outputs, left, 3) == law_of(left, 3));
}

TEST_CASE("the paper's example: 11/9 drafted tokens for 10/9, and further fractions", "[speculative]") {
  const model p = constant_model(law_of({1, 2})), q = constant_model(law_of({2, 1}));
  CHECK(round_of(token_verification{}, p, q, chain(2)).accepted == rational(10, 9));
  CHECK(round_of(rule, p, q, chain(2)).accepted == rational(11, 9));
  CHECK(round_of(token_verification{}, p, q, chain(3)).accepted == rational(38, 27));
  CHECK(round_of(rule, p, q, chain(3)).accepted == rational(5, 3));
  CHECK(round_of(token_verification{}, p, q, chain(4)).accepted == rational(130, 81));
  CHECK(round_of(rule, p, q, chain(4)).accepted == rational(166, 81));
}

TEST_CASE("block verification accepts as many as token by token or more, and as many for one", "[speculative]") {
  bool more = false;
  for (std::uint32_t seed = 1; seed <= 25; ++seed) {
    const model p = random_model(3, seed), q = random_model(3, seed + 1000);
    CHECK(round_of(rule, p, q, chain(1)).accepted == round_of(token_verification{}, p, q, chain(1)).accepted);
    const rational by_block = round_of(rule, p, q, chain(3)).accepted,
                   by_token = round_of(token_verification{}, p, q, chain(3)).accepted;
    CHECK(by_block >= by_token);
    more = more || by_block > by_token;
  }
  CHECK(more);
}

TEST_CASE("block verification of a deterministic draft ignores the laws in it", "[speculative]") {
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    CHECK(lossless(rule, random_model(3, seed), random_model(3, seed + 50), {{1, 1}, proposal::deterministic}));
  }
}

TEST_CASE("a draft may stop early, as long as its tokens alone say where", "[speculative]") {
  // Paths end after token 0: the law of what is drafted decides nothing.
  const model p = random_model(3, 5), q = random_model(3, 9);
  oracle decide;
  verdict found;
  std::map<tokens, rational> outputs;
  do {
    draft drafted;
    drafted.clear(proposal::with_replacement);
    tokens text;
    std::int32_t node = no_parent;
    while (text.size() < 3 && (text.empty() || text.back() != 0)) {
      drafted.children_law(node) = q(text);
      text.push_back(decide.draw(drafted.children_law(node)));
      node = drafted.add(text.back(), node);
    }
    std::map<std::int32_t, law> laws;
    rule(
        drafted, [&](std::int32_t n) -> const law& { return laws[n] = p(tokens(text.begin(), text.begin() + n + 1)); },
        decide, found);
    tokens out(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(found.path.size()));
    out.push_back(decide.draw(*found.next));
    outputs[out] += decide.probability();
  } while (decide.advance());
  CHECK(complete(outputs, p, 4) == law_of(p, 4));
}

TEST_CASE("a target row that cannot be decoded ends the draft before it", "[speculative]") {
  draft drafted;
  drafted.clear(proposal::with_replacement);
  std::int32_t node = no_parent;
  for (int i = 0; i < 3; ++i) {
    drafted.children_law(node) = law_of({1, 1});
    node = drafted.add(0, node);
  }
  const law good = law_of({1, 1}), bad;
  for (std::int32_t last = no_parent; last < 3; ++last) {
    oracle decide;
    verdict found;
    rule(drafted, [&](std::int32_t n) -> const law& { return n < last ? good : bad; }, decide, found);
    // p = q: all that stands before the bad row is accepted, and nothing can follow.
    CHECK(found.path.size() == static_cast<std::size_t>(last + 1));
    CHECK(found.next->ids.empty());
  }
}

}  // namespace block_verification_tests
