// SPDX-License-Identifier: MIT
#include <decant/speculative/token_verification.hpp>

#include "speculative/exact.hpp"
#include "speculative/golden_laws.hpp"

namespace token_verification_tests {

using namespace exact;
using decant::token_verification;

const token_verification rule;

TEST_CASE("token verification is lossless: equality of fractions, depth 1 to 3", "[speculative]") {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    for (const std::size_t depth : {1U, 2U, 3U}) {
      const shape chain{std::vector<std::size_t>(depth, 1)};
      CHECK(lossless(rule, random_model(3, seed), random_model(3, seed + 100), chain));
    }
  }
}

TEST_CASE("token verification where q is 0, p = q, and nothing is in common", "[speculative]") {
  const shape chain{{1, 1}};
  const model p = constant_model(law_of({2, 3, 1}));
  CHECK(lossless(rule, p, constant_model(law_of({0, 1, 1})), chain));
  CHECK(lossless(rule, constant_model(law_of({0, 1, 1})), p, chain));
  const round_law same = round_of(rule, p, p, chain);
  CHECK(same.accepted == rational(2));
  CHECK(complete(same.outputs, p, 3) == law_of(p, 3));
  const model left = constant_model(law_of({1, 3, 0, 0})), right = constant_model(law_of({0, 0, 1, 1}));
  const round_law apart = round_of(rule, left, right, chain);
  CHECK(apart.accepted == rational(0));
  CHECK(complete(apart.outputs, left, 3) == law_of(left, 3));
}

TEST_CASE("a token is accepted with the sum of min(p, q)", "[speculative]") {
  const model p = constant_model(law_of({5, 3, 2})), q = constant_model(law_of({2, 3, 5}));
  CHECK(round_of(rule, p, q, {{1}}).accepted == rational(7, 10));
  CHECK(round_of(rule, p, q, {{1, 1}}).accepted == rational(7, 10) + rational(49, 100));
}

TEST_CASE(
    "a deterministic draft is verified as one that was certain, whatever laws stand in it "
    "(recurrent-drafter#6, transformers#32867, vLLM#40149)",
    "[speculative]") {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const model p = random_model(3, seed), q = random_model(3, seed + 50);
    const shape argmax{{1, 1}, proposal::deterministic};
    CHECK(lossless(rule, p, q, argmax));
  }
  // Accepted with p(x), not with min(1, p / q).
  const model p = constant_model(law_of({5, 3, 2})), q = constant_model(law_of({1, 6, 3}));
  CHECK(round_of(rule, p, q, {{1}, proposal::deterministic}).accepted == rational(3, 10));
  // The same tokens passed off as draws give another law.
  draft drafted;
  drafted.clear(proposal::with_replacement);
  drafted.children_law(no_parent) = law_of({1, 6, 3});
  drafted.add(1);
  oracle decide;
  verdict found;
  std::map<tokens, rational> outputs;
  do {
    rule(
        drafted,
        [&](std::int32_t) -> const law& {
          static const law always = law_of({5, 3, 2});
          return always;
        },
        decide, found);
    const token_id token = found.path.empty() ? decide.draw(*found.next) : 1;
    outputs[{token}] += decide.probability();
  } while (decide.advance());
  CHECK(outputs != law_of(p, 1));
}

TEST_CASE("the laws of one report: the first token, and two together (openvino.genai#4190)", "[speculative]") {
  const model p = constant_model(law_of({5, 3, 2})), q = constant_model(law_of({2, 3, 5}));
  CHECK(complete(round_of(rule, p, q, {{1}}).outputs, p, 1) == law_of(p, 1));
  CHECK(complete(round_of(rule, p, q, {{1, 1}}).outputs, p, 2) == law_of(p, 2));
}

TEST_CASE("the golden acceptance and residual of methods.md N", "[speculative]") {
  const decant::law p = golden_laws::target(), q = golden_laws::drafted();
  CHECK(std::abs(1 - decant::excess(p, 1.0, q) - 0.665048377858) < 1e-9);
  decant::law rest;
  decant::residual(p, 1.0, q, rest);
  CHECK(rest.ids == tokens{0, 2});
  CHECK(std::abs(rest.probability(0) - 0.908259859) < 1e-9);
  CHECK(std::abs(rest.probability(2) - 0.091740141) < 1e-9);
}

TEST_CASE("a token of probability 0 never passes (vLLM#42744: min_p on both sides)", "[speculative]") {
  const model p = constant_model(law_of({12, 6, 0, 0})), q = constant_model(law_of({0, 0, 0, 1}));
  const round_law out = round_of(rule, p, q, {{1}});
  CHECK(out.accepted == rational(0));
  CHECK(out.outputs == law_of(p, 1));
  CHECK(!decant::stream_decisions(decant::draw_stream(1)).chance(0.0, 1e-300, 0));
  CHECK(decant::stream_decisions(decant::draw_stream(1)).chance(1e-300, 1e-300, 0));
}

TEST_CASE("token verification looks no further than it accepts", "[speculative]") {
  draft drafted;
  drafted.clear(proposal::with_replacement);
  drafted.children_law(no_parent) = law_of({0, 1});
  drafted.children_law(drafted.add(1)) = law_of({0, 1});
  drafted.add(1, 0);
  std::vector<std::int32_t> looked_at;
  const law first = law_of({1, 0});
  oracle decide;
  verdict found;
  rule(drafted, [&](std::int32_t node) -> const law& { return looked_at.push_back(node), first; }, decide, found);
  CHECK(looked_at == std::vector<std::int32_t>{no_parent});
  CHECK(found.path.empty());
}

TEST_CASE("a drafted token that its law does not hold is misuse", "[speculative]") {
  draft drafted;
  drafted.clear(proposal::with_replacement);
  drafted.add(1);
  oracle decide;
  verdict found;
  const law some = law_of({1, 1});
  CHECK_THROWS_AS(rule(drafted, [&](std::int32_t) -> const law& { return some; }, decide, found), assertion_error);
}

}  // namespace token_verification_tests
