// SPDX-License-Identifier: MIT
// What drafts from inside the target, under the shipped driver: the law of plain decoding, exactly.

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/processors/presence_penalty.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/speculative/blockwise_heads.hpp>
#include <decant/speculative/draft_and_verify.hpp>
#include <decant/speculative/dynamic_tree.hpp>
#include <decant/speculative/layer_skip.hpp>
#include <decant/speculative/medusa.hpp>
#include <decant/speculative/multi_token_prediction.hpp>
#include <decant/speculative/speculate.hpp>
#include <decant/speculative/swift.hpp>
#include <decant/testing/enumerate.hpp>

#include "any_drafter.hpp"
#include "toy_target.hpp"

namespace inside_target_tests {

using decant::draft_length;
using drafter = toy::any_drafter<toy::target>;

const decant::exit_threshold_options always{.start = 0, .step = 0};

auto sampling() { return decant::presence_penalty(0.4) | decant::temperature(0.8) | decant::multinomial{}; }
auto argmax() { return decant::temperature(1) | decant::greedy{}; }

std::vector<bool> skip_some(const toy::target& model) {
  std::vector<bool> skip(model.sub_layers(), false);
  skip[2] = skip[3] = true;
  return skip;
}

/// Every drafter, made for a target. Those that draw do so by a chain of their own.
const std::map<std::string, std::function<drafter(toy::target&)>>& makers() {
  static const std::map<std::string, std::function<drafter(toy::target&)>> all{
      {"medusa",
       [](toy::target&) {
         return drafter(decant::medusa(decant::tree_shape::cartesian(std::vector<std::size_t>{2, 1})));
       }},
      {"blockwise", [](toy::target&) { return drafter(decant::blockwise_heads()); }},
      {"multi-token prediction",
       [](toy::target&) {
         return drafter(decant::multi_token_prediction(decant::temperature(1.3) | decant::multinomial{}));
       }},
      {"draft and verify",
       [](toy::target& model) {
         return drafter(decant::draft_and_verify(model, sampling(), skip_some(model), always));
       }},
      {"layer skip", [](toy::target& model) { return drafter(decant::layer_skip(model, sampling(), 2)); }},
      {"swift",
       [](toy::target& model) {
         return drafter(decant::swift(model, sampling(), {.exit = {.start = 0.2}, .window = 2, .least_window = 1}));
       }},
      {"dynamic tree",
       [](toy::target& model) {
         const auto row = [&model](std::span<const decant::token_id> text) { return model.exit(1).row_after(text); };
         return drafter(decant::dynamic_tree(decant::path_rows(row), {.width = 2, .depth = 2, .nodes = 4}));
       }},
  };
  return all;
}

decant::generate_options tokens(std::size_t count, std::uint64_t seed) {
  decant::generate_options options;
  options.max_new_tokens = count;
  options.seed = seed;
  return options;
}

TEST_CASE("drafts from inside the target leave its law as it is", "[speculative]") {
  const toy::tokens prompt{0, 1};
  const toy::target fresh(3, 101);
  toy::target model = fresh;
  const auto plain = decant::testing::sequence_law(model, prompt, sampling(), 3);
  for (const auto& [name, make] : makers()) {
    CAPTURE(name);
    const auto law = decant::testing::enumerate_law([&, &make = make](decant::decision_hook& hook) {
      toy::target target = fresh;
      drafter from_inside = make(target);
      decant::generate_options options = tokens(3, 0);
      options.hook = &hook;
      return decant::speculate(target, prompt, from_inside, sampling(), options,
                               {.length = draft_length::fixed(2), .max_nodes = 6})
          .tokens;
    });
    CHECK(decant::testing::distance(plain, law) <= 1e-12);
  }
}

TEST_CASE("deterministic drafts from inside the target: the tokens of plain sampling with that seed", "[speculative]") {
  const toy::tokens prompt{0, 1, 2};
  for (const std::string name : {"medusa", "blockwise", "dynamic tree"}) {
    std::size_t accepted = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      toy::target model(4, seed);
      const auto plain = decant::generate(model, prompt, sampling(), tokens(30, seed)).tokens;
      drafter from_inside = makers().at(name)(model);
      const auto run = decant::speculate(model, prompt, from_inside, sampling(), tokens(30, seed),
                                         {.length = draft_length::fixed(3), .max_nodes = 8});
      CHECK(run.tokens == plain);
      accepted += run.statistics.drafted_tokens_accepted();
    }
    CHECK(accepted > 100);
  }
}

TEST_CASE("drafts from inside the target: greedy is greedy, and nothing left out is never rejected", "[speculative]") {
  const toy::tokens prompt{0, 1, 2};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    toy::target model(4, seed);
    const auto plain = decant::generate(model, prompt, argmax(), tokens(30, seed)).tokens;
    for (const auto& [name, make] : makers()) {
      drafter from_inside = make(model);
      CHECK(decant::speculate(model, prompt, from_inside, argmax(), tokens(30, seed)).tokens == plain);
    }
  }
  toy::target model(4, 7);
  const std::vector<bool> nothing(model.sub_layers(), false);
  std::vector<drafter> whole;
  whole.emplace_back(decant::draft_and_verify(model, sampling(), nothing, always));
  whole.emplace_back(decant::layer_skip(model, sampling(), model.n_layers()));
  for (drafter& all_of_it : whole) {
    const auto run =
        decant::speculate(model, prompt, all_of_it, sampling(), tokens(31, 3), {.length = draft_length::fixed(4)});
    CHECK(run.statistics.accepted == run.statistics.proposed);
    CHECK(run.statistics.rounds == 7);  // of five tokens, but the last of one
  }
}

}  // namespace inside_target_tests
