// SPDX-License-Identifier: MIT
#include <decant/processors/history.hpp>

#include "processors/policies.hpp"

#include <limits>

#include <decant/processors/frequency_penalty.hpp>
#include <decant/processors/presence_penalty.hpp>
#include <decant/processors/repetition_penalty.hpp>

namespace history_tests {

using namespace policies;
using decant::frequency_penalty;
using decant::history_scope;
using decant::presence_penalty;
using decant::repetition_penalty;

tokens seen(const history_scope& scope, const past& before, bool prompt_by_default) {
  const auto span = scope.of(context_after(before.text, before.prompt, draw_stream(1)), prompt_by_default);
  return {span.begin(), span.end()};
}

const past text{{10, 11, 12, 13, 14, 15}, 4};

TEST_CASE("a scope sees by default what the policy sees by itself", "[processors]") {
  CHECK(seen({}, text, true) == tokens{10, 11, 12, 13, 14, 15});
  CHECK(seen({}, text, false) == tokens{14, 15});
}

TEST_CASE("a scope says whether the prompt is seen, whatever the policy has", "[processors]") {
  for (const bool by_default : {false, true}) {
    CHECK(seen({.prompt = true}, text, by_default) == tokens{10, 11, 12, 13, 14, 15});
    CHECK(seen({.prompt = false}, text, by_default) == tokens{14, 15});
  }
}

TEST_CASE("the window is the last tokens of what the scope sees", "[processors]") {
  CHECK(seen({.window = 3}, text, true) == tokens{13, 14, 15});
  CHECK(seen({.window = 3}, text, false) == tokens{14, 15});
  CHECK(seen({.window = 1}, text, false) == tokens{15});
  CHECK(seen({.window = 6}, text, true).size() == 6);
  CHECK(seen({.window = std::numeric_limits<std::size_t>::max()}, text, true).size() == 6);
  CHECK(seen({.window = 1}, {}, true).empty());
}

TEST_CASE("a prefix of the prompt can be left out, never a part of the output (TensorRT-LLM PR8127)", "[processors]") {
  CHECK(seen({.ignore_prompt_prefix = 2}, text, true) == tokens{12, 13, 14, 15});
  CHECK(seen({.ignore_prompt_prefix = 4}, text, true) == tokens{14, 15});
  CHECK(seen({.ignore_prompt_prefix = 5}, text, true) == tokens{14, 15});
  CHECK(seen({.ignore_prompt_prefix = 2}, text, false) == tokens{14, 15});
  CHECK(seen({.window = 3, .ignore_prompt_prefix = 2}, text, true) == tokens{13, 14, 15});
  CHECK(seen({.window = 5, .ignore_prompt_prefix = 2}, text, true) == tokens{12, 13, 14, 15});
}

TEST_CASE("the penalties heed their scope (vmlx-swift#295)", "[processors]") {
  // id 7 three times in the prompt, once in the output
  const past before{{7, 7, 7, 1, 7}, 4};
  const row flat(8, 8);
  CHECK(logits_after(frequency_penalty(1), flat, before)[7] == 7);
  CHECK(logits_after(frequency_penalty(1, {.prompt = true}), flat, before)[7] == 4);
  CHECK(logits_after(frequency_penalty(1, {.window = 3, .prompt = true}), flat, before)[7] == 6);
  CHECK(logits_after(frequency_penalty(1, {.prompt = true, .ignore_prompt_prefix = 1}), flat, before)[7] == 5);
  CHECK(logits_after(presence_penalty(1), flat, before)[1] == 8);
  CHECK(logits_after(presence_penalty(1, {.prompt = true}), flat, before)[1] == 7);
  CHECK(logits_after(presence_penalty(1, {.window = 1, .prompt = true}), flat, before)[1] == 8);
  CHECK(logits_after(repetition_penalty(2), flat, before)[1] == 4);
  CHECK(logits_after(repetition_penalty(2, {.prompt = false}), flat, before)[1] == 8);
  CHECK(logits_after(repetition_penalty(2, {.prompt = false}), flat, before)[7] == 4);
  CHECK(logits_after(repetition_penalty(2, {.window = 1}), flat, before)[1] == 8);
}

TEST_CASE("leaving out a prefix of the prompt has Hugging Face's numbers for prompt_ignore_length", "[processors]") {
  const row g8{2.5F, -1.25F, 0.75F, 3, 0, -2, 1.5F, 0.25F};
  const past before{{0, 1, 2, 3}, 4};
  CHECK(logits_after(repetition_penalty(1.5, {.ignore_prompt_prefix = 2}), g8, before) ==
        row{2.5F, -1.25F, 0.5F, 2, 0, -2, 1.5F, 0.25F});
  CHECK(logits_after(repetition_penalty(1.5, {.ignore_prompt_prefix = 4}), g8, before) == g8);
}

TEST_CASE("all three penalties together have llama.cpp's numbers", "[processors]") {
  const row flat = logs(law(5, 0.2));
  const history_scope window{.window = 64, .prompt = true};
  const auto both = [&](const tokens& last) {
    return law_after(
        [&](candidates& c, const step_context& context) {
          frequency_penalty(5, window)(c, context);
          presence_penalty(5, window)(c, context);
        },
        flat, {last, last.size()});
  };
  CHECK(difference(both({0}), {0.000011, 0.249997, 0.249997, 0.249997, 0.249997}) < 1e-5);
  CHECK(difference(both({0, 1, 2}), {0.000023, 0.000023, 0.000023, 0.499966, 0.499966}) < 1e-5);
  CHECK(difference(both({0, 1, 2, 0, 0}), {0, 0.000023, 0.000023, 0.499977, 0.499977}) < 1e-5);
  const auto repeated = [&](const tokens& last) {
    return law_after(repetition_penalty(50, window), flat, {last, last.size()});
  };
  CHECK(difference(repeated({0}), {0, 0.25, 0.25, 0.25, 0.25}) < 1e-5);
  CHECK(difference(repeated({0, 1, 2, 0, 0}), {0, 0, 0, 0.5, 0.5}) < 1e-5);
}

TEST_CASE("a window equals the shorter text, for every length", "[processors]") {
  const row logits = random_row(31, 4);
  const past before = some_past(31);
  for (std::size_t window = 1; window <= before.text.size() + 1; ++window) {
    const auto from = before.text.size() - std::min(window, before.text.size());
    const tokens last(before.text.begin() + static_cast<std::ptrdiff_t>(from), before.text.end());
    CHECK(logits_after(repetition_penalty(1.3, {.window = window}), logits, before) ==
          logits_after(repetition_penalty(1.3), logits, {last}));
    CHECK(logits_after(frequency_penalty(0.3, {.window = window, .prompt = true}), logits, before) ==
          logits_after(frequency_penalty(0.3), logits, {last}));
    CHECK(logits_after(presence_penalty(0.3, {.window = window, .prompt = true}), logits, before) ==
          logits_after(presence_penalty(0.3), logits, {last}));
  }
}

TEST_CASE("a penalty says what is not default about its scope", "[processors]") {
  CHECK(repetition_penalty(1.2, history_scope{}).describe() == "repetition_penalty(1.2)");
  CHECK(repetition_penalty(1.2, {.prompt = true}).describe() == "repetition_penalty(1.2)");
  CHECK(repetition_penalty(1.2, {.window = 64}).describe() == "repetition_penalty(1.2, window = 64)");
  CHECK(repetition_penalty(1.2, {.prompt = false}).describe() == "repetition_penalty(1.2, prompt = false)");
  CHECK(repetition_penalty(1.2, {.ignore_prompt_prefix = 3}).describe() ==
        "repetition_penalty(1.2, ignore_prompt_prefix = 3)");
  CHECK(frequency_penalty(0.5, {.prompt = false}).describe() == "frequency_penalty(0.5)");
  CHECK(frequency_penalty(0.5, {.window = 64, .prompt = true}).describe() ==
        "frequency_penalty(0.5, window = 64, prompt = true)");
  CHECK(presence_penalty(0.5, {.window = 64, .prompt = true, .ignore_prompt_prefix = 2}).describe() ==
        "presence_penalty(0.5, window = 64, prompt = true, ignore_prompt_prefix = 2)");
  CHECK(decant::detail::with_option("name", "option", "on") == "name(option = on)");
}

TEST_CASE("a scope can be given to make, and is off where the penalty is", "[processors]") {
  const history_scope scope{.window = 4, .prompt = true};
  const auto made = frequency_penalty::make(0.5, scope);
  REQUIRE(made.has_value());
  CHECK(made->describe() == frequency_penalty(0.5, scope).describe());
  CHECK(presence_penalty::make(not_a_number, scope).error().message ==
        "presence_penalty: penalty = nan must be a finite number");
  CHECK(repetition_penalty::make(0.0, scope).error().message ==
        "repetition_penalty: penalty = 0 must be a finite number > 0");
  CHECK(complaint([&] { return repetition_penalty(0, scope); }) ==
        "repetition_penalty: penalty = 0 must be a finite number > 0");
  check_identity(repetition_penalty(1, scope));
  check_identity(frequency_penalty(0, scope));
  check_identity(presence_penalty(0, scope));
}

TEST_CASE("penalties with a scope pass check_processor", "[processors]") {
  const history_scope scope{.window = 5, .prompt = true, .ignore_prompt_prefix = 1};
  const decant::testing::check_options options{.allocations = decant::testing::allocations};
  check_report_of(repetition_penalty(1.3, scope), options);
  check_report_of(frequency_penalty(0.5, scope), options);
  check_report_of(presence_penalty(0.5, scope), options);
}

}  // namespace history_tests
