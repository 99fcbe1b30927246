// SPDX-License-Identifier: MIT
#include <decant/processors/frequency_penalty.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/presence_penalty.hpp>
#include <decant/processors/temperature.hpp>

namespace frequency_penalty_tests {

using namespace policies;
using decant::chain;
using decant::frequency_penalty;

TEST_CASE("a token loses the frequency penalty for every occurrence in the output", "[processors]") {
  CHECK(logits_after(frequency_penalty(0.5), {1, 1, 1, 1}, {{2, 0, 2, 2}}) == row{0.5F, 1, -0.5F, 1});
  CHECK(logits_after(frequency_penalty(-0.5), {1, 1, 1, 1}, {{2, 0, 2, 2}}) == row{1.5F, 1, 2.5F, 1});
}

TEST_CASE("the frequency penalty does not see the prompt (vmlx-swift#295, TensorRT-LLM PR5623)", "[processors]") {
  const past before{{7, 7, 7, 7}, 3};
  CHECK(logits_after(frequency_penalty(0.5), row(8, 2), before)[7] == 1.5F);
  CHECK(logits_after(frequency_penalty(0.5), row(8, 2), {{7, 7, 7, 7}, 4}) == row(8, 2));
}

TEST_CASE("every accepted token is counted (SGLang PR33643)", "[processors]") {
  CHECK(logits_after(frequency_penalty(1), {5, 5, 5}, {{0, 1, 1, 2}, 1}) == row{5, 3, 4});
}

TEST_CASE("a frequency penalty of 0 is the identity bit for bit", "[processors]") {
  for (const double penalty : {0.0, -0.0}) {
    CHECK(frequency_penalty(penalty).off());
    check_identity(frequency_penalty(penalty));
  }
  CHECK(!frequency_penalty(1e-9).off());
}

TEST_CASE("the frequency penalty works alone, and with presence (ik_llama PR504)", "[processors]") {
  const past before{{1, 1, 2}};
  CHECK(logits_after(chain(frequency_penalty(0.25), decant::presence_penalty(1)), {4, 4, 4}, before) ==
        row{4, 2.5F, 2.75F});
  CHECK(logits_after(chain(decant::presence_penalty(1), frequency_penalty(0.25)), {4, 4, 4}, before) ==
        row{4, 2.5F, 2.75F});
  CHECK(logits_after(chain(frequency_penalty(0), decant::presence_penalty(1)), {4, 4, 4}, before) == row{4, 3, 3});
}

TEST_CASE("a constant added to all logits does not change the frequency penalty's law", "[processors]") {
  row shifted = golden;
  for (float& z : shifted) z += 64;
  const past before{{0, 1, 1, 5}};
  CHECK(difference(law_after(frequency_penalty(0.7), golden, before),
                   law_after(frequency_penalty(0.7), shifted, before)) < 1e-5);
}

TEST_CASE("the frequency penalty equals the reference, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    row logits = random_row(31, seed);
    logits[5] = gone;
    const past before = some_past(31);
    const auto output = std::span<const token_id>(before.text).subspan(before.prompt);
    for (const double penalty : {-1.0, 0.1, 2.0}) {
      const law expected =
          reference::exact_law(reference::count_penalty(reference::widened(logits), output, penalty, 0));
      CHECK(difference(law_after(frequency_penalty(penalty), logits, before), expected) < of_float);
      CHECK(difference(enumerated_law(frequency_penalty(penalty), logits, before), expected) < of_float);
    }
  }
}

TEST_CASE("a penalty is subtracted from the logit as it stands", "[processors]") {
  CHECK(logits_after(chain(decant::temperature(0.5), frequency_penalty(1)), {1, 2}, {{1}}) == row{2, 3});
  CHECK(logits_after(chain(frequency_penalty(1), decant::temperature(0.5)), {1, 2}, {{1}}) == row{2, 2});
  // Also where the temperature is so low that the stored penalty is tiny.
  CHECK(difference(law_after(chain(decant::temperature(1e-30), frequency_penalty(1)), {0, 0}, {{1}}),
                   reference::exact_law(row{0, -1})) < of_float);
  CHECK(difference(law_after(chain(decant::temperature(1e-39), frequency_penalty(1)), {0, 0}, {{1}}),
                   reference::exact_law(row{0, -1})) < of_float);
}

TEST_CASE("a frequency penalty refuses what is not a finite number", "[processors]") {
  for (const double bad : {not_a_number, infinity, -infinity}) {
    check_rejects<frequency_penalty>(bad, "frequency_penalty", "penalty", "must be a finite number");
  }
  for (const double good : {0.0, -0.0, denormal, -denormal, -2.0, 2.0, 100.0, largest, -largest})
    check_accepts<frequency_penalty>(good);
  CHECK(frequency_penalty(-0.5).describe() == "frequency_penalty(-0.5)");
}

TEST_CASE("every accepted frequency penalty leaves a good row good", "[processors]") {
  for (const double penalty : {denormal, 1e30, 3e38, 1e39, 1e300, largest}) {
    INFO("penalty " << penalty);
    CHECK(status_after(frequency_penalty(penalty), {2, -2, 1, 3e38F}, {{0, 1, 3, 0}}) == row_status::ok);
    CHECK(status_after(frequency_penalty(-penalty), {2, -2, 1, 3e38F}, {{0, 1, 3, 0}}) == row_status::ok);
  }
}

TEST_CASE("a gone token stays gone under a frequency penalty", "[processors]") {
  CHECK(logits_after(frequency_penalty(-2), {gone, 1}, {{0, 0, 0}}) == row{gone, 1});
}

TEST_CASE("an output with an id outside the vocabulary is misuse of the frequency penalty", "[processors]") {
  CHECK_THROWS_AS(logits_after(frequency_penalty(2), golden, {{6}}), assertion_error);
  CHECK(logits_after(frequency_penalty(2), golden, {{6}, 1}) == golden);
}

TEST_CASE("the frequency penalty on all sizes and on bad rows", "[processors]") {
  for (const double penalty : {-1.0, 0.0, 0.7}) {
    check_sizes(frequency_penalty(penalty));
    check_bad_rows(frequency_penalty(penalty));
  }
}

TEST_CASE("the frequency penalty passes check_processor", "[processors]") {
  for (const double penalty : {-1.0, 0.0, 0.7}) {
    check_report_of(frequency_penalty(penalty),
                    {.shift_invariant = penalty == 0, .allocations = decant::testing::allocations});
  }
  // Rows on a grid of eighths: with a penalty on it too, the shift is exact.
  check_report_of(frequency_penalty(0.5), {.shift_invariant = true});
}

}  // namespace frequency_penalty_tests
