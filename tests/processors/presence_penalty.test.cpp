// SPDX-License-Identifier: MIT
#include <decant/processors/presence_penalty.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/frequency_penalty.hpp>
#include <decant/processors/temperature.hpp>

namespace presence_penalty_tests {

using namespace policies;
using decant::chain;
using decant::presence_penalty;

TEST_CASE("a token loses the presence penalty once", "[processors]") {
  CHECK(logits_after(presence_penalty(0.5), {1, 1, 1, 1}, {{2, 0, 2, 2}}) == row{0.5F, 1, 0.5F, 1});
  CHECK(logits_after(presence_penalty(-0.5), {1, 1, 1, 1}, {{2, 0, 2, 2}}) == row{1.5F, 1, 1.5F, 1});
}

TEST_CASE("the presence penalty does not see the prompt (vmlx-swift#295, TensorRT-LLM PR5623)", "[processors]") {
  const past before{{7, 7, 7, 3}, 3};
  const row out = logits_after(presence_penalty(0.5), row(8, 2), before);
  CHECK(out[7] == 2);
  CHECK(out[3] == 1.5F);
}

TEST_CASE("a presence penalty of 0 is the identity bit for bit", "[processors]") {
  for (const double penalty : {0.0, -0.0}) {
    CHECK(presence_penalty(penalty).off());
    check_identity(presence_penalty(penalty));
  }
  CHECK(!presence_penalty(1e-9).off());
}

TEST_CASE("presence equals frequency where every token occurs once", "[processors]") {
  const past before{{0, 3, 5}};
  CHECK(logits_after(presence_penalty(0.3), golden, before) ==
        logits_after(decant::frequency_penalty(0.3), golden, before));
}

TEST_CASE("a constant added to all logits does not change the presence penalty's law", "[processors]") {
  row shifted = golden;
  for (float& z : shifted) z += 64;
  const past before{{0, 1, 1, 5}};
  CHECK(difference(law_after(presence_penalty(0.7), golden, before),
                   law_after(presence_penalty(0.7), shifted, before)) < 1e-5);
}

TEST_CASE("the presence penalty equals the reference, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    row logits = random_row(31, seed);
    logits[5] = gone;
    const past before = some_past(31);
    const auto output = std::span<const token_id>(before.text).subspan(before.prompt);
    for (const double penalty : {-1.0, 0.1, 2.0}) {
      const law expected =
          reference::exact_law(reference::count_penalty(reference::widened(logits), output, 0, penalty));
      CHECK(difference(law_after(presence_penalty(penalty), logits, before), expected) < of_float);
      CHECK(difference(enumerated_law(presence_penalty(penalty), logits, before), expected) < of_float);
    }
  }
}

TEST_CASE("a presence penalty refuses what is not a finite number", "[processors]") {
  for (const double bad : {not_a_number, infinity, -infinity}) {
    check_rejects<presence_penalty>(bad, "presence_penalty", "penalty", "must be a finite number");
  }
  for (const double good : {0.0, -0.0, denormal, -denormal, -2.0, 2.0, 100.0, largest, -largest})
    check_accepts<presence_penalty>(good);
  CHECK(presence_penalty(1.5).describe() == "presence_penalty(1.5)");
}

TEST_CASE("every accepted presence penalty leaves a good row good", "[processors]") {
  for (const double penalty : {denormal, 1e30, 3e38, 1e39, 1e300, largest}) {
    INFO("penalty " << penalty);
    CHECK(status_after(presence_penalty(penalty), {2, -2, 1, 3e38F}, {{0, 1, 3, 0}}) == row_status::ok);
    CHECK(status_after(presence_penalty(-penalty), {2, -2, 1, 3e38F}, {{0, 1, 3, 0}}) == row_status::ok);
  }
}

TEST_CASE("a gone token stays gone under a presence penalty", "[processors]") {
  CHECK(logits_after(presence_penalty(-2), {gone, 1}, {{0, 0, 0}}) == row{gone, 1});
}

TEST_CASE("an output with an id outside the vocabulary is misuse of the presence penalty", "[processors]") {
  CHECK_THROWS_AS(logits_after(presence_penalty(2), golden, {{6}}), assertion_error);
  CHECK(logits_after(chain(presence_penalty(2), decant::temperature(1)), golden, {{6}, 1}) == golden);
}

TEST_CASE("the presence penalty on all sizes and on bad rows", "[processors]") {
  for (const double penalty : {-1.0, 0.0, 0.7}) {
    check_sizes(presence_penalty(penalty));
    check_bad_rows(presence_penalty(penalty));
  }
}

TEST_CASE("the presence penalty passes check_processor", "[processors]") {
  for (const double penalty : {-1.0, 0.0, 0.7}) {
    check_report_of(presence_penalty(penalty),
                    {.shift_invariant = penalty == 0, .allocations = decant::testing::allocations});
  }
  check_report_of(presence_penalty(0.5), {.shift_invariant = true});
}

}  // namespace presence_penalty_tests
