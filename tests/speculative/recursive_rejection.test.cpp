// SPDX-License-Identifier: MIT
#include <decant/speculative/recursive_rejection.hpp>

#include <decant/speculative/token_verification.hpp>

#include "speculative/exact.hpp"

namespace recursive_rejection_tests {

using namespace exact;

const decant::recursive_rejection rule;

TEST_CASE("recursive rejection is lossless in every mode: equality of fractions", "[speculative]") {
  const std::vector<std::vector<std::size_t>> trees = {{1}, {2}, {3}, {2, 2}, {3, 1}, {1, 2}, {2, 1, 1}};
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    const model p = random_model(3, seed), q = random_model(3, seed + 100);
    for (const auto& children : trees) {
      for (const auto mode : {proposal::with_replacement, proposal::without_replacement, proposal::deterministic}) {
        CHECK(lossless(rule, p, q, {children, mode}));
      }
    }
  }
}

TEST_CASE("recursive rejection on trees of two children over three tokens", "[speculative]") {
  for (std::uint32_t seed = 21; seed <= 22; ++seed) {
    const model p = random_model(3, seed), q = random_model(3, seed + 13, 4);
    CHECK(lossless(rule, p, q, {{3, 2}, proposal::without_replacement}));
    CHECK(lossless(rule, p, q, {{3, 2, 2}, proposal::deterministic}));
  }
}

TEST_CASE("recursive rejection on larger trees", "[speculative][long]") {
  const model p = random_model(3, 22), q = random_model(3, 35, 4);
  CHECK(lossless(rule, p, q, {{3, 2}, proposal::with_replacement}));
  CHECK(lossless(rule, p, q, {{2, 2, 2}, proposal::without_replacement}));
}

TEST_CASE("a rejected draw counts although its token cannot come any more", "[speculative]") {
  // Skipping it would give token 0 the probability 33897/78608.
  const model p = constant_model(law_of({3, 3, 1, 1})), q = constant_model(law_of({4, 1, 6, 6}));
  const auto first = complete(round_of(rule, p, q, {{3}}).outputs, p, 1);
  CHECK(first == law_of(p, 1));
  CHECK(first.at({0}) == rational(3, 8));
}

TEST_CASE("recursive rejection with one child a node is token verification", "[speculative]") {
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    const model p = random_model(3, seed), q = random_model(3, seed + 9);
    const shape chain{{1, 1}};
    CHECK(round_of(rule, p, q, chain).outputs == round_of(decant::token_verification{}, p, q, chain).outputs);
  }
}

TEST_CASE("recursive rejection accepts more with more children", "[speculative]") {
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    const model p = random_model(4, seed), q = random_model(4, seed + 9);
    for (const auto mode : {proposal::with_replacement, proposal::without_replacement, proposal::deterministic}) {
      rational before(0);
      for (std::size_t k = 1; k <= 3; ++k) {
        const rational accepted = round_of(rule, p, q, {{k}, mode}).accepted;
        CHECK(accepted >= before);
        before = accepted;
      }
    }
  }
}

TEST_CASE("deterministic children are accepted with the sum of their probabilities", "[speculative]") {
  const model p = constant_model(law_of({5, 3, 2})), q = constant_model(law_of({1, 6, 3}));
  CHECK(round_of(rule, p, q, {{1}, proposal::deterministic}).accepted == rational(3, 10));
  CHECK(round_of(rule, p, q, {{2}, proposal::deterministic}).accepted == rational(5, 10));
  CHECK(round_of(rule, p, q, {{3}, proposal::deterministic}).accepted == rational(1));
}

TEST_CASE("the top tokens of a law passed off as draws give another law (EAGLE)", "[speculative]") {
  const law p = law_of({5, 3, 2}), q = law_of({1, 6, 3});
  oracle decide;
  verdict found;
  std::map<tokens, rational> outputs;
  do {
    draft drafted;
    drafted.clear(proposal::without_replacement);
    drafted.children_law(no_parent) = q;
    drafted.add(1);
    drafted.add(2);
    rule(drafted, [&](std::int32_t) -> const law& { return p; }, decide, found);
    const token_id token =
        found.path.empty() ? decide.draw(*found.next) : drafted.token(static_cast<std::int32_t>(found.path[0]));
    outputs[{token}] += decide.probability();
  } while (decide.advance());
  CHECK(outputs != law_of(constant_model(p), 1));
}

}  // namespace recursive_rejection_tests
