// SPDX-License-Identifier: MIT
#include <decant/speculative/layer_skip.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/reference/early_exit_transformer.hpp>
#include <decant/reference/transformer.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/samplers/multinomial.hpp>

#include "reference/fixtures.hpp"
#include "toy_target.hpp"

namespace layer_skip_tests {

using decant::draft;
using decant::layer_skip;

auto argmax() { return decant::temperature(1) | decant::greedy{}; }

/// Trees of chains on a model that scores sequences.
class chains : public decant::early_exit_transformer {
 public:
  using decant::early_exit_transformer::early_exit_transformer;
  using decant::early_exit_transformer::score;

  void score(std::span<const decant::token_id> nodes, std::span<const std::int32_t>) {
    before_ = size();
    reused = 0;
    while (reused < nodes.size() && reused < peeked()) ++reused;
    score(nodes);
  }
  void keep(std::span<const std::size_t> path) { truncate(before_ + path.size()); }

  std::size_t reused = 0;

 private:
  std::size_t before_ = 0;
};

TEST_CASE("layer_skip: laws of the early rows, and the target holds what it held", "[speculative]") {
  toy::target model(4, 61);
  auto decoder = decant::temperature(0.8) | decant::multinomial{};
  model.score(toy::tokens{0, 2});
  for (const std::size_t depth : {1U, 2U, 4U}) {
    layer_skip drafter(model, decoder, depth);
    static_assert(decant::DraftSource<decltype(drafter)>);
    draft out;
    const toy::tokens text{0, 2, 1};
    const auto request = toy::request_after(text, 3);
    model.truncate(2);
    model.score({});  // forgets what was peeked at
    drafter.propose(request, out);
    REQUIRE(out.size() == 3);
    toy::tokens history = text;
    for (std::int32_t node = decant::no_parent; node < 2; ++node) {
      const auto row = depth == 4 ? model.row_after(history) : model.exit(depth).row_after(history);
      const auto context = decant::context_after(history, 1, request.context.draws);
      CHECK(out.children_law(node) == decoder.law_of(row, context));
      history.push_back(out.token(node + 1));
    }
    CHECK(model.held() == toy::tokens{0, 2});
  }
}

TEST_CASE("layer_skip: greedy output is the target's own; leaving after the last layer all is accepted",
          "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    toy::target model(4, seed);
    for (const std::size_t depth : {1U, 3U, 4U}) {
      layer_skip drafter(model, argmax(), depth);
      const auto done = toy::greedy_rounds(model, drafter, {0, 1}, 41, 4);
      CHECK(done.text == toy::greedy_text(model, {0, 1}, 41));
      if (depth == 4) {
        CHECK(done.accepted == done.proposed);
        CHECK(done.passes == 8);
      }
    }
  }
}

TEST_CASE("layer_skip: on the reference transformer, which goes on from the states of the draft", "[speculative]") {
  const decant::checkpoint weights = reference_tests::random_checkpoint(reference_tests::small_config(), 62);
  decant::transformer plain(weights);
  const toy::tokens prompt{3, 17, 30};
  const auto expected = toy::greedy_text(plain, prompt, 24);
  for (std::size_t depth = 1; depth <= 4; ++depth) {
    chains model(weights);
    layer_skip drafter(model, argmax(), depth);
    const auto done = toy::greedy_rounds(model, drafter, prompt, 24, 4);
    CHECK(done.text == expected);
    CHECK(model.reused == 4);  // the waiting token and all drafted ones but the last, which nobody peeked at
    if (depth == 4) CHECK(done.accepted == done.proposed);
  }
}

TEST_CASE("layer_skip: misuse", "[speculative]") {
  toy::target model(4, 63);
  CHECK_THROWS_AS(layer_skip(model, argmax(), 0), assertion_error);
  CHECK_THROWS_AS(layer_skip(model, argmax(), 5), assertion_error);
  layer_skip drafter(model, argmax(), 2);
  model.score(toy::tokens{0, 2});
  draft out;
  CHECK_THROWS_AS(drafter.propose(toy::request_after(toy::tokens{0, 2}), out), assertion_error);
}

}  // namespace layer_skip_tests
