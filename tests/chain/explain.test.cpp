// SPDX-License-Identifier: MIT
#include <decant/chain/explain.hpp>

#include "chain/policies.hpp"
#include "support/catch.hpp"

#include <decant/chain/any.hpp>
#include <decant/chain/chain.hpp>
#include <decant/chain/compose.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

#include "math/bits.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace explain_test {

using namespace chain_policies;
using decant::explain;
using decant::explanation;
using decant::top_k;
using decant::top_p;
using ids = std::vector<token_id>;
const std::vector<token_id> none;

TEST_CASE("a survivor is explained by where it stands", "[chain][explain]") {
  const explanation e = explain(known_logits, at(none), 1, decant::chain(top_k(4), top_p(1)));
  const double four = known_p[0] + known_p[1] + known_p[2] + known_p[3];
  CHECK(e.survives);
  CHECK(e.step.empty());
  CHECK(e.logit == 1);
  CHECK(e.probability == Approx(known_p[1] / four).epsilon(1e-8));
  CHECK(e.rank == 2);
  CHECK(e.tokens_before == 4);
  CHECK(e.tokens_after == 4);
  CHECK(e.reason.find("survives") != std::string::npos);
}

TEST_CASE("each policy is named when it removes a token", "[chain][explain]") {
  const auto check = [](auto policy, token_id id, const std::string& name, std::size_t after) {
    const explanation e = explain(known_logits, at(none), id, policy);
    CAPTURE(name, id);
    CHECK_FALSE(e.survives);
    CHECK(e.step == name);
    CHECK(e.step_index == 0);
    CHECK(e.rank == static_cast<std::size_t>(id) + 1);  // the known row falls
    CHECK(e.logit == known_logits[static_cast<std::size_t>(id)]);
    CHECK(e.probability == Approx(known_p[id]).epsilon(1e-6));
    CHECK(e.tokens_before == 6);
    CHECK(e.tokens_after == after);
    CHECK(e.reason.find(name + " removed it") == 0);
  };
  check(top_k(2), 2, "top_k(2)", 2);
  check(top_k(2), 5, "top_k(2)", 2);
  check(top_p(0.8), 3, "top_p(0.8)", 3);
  check(decant::min_p(0.1), 4, "min_p(0.1)", 4);
  check(decant::temperature(0), 1, "temperature(0)", 1);
  check(decant::named("no third", [](candidates& row, const step_context&) { row.ban(2); }), 2, "no third", 5);
  check([](candidates& row, const step_context&) { row.ban(2); }, 2, "function", 5);
  check(decant::any_processor(top_k(1)), 5, "top_k(1)", 1);
  const ids history{4, 4};
  const explanation e = explain(known_logits, at(history), 4, decant::no_repeat_ngram(1));
  CHECK(e.step == "no_repeat_ngram(1)");
  CHECK(e.tokens_after == 5);
}

TEST_CASE("the step that removed it is found among many, off ones counted", "[chain][explain]") {
  decant::chain steps(decant::temperature(1), decant::dynamic_chain{decant::temperature(0.5), top_k(5)}, top_p(0.9),
                      top_k(1));
  const explanation last = explain(known_logits, at(none), 1, steps);
  CHECK(last.step == "top_k(1)");
  CHECK(last.step_index == 4);
  CHECK(last.logit == 2);  // after temperature 0.5
  CHECK(last.rank == 2);
  CHECK(last.tokens_before == 2);
  CHECK(last.tokens_after == 1);
  const explanation middle = explain(known_logits, at(none), 3, steps);
  CHECK(middle.step == "top_p(0.9)");
  CHECK(middle.step_index == 3);
  CHECK(middle.tokens_before == 5);
  const double five = 1 - 0.000037646;
  CHECK(middle.probability == Approx(0.015187574 / five).epsilon(1e-6));
  CHECK(explain(known_logits, at(none), 5, steps).step == "top_k(5)");
  CHECK(explain(known_logits, at(none), 5, steps).step_index == 2);
  CHECK(explain(known_logits, at(none), 0, steps).survives);
}

TEST_CASE("a token that came as -inf was removed by the row itself", "[chain][explain]") {
  const std::vector<float> logits{1, decant::gone, 2};
  const explanation e = explain(logits, at(none), 1, top_k(1));
  CHECK_FALSE(e.survives);
  CHECK(e.step == "row");
  CHECK(e.rank == 0);
  CHECK(e.probability == 0);
}

TEST_CASE("ranks go by lower id among equals", "[chain][explain]") {
  const std::vector<float> logits{1, 2, 2, 2, 0};
  CHECK(explain(logits, at(none), 3, top_k(2)).rank == 3);
  CHECK(explain(logits, at(none), 1, top_k(2)).rank == 1);
  CHECK(explain(logits, at(none), 0, top_k(2)).rank == 4);
}

TEST_CASE("a bad row is said to be so", "[chain][explain]") {
  const std::vector<float> logits{1, test_bits::float_of(0x7FC00000U), 2};
  const explanation e = explain(logits, at(none), 0, top_k(1));
  CHECK_FALSE(e.survives);
  CHECK(e.reason.find("not finite") != std::string::npos);
  CHECK(e.step.empty());
  const explanation emptied =
      explain(known_logits, at(none), 0,
              decant::chain([](candidates& row, const step_context&) { row.allow(std::span<const token_id>()); }));
  CHECK(emptied.step == "function");
  CHECK(emptied.tokens_after == 0);
  CHECK(emptied.reason.find("empty") != std::string::npos);
}

TEST_CASE("an id outside the vocabulary is misuse", "[chain][explain]") {
  CHECK_THROWS_AS(explain(known_logits, at(none), 6, top_k(1)), assertion_error);
  CHECK_THROWS_AS(explain(known_logits, at(none), -1, top_k(1)), assertion_error);
}

TEST_CASE("a decoder explains with its sampler as the last step, and changes nothing", "[chain][explain]") {
  auto decoding = no_repeat{} | top_k(3) | decant::greedy{};
  std::vector<float> logits = known_logits;
  for (int i = 0; i < 3; ++i) {
    const explanation e = decoding.explain(logits, at(none), 1);
    CHECK(e.step == "greedy");
    CHECK(e.step_index == 2);
    CHECK(e.tokens_before == 3);
    CHECK(e.tokens_after == 1);
  }
  CHECK(logits == known_logits);
  CHECK(decoding.step(logits, at(none)) == 0);
  CHECK(decoding.explain(logits, at(none), 0).step == "no_repeat");
  CHECK(decoding.step(logits, at(none)) == 1);
}

TEST_CASE("explaining restores the row and leaves the policy as it was", "[chain][explain]") {
  std::vector<float> logits = known_logits;
  decant::chain steps(decant::presence_penalty(1), top_k(2));
  const ids history{0};
  for (token_id id = 0; id < 6; ++id) (void)explain(logits, at(history), id, steps);
  CHECK(logits == known_logits);
}

TEST_CASE("probabilities are right at low temperatures too", "[chain][explain]") {
  const std::vector<float> logits{19.7F, 3.1F, 20.3F, -5};
  for (const double t : {1e-2, 1e-6, 1e-12, 1e-38}) {
    CAPTURE(t);
    const explanation best = explain(logits, at(none), 2, decant::temperature(t));
    CHECK(best.survives);
    CHECK(best.probability == Approx(1).epsilon(1e-5));
    CHECK(best.rank == 1);
    const explanation second = explain(logits, at(none), 0, decant::temperature(t));
    CHECK(second.probability < 1e-20);
    CHECK(second.rank == 2);
  }
}

TEST_CASE("effects say which steps are idle: a truncation leaves mirostat nothing to do", "[chain][explain]") {
  auto decoding = top_k(1) | decant::temperature(0.5) | decant::mirostat(5);
  const auto seen = decoding.effects(known_logits, at(none));
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].step == "top_k(1)");
  CHECK(seen[0].removed == known_logits.size() - 1);
  CHECK_FALSE(seen[0].idle);
  CHECK(seen[1].idle);
  CHECK(seen[2].idle);
  const auto alone = (decant::temperature(0.5) | top_k(2) | decant::greedy{}).effects(known_logits, at(none));
  CHECK_FALSE(alone[0].idle);  // removes nothing, but changes the law
  CHECK(alone[0].removed == 0);
  CHECK(alone[1].removed == known_logits.size() - 2);
  CHECK(alone[2].removed == 1);
  const auto off = decant::effects(known_logits, at(none), decant::chain(decant::top_p(1), top_k(0)));
  CHECK((off[0].idle && off[1].idle));
}

}  // namespace explain_test
