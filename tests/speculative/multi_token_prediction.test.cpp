// SPDX-License-Identifier: MIT
#include <decant/speculative/multi_token_prediction.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/processors/repetition_penalty.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/samplers/multinomial.hpp>

#include "toy_target.hpp"

namespace multi_token_prediction_tests {

using decant::draft;
using decant::multi_token_prediction;
using decant::no_parent;

TEST_CASE("multi_token_prediction: head i's law in the context of the tokens drafted", "[speculative]") {
  const auto decoder = decant::repetition_penalty(1.5) | decant::multinomial{};
  multi_token_prediction drafter(decoder);
  static_assert(decant::DraftSource<decltype(drafter)>);
  toy::target model(4, 31);
  const toy::tokens text{0, 1};
  model.score(text);
  drafter.observe(model, std::vector<std::size_t>{0, 1});
  draft out;
  const toy::tokens waiting{0, 1, 2};
  const auto request = toy::request_after(waiting);
  drafter.propose(request, out);
  REQUIRE(out.size() == 3);
  CHECK(out.mode() == decant::proposal::with_replacement);
  auto reference = decoder;
  toy::tokens history = waiting;
  for (std::int32_t node = no_parent; node < 2; ++node) {
    // The row is the head's after the text that the target held; the penalty sees what was drafted since.
    const auto row = model.head(static_cast<std::size_t>(node + 2)).row_after(text);
    const auto context = decant::context_after(history, 1, request.context.draws);
    CHECK(out.children_law(node) == reference.law_of(row, context));
    CHECK(out.children_law(node).probability(out.token(node + 1)) > 0);
    history.push_back(out.token(node + 1));
  }
}

TEST_CASE("multi_token_prediction: with the argmax of each head it is greedy's, whatever the heads say",
          "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    toy::target model(4, seed);
    multi_token_prediction drafter(decant::temperature(1) | decant::greedy{});
    CHECK(toy::greedy_rounds(model, drafter, {0, 1}, 30).text == toy::greedy_text(model, {0, 1}, 30));
  }
}

TEST_CASE("multi_token_prediction: nothing before the target was seen, nor after a reset", "[speculative]") {
  multi_token_prediction drafter(decant::temperature(1) | decant::greedy{});
  draft out;
  drafter.propose(toy::request_after(toy::tokens{0, 1}), out);
  CHECK(out.empty());
  toy::target model(4, 1);
  model.score(toy::tokens{0});
  drafter.observe(model, std::vector<std::size_t>{0});
  drafter.reset();
  drafter.propose(toy::request_after(toy::tokens{0, 1}), out);
  CHECK(out.empty());
}

}  // namespace multi_token_prediction_tests
