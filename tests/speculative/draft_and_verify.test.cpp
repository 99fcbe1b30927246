// SPDX-License-Identifier: MIT
#include <decant/speculative/draft_and_verify.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/reference/transformer.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/samplers/multinomial.hpp>

#include "reference/fixtures.hpp"
#include "toy_target.hpp"

namespace draft_and_verify_tests {

using decant::draft;
using decant::draft_and_verify;
using decant::exit_threshold_options;

const std::vector<bool> nothing(8, false), two{false, false, true, true, false, false, false, false};
const exit_threshold_options always{.start = 0, .step = 0};

auto argmax() { return decant::temperature(1) | decant::greedy{}; }

TEST_CASE("draft_and_verify: nothing skipped drafts the target's own laws, and all is accepted", "[speculative]") {
  toy::target model(4, 51);
  auto decoder = decant::temperature(0.8) | decant::multinomial{};
  draft_and_verify drafter(model, decoder, nothing, always);
  static_assert(decant::DraftSource<decltype(drafter)>);
  model.score(toy::tokens{0, 2});
  draft out;
  const toy::tokens text{0, 2, 1};
  const auto request = toy::request_after(text, 5);
  drafter.propose(request, out);
  REQUIRE(out.size() == 5);
  toy::tokens history = text;
  for (std::int32_t node = decant::no_parent; node < 4; ++node) {
    const auto context = decant::context_after(history, 1, request.context.draws);
    CHECK(out.children_law(node) == decoder.law_of(model.row_after(history), context));
    history.push_back(out.token(node + 1));
  }
  CHECK(model.held() == toy::tokens{0, 2});

  draft_and_verify greedy(model, argmax(), nothing, always);
  const auto done = toy::greedy_rounds(model, greedy, {0, 1}, 41, 4);
  CHECK(done.accepted == done.proposed);
  CHECK(done.passes == 8);
}

TEST_CASE("draft_and_verify: whatever is skipped, greedy output is the target's own", "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    toy::target model(4, seed);
    for (const double start : {0.0, 0.4}) {
      draft_and_verify drafter(model, argmax(), two, {.start = start});
      const auto done = toy::greedy_rounds(model, drafter, {0, 1}, 30);
      CHECK(done.text == toy::greedy_text(model, {0, 1}, 30));
      if (start > 0) CHECK(drafter.threshold().value() != start);
    }
  }
}

TEST_CASE("draft_and_verify: a draft ends below the threshold", "[speculative]") {
  toy::target model(4, 53);
  model.score(toy::tokens{0, 2});
  draft out;
  draft_and_verify unsure(model, argmax(), two, {.start = 1});
  unsure.propose(toy::request_after(toy::tokens{0, 2, 1}), out);
  CHECK(out.empty());
  draft_and_verify asked(model, argmax(), two, always);
  const toy::tokens text{0, 2, 1};
  auto request = toy::request_after(text);
  request.min_confidence = 1;
  asked.propose(request, out);
  CHECK(out.empty());
  CHECK(model.size() == 2);
}

TEST_CASE("draft_and_verify: on the reference transformer", "[speculative]") {
  const decant::checkpoint weights = reference_tests::random_checkpoint(reference_tests::small_config(), 54);
  decant::transformer model(weights), plain(weights);
  const toy::tokens prompt{3, 17, 30};
  const auto expected = toy::greedy_text(plain, prompt, 24);
  for (std::size_t left_out = 0; left_out < 8; ++left_out) {
    std::vector<bool> skip(8, false);
    skip[left_out] = true;
    skip[(left_out + 3) % 8] = true;
    draft_and_verify drafter(model, argmax(), skip, always);
    CHECK(toy::greedy_rounds(model, drafter, prompt, 24, 4).text == expected);
  }
  draft_and_verify whole(model, argmax(), nothing, always);
  const auto done = toy::greedy_rounds(model, whole, prompt, 24, 4);
  CHECK(done.text == expected);
  CHECK(done.accepted == done.proposed);
}

TEST_CASE("draft_and_verify: misuse", "[speculative]") {
  toy::target model(4, 55);
  CHECK_THROWS_AS(draft_and_verify(model, argmax(), std::vector<bool>(7)), assertion_error);
  CHECK_THROWS_AS(draft_and_verify(model, argmax(), nothing, {.start = 2}), decant::parameter_error);
  draft_and_verify drafter(model, argmax(), nothing, always);
  model.score(toy::tokens{0, 2});
  draft out;
  CHECK_THROWS_AS(drafter.propose(toy::request_after(toy::tokens{0, 2}), out), assertion_error);
}

}  // namespace draft_and_verify_tests
