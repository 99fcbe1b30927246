// SPDX-License-Identifier: MIT
#include <decant/speculative/chain_drafter.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/core/law.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/samplers/mirostat.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/testing/enumerate.hpp>

#include "toy_target.hpp"

namespace chain_drafter_tests {

using decant::draft;
using decant::no_parent;
using decant::proposal;
using decant::token_id;
using decant::detail::chain_drafter;

const decant::testing::markov_model& model() {
  static const auto made = decant::testing::random_markov_model(3, 2, 11);
  return made;
}

const auto next = [](std::span<const token_id> history) { return model().row_after(history); };

auto sampling() { return decant::temperature(0.7) | decant::multinomial{}; }

TEST_CASE("chain_drafter: the law of a chain is the product of the laws that it states", "[speculative]") {
  const toy::tokens text{0, 2};
  const auto drafted = decant::testing::enumerate_law([&](decant::decision_hook& hook) {
    chain_drafter chain(sampling());
    draft out;
    chain.run(toy::request_after(text, 3, 128, &hook), out, 0, next);
    return toy::tokens(out.tokens().begin(), out.tokens().end());
  });
  CHECK(drafted.size() == 27);
  auto decoder = sampling();
  for (const auto& [path, probability] : drafted) {
    toy::tokens history = text;
    double product = 1;
    for (const token_id token : path) {
      const auto context = decant::context_after(history, 1, decant::draw_stream());
      product *= decoder.law_of(model().row_after(history), context).probability(token);
      history.push_back(token);
    }
    CHECK(probability == Approx(product).epsilon(1e-12));
  }
}

TEST_CASE("chain_drafter: each node's law is the decoder's after its path", "[speculative]") {
  chain_drafter chain(sampling());
  draft out;
  chain.run(toy::request_after(toy::tokens{1}, 4), out, 0, next);
  REQUIRE(out.size() == 4);
  CHECK(out.is_chain());
  CHECK(out.mode() == proposal::with_replacement);
  auto decoder = sampling();
  toy::tokens history{1};
  for (std::int32_t node = no_parent; node < 3; ++node) {
    const auto context = decant::context_after(history, 1, decant::draw_stream());
    CHECK(out.children_law(node) == decoder.law_of(model().row_after(history), context));
    history.push_back(out.token(node + 1));
  }
  CHECK(out.children_law(3).empty());
}

TEST_CASE("chain_drafter: an argmax is no draw", "[speculative]") {
  chain_drafter chain(decant::temperature(0.7) | decant::greedy{});
  draft out;
  chain.run(toy::request_after(toy::tokens{1}, 4), out, 0, next);
  CHECK(out.mode() == proposal::deterministic);
  toy::tokens history{1};
  for (const token_id token : out.tokens()) {
    CHECK(token == toy::argmax(model().row_after(history)));
    history.push_back(token);
  }
  CHECK(out.size() == 4);
  CHECK(out.children_law(no_parent).empty());
}

TEST_CASE("chain_drafter: where a chain ends", "[speculative]") {
  chain_drafter chain(decant::temperature(1) | decant::greedy{});
  const auto length = [&](auto rows, double threshold, const decant::draft_request& request) {
    draft out;
    chain.run(request, out, threshold, rows);
    return out.size();
  };
  const toy::tokens text{0};
  const auto always = [](std::span<const token_id>) {
    static const std::vector<float> row{0, std::log(3.0F)};  // 1/4, 3/4
    return std::span<const float>(row);
  };
  CHECK(length(always, 0, toy::request_after(text, 5)) == 5);
  CHECK(length(always, 0, toy::request_after(text, 5, 3)) == 3);
  CHECK(length(always, 0, toy::request_after(text, 0)) == 0);
  CHECK(length(always, 0.7499, toy::request_after(text, 5)) == 5);
  CHECK(length(always, 0.7501, toy::request_after(text, 5)) == 0);

  auto request = toy::request_after(text, 5);
  const toy::tokens stop{1};
  request.stop_tokens = stop;
  CHECK(length(always, 0, request) == 1);

  const auto twice = [&](std::span<const token_id> history) {
    return history.size() < 3 ? always(history) : std::span<const float>();
  };
  CHECK(length(twice, 0, toy::request_after(text, 5)) == 2);
  const auto spoilt = [&](float value) {
    return [&, row = std::vector<float>{0, value}](std::span<const token_id> history) {
      return history.size() < 2 ? always(history) : std::span<const float>(row);
    };
  };
  CHECK(length(spoilt(std::numeric_limits<float>::quiet_NaN()), 0, toy::request_after(text, 5)) == 1);
  CHECK(length(spoilt(std::numeric_limits<float>::quiet_NaN()), 0.1, toy::request_after(text, 5)) == 1);
  const std::vector<float> all_gone(2, decant::gone);
  const auto emptied = [&](std::span<const token_id>) { return std::span<const float>(all_gone); };
  CHECK(length(emptied, 0, toy::request_after(text, 5)) == 0);
}

TEST_CASE("chain_drafter: a decoder with state is misuse", "[speculative]") {
  CHECK_THROWS_AS(chain_drafter(decant::temperature(1) | decant::mirostat(5, 0.1)), assertion_error);
}

}  // namespace chain_drafter_tests
