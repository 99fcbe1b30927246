// SPDX-License-Identifier: MIT
#include <decant/testing/enumerate.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <decant/chain.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>
#include <decant/testing/markov_model.hpp>
#include <decant/testing/reference_law.hpp>

namespace enumerate_tests {

using namespace decant::testing;
using decant::decision_hook;
using decant::draw_stream;
using decant::purpose;
using decant::token_id;
using tokens = std::vector<token_id>;

constexpr double tight = 1e-12;

TEST_CASE("two coins give their four outcomes", "[testing]") {
  int runs = 0;
  const auto law = enumerate_law([&](decision_hook& hook) {
    ++runs;
    const draw_stream draws = draw_stream(3).with_hook(&hook);
    const bool first = draws.chance(0.25, purpose::coin, 0);
    return std::pair(first, draws.chance(first ? 0.5 : 0.125, purpose::coin, 1));
  });
  CHECK(runs == 4);
  const result_law<std::pair<bool, bool>> expected{
      {{true, true}, 0.125}, {{true, false}, 0.125}, {{false, true}, 0.09375}, {{false, false}, 0.65625}};
  CHECK(distance(law, expected) == 0);
}

TEST_CASE("code without a decision has one path", "[testing]") {
  const auto law = enumerate_law([](decision_hook&) { return std::string("same"); });
  CHECK(law == result_law<std::string>{{"same", 1}});
}

TEST_CASE("options of weight 0 are never taken", "[testing]") {
  std::vector<double> weights{0, 2, 0, 6, 0};
  int runs = 0;
  const auto law = enumerate_law([&](decision_hook& hook) {
    ++runs;
    return draw_stream(1).with_hook(&hook).choose(weights, 8, purpose::user);
  });
  CHECK(runs == 2);
  CHECK(law == result_law<std::size_t>{{1, 0.25}, {3, 0.75}});
}

TEST_CASE("a certain coin is no decision", "[testing]") {
  int runs = 0;
  const auto law = enumerate_law([&](decision_hook& hook) {
    ++runs;
    const draw_stream draws = draw_stream(1).with_hook(&hook);
    return std::pair(draws.chance(0, purpose::coin), draws.chance(1, purpose::coin));
  });
  CHECK(runs == 1);
  CHECK(law == result_law<std::pair<bool, bool>>{{{false, true}, 1}});
}

TEST_CASE("equal keys get equal answers within a run", "[testing]") {
  const auto law = enumerate_law([](decision_hook& hook) {
    const draw_stream draws = draw_stream(1).with_hook(&hook);
    const bool first = draws.chance(0.5, purpose::coin);
    const bool other = draws.at(9).chance(0.5, purpose::coin);
    const bool again = draws.chance(0.5, purpose::coin);
    return std::vector<bool>{first, other, again};
  });
  CHECK(law.size() == 4);
  for (const auto& [answers, p] : law) {
    CHECK(answers[0] == answers[2]);
    CHECK(p == 0.25);
  }
}

TEST_CASE("position, purpose, index and stream all tell decisions apart", "[testing]") {
  const auto law = enumerate_law([](decision_hook& hook) {
    const draw_stream draws = draw_stream(1).with_hook(&hook);
    return std::vector<bool>{draws.chance(0.5, purpose::coin), draws.at(1).chance(0.5, purpose::coin),
                             draws.chance(0.5, purpose::accept), draws.chance(0.5, purpose::coin, 1),
                             draws.child(5).chance(0.5, purpose::coin)};
  });
  CHECK(law.size() == 32);
}

TEST_CASE("branches may differ in length", "[testing]") {
  // The first success of at most five trials.
  const auto law = enumerate_law([](decision_hook& hook) {
    const draw_stream draws = draw_stream(1).with_hook(&hook);
    std::size_t trial = 0;
    while (trial < 5 && !draws.at(trial).chance(0.25, purpose::coin)) ++trial;
    return trial;
  });
  for (const auto& [trial, p] : law) {
    CHECK(std::abs(p - (trial == 5 ? std::pow(0.75, 5) : 0.25 * std::pow(0.75, static_cast<double>(trial)))) < tight);
  }
}

TEST_CASE("code that depends on more than its decisions is found", "[testing]") {
  int runs = 0;
  const auto other_key = [&](decision_hook& hook) {
    return draw_stream(1).at(static_cast<std::size_t>(runs++)).with_hook(&hook).chance(0.5, purpose::coin);
  };
  CHECK_THROWS_AS(enumerate_law(other_key), assertion_error);

  double p = 0.5;
  const auto other_weights = [&](decision_hook& hook) {
    p /= 2;
    return draw_stream(1).with_hook(&hook).chance(p, purpose::coin);
  };
  CHECK_THROWS_AS(enumerate_law(other_weights), assertion_error);

  bool ask = true;
  const auto fewer = [&](decision_hook& hook) {
    if (ask) static_cast<void>(draw_stream(1).with_hook(&hook).chance(0.5, purpose::coin));
    ask = false;
    return 0;
  };
  CHECK_THROWS_AS(enumerate_law(fewer), assertion_error);

  const auto same_key = [](decision_hook& hook) {
    const draw_stream draws = draw_stream(1).with_hook(&hook);
    return std::pair(draws.chance(0.5, purpose::coin), draws.chance(0.25, purpose::coin));
  };
  CHECK_THROWS_AS(enumerate_law(same_key), assertion_error);
}

TEST_CASE("what cannot be enumerated is found", "[testing]") {
  CHECK_THROWS_AS(
      enumerate_law([](decision_hook& hook) { return draw_stream(1).with_hook(&hook).uniform(purpose::user); }),
      assertion_error);
  const auto endless = [](decision_hook& hook) {
    std::size_t heads = 0;
    while (heads < 20 && draw_stream(1).at(heads).with_hook(&hook).chance(0.5, purpose::coin)) ++heads;
    return heads;
  };
  CHECK_THROWS_AS(enumerate_law(endless, 10), assertion_error);
  CHECK(enumerate_law(endless, 21).size() == 21);
  CHECK_THROWS_AS(enumerate_law([](decision_hook& hook) {
                    const std::vector<double> weights{0, 0};
                    return hook.choose({}, weights, 1);
                  }),
                  assertion_error);
}

/// The law of sequences by the chain rule, from a reference of one step's law.
template <class StepLaw>
result_law<tokens> by_chain_rule(const markov_model& model, const tokens& prompt, std::size_t length, StepLaw step) {
  result_law<tokens> law{{tokens{}, 1}};
  for (std::size_t t = 0; t < length; ++t) {
    result_law<tokens> longer;
    for (const auto& [output, probability] : law) {
      tokens text = prompt;
      text.insert(text.end(), output.begin(), output.end());
      const std::vector<double> next = step(reference::widened(model.row_after(text)), text);
      for (std::size_t v = 0; v < next.size(); ++v) {
        if (!(next[v] > 0)) continue;
        tokens extended = output;
        extended.push_back(static_cast<token_id>(v));
        longer[extended] += probability * next[v];
      }
    }
    law = std::move(longer);
  }
  return law;
}

// Weights are float exponentials: each probability is right to 1.3e-7 or so, relative.
constexpr double of_float = 1e-6;

TEST_CASE("sampling a model gives the product of its conditionals", "[testing]") {
  for (std::size_t order = 0; order <= 2; ++order) {
    markov_model model = random_markov_model(3, order, 20 + order, 1, 0.2);
    const tokens prompt{1};
    const auto law = sequence_law(model, prompt, decant::decode_with(decant::multinomial{}), 4);
    const auto expected =
        by_chain_rule(model, prompt, 4, [](const auto& z, const tokens&) { return reference::exact_law(z); });
    CHECK(law.size() == expected.size());
    CHECK(distance(law, expected) < of_float);
  }
}

TEST_CASE("a chain's sequence law is the product of its processed conditionals", "[testing]") {
  markov_model model = random_markov_model(4, 2, 31);
  const tokens prompt{0, 3};
  const auto decoder =
      decant::repetition_penalty(1.3) | decant::temperature(0.7) | decant::top_k(3) | decant::multinomial{};
  const auto law = sequence_law(model, prompt, decoder, 3);
  const auto expected = by_chain_rule(model, prompt, 3, [](const auto& z, const tokens& text) {
    return reference::exact_law(
        reference::top_k(reference::temperature(reference::repetition_penalty(z, text, 1.3), 0.7), 3));
  });
  CHECK(law.size() == expected.size());
  CHECK(distance(law, expected) < of_float);
}

TEST_CASE("greedy has one sequence", "[testing]") {
  markov_model model = random_markov_model(4, 1, 8);
  const auto law = sequence_law(model, tokens{2}, decant::decode_with(decant::greedy{}), 5);
  CHECK(law.size() == 1);
  CHECK(law.begin()->second == 1);
  tokens text{2};
  for (int i = 0; i < 5; ++i) {
    const auto row = model.row_after(text);
    text.push_back(static_cast<token_id>(std::max_element(row.begin(), row.end()) - row.begin()));
  }
  CHECK(law.begin()->first == tokens(text.begin() + 1, text.end()));
}

TEST_CASE("a sequence ends where the row turns bad", "[testing]") {
  // After token 1 everything is impossible.
  markov_model model(2, 1, {0, 0, decant::gone, decant::gone, 0, 0});
  const auto law = sequence_law(model, tokens{0}, decant::decode_with(decant::multinomial{}), 2);
  CHECK(distance(law, result_law<tokens>{{{1}, 0.5}, {{0, 0}, 0.25}, {{0, 1}, 0.25}}) < tight);
}

TEST_CASE("distance and total variation of laws", "[testing]") {
  const result_law<char> a{{'x', 0.5}, {'y', 0.5}}, b{{'x', 0.25}, {'y', 0.5}, {'z', 0.25}}, none;
  CHECK(distance(a, a) == 0);
  CHECK(distance(a, b) == 0.25);
  CHECK(distance(b, a) == 0.25);
  CHECK(total_variation(a, b) == 0.25);
  CHECK(total_variation(a, a) == 0);
  CHECK(distance(a, none) == 0.5);
  CHECK(total_variation(a, none) == 0.5);
}

TEST_CASE("a token law in the form of an enumerated one", "[testing]") {
  decant::law law;
  law.ids = {2, 5};
  law.weights = {1, 3};
  law.total = 4;
  CHECK(as_result_law(law) == result_law<token_id>{{2, 0.25}, {5, 0.75}});
}

}  // namespace enumerate_tests
