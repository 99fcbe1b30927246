// SPDX-License-Identifier: MIT
#include <decant/chain/steps.hpp>

#include "chain/policies.hpp"
#include "support/catch.hpp"

#include <decant/chain/any.hpp>
#include <decant/chain/chain.hpp>
#include <decant/processors.hpp>

#include <string>
#include <vector>

namespace steps_test {

using namespace chain_policies;

std::vector<std::string> names(auto& processor) {
  std::vector<decant::chain_step> steps;
  decant::list_steps(processor, steps);
  std::vector<std::string> all;
  for (const auto& step : steps) all.push_back(step.name + (step.off ? " off" : ""));
  return all;
}

TEST_CASE("a policy is one step, a chain is its parts, however deep", "[chain][steps]") {
  decant::top_k one(3);
  CHECK(names(one) == std::vector<std::string>{"top_k(3)"});
  auto lambda = [](candidates&, const step_context&) {};
  CHECK(names(lambda) == std::vector<std::string>{"function"});
  decant::chain nested(decant::top_k(0),
                       decant::chain(decant::top_p(0.5), decant::dynamic_chain{decant::min_p(0.1), lambda}),
                       decant::temperature(1));
  CHECK(names(nested) ==
        std::vector<std::string>{"top_k(0) off", "top_p(0.5)", "min_p(0.1)", "function", "temperature(1) off"});
  decant::chain<> empty;
  CHECK(names(empty).empty());
}

TEST_CASE("steps run one by one do what the chain does", "[chain][steps]") {
  decant::chain whole(decant::top_k(4), decant::dynamic_chain{decant::temperature(0.5), decant::top_p(0.9)});
  const std::vector<token_id> history{1};
  const auto together = left(whole, known_logits, at(history));
  std::vector<decant::chain_step> steps;
  decant::list_steps(whole, steps);
  REQUIRE(steps.size() == 3);
  candidates row;
  row.bind(known_logits);
  for (const auto& step : steps) step.apply(step.processor, row, at(history));
  CHECK(survivors(row) == together);
}

TEST_CASE("who keeps state", "[chain][steps]") {
  CHECK(decant::keeps_state(no_repeat{}));
  CHECK_FALSE(decant::keeps_state(decant::top_k(3)));
  CHECK_FALSE(decant::keeps_state([](candidates&, const step_context&) {}));
  CHECK_FALSE(decant::keeps_state(decant::chain(decant::top_k(3))));
  CHECK(decant::keeps_state(decant::chain(decant::top_k(3), no_repeat{})));
  CHECK_FALSE(decant::keeps_state(decant::dynamic_chain{decant::top_k(3)}));
  CHECK(decant::keeps_state(decant::dynamic_chain{decant::top_k(3), decant::chain(no_repeat{})}));
}

TEST_CASE("named gives a lambda a name and passes the rest through", "[chain][steps]") {
  decant::named policy("no token 0", [](candidates& row, const step_context&) { row.ban(0); });
  CHECK(policy.describe() == "no token 0");
  CHECK_FALSE(policy.off());
  const std::vector<token_id> none;
  CHECK(left(policy, known_logits, at(none)) == std::vector<token_id>{1, 2, 3, 4, 5});
  STATIC_REQUIRE_FALSE(decant::Stateful<decltype(policy)>);
  decant::named off("k", decant::top_k(0));
  CHECK(off.off());
  decant::named state("memory", no_repeat{});
  STATIC_REQUIRE(decant::Stateful<decltype(state)>);
  state.accept(0, {});
  CHECK(left(state, known_logits, at(none)).front() == 1);
  state.rollback(1);
  CHECK(left(state, known_logits, at(none)).front() == 0);
  state.accept(0, {});
  state.reset();
  CHECK(left(state, known_logits, at(none)).front() == 0);
}

}  // namespace steps_test
