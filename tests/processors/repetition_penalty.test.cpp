// SPDX-License-Identifier: MIT
#include <decant/processors/repetition_penalty.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>

namespace repetition_penalty_tests {

using namespace policies;
using decant::chain;
using decant::repetition_penalty;

TEST_CASE("the repetition penalty has the golden numbers", "[processors]") {
  const row out = logits_after(repetition_penalty(1.2), golden, {{0, 4, 5}, 3});
  const row expected{static_cast<float>(2 / 1.2), 1, 0.5F, 0, static_cast<float>(-1.2), static_cast<float>(-3 * 1.2)};
  CHECK(out == expected);
  CHECK(out[0] == Approx(1.6666667));
  CHECK(out[5] == Approx(-3.6));
}

TEST_CASE("a negative logit is multiplied, never raised (transformers#2302, NeMo#8194, higgs#32)", "[processors]") {
  CHECK(logits_after(repetition_penalty(2), {-2, 2, 0, gone, -1}, {{0, 1, 2, 3, 4}}) == row{-4, 1, 0, gone, -2});
  CHECK(logits_after(repetition_penalty(2), {-1, 0}, {{0}}) == row{-2, 0});
}

TEST_CASE("a token is penalised once, however often it occurred", "[processors]") {
  CHECK(logits_after(repetition_penalty(2), {4, 4, 4}, {{1, 1, 1, 2, 1}}) == row{4, 2, 2});
}

TEST_CASE("the prompt counts (vmlx-swift#295, CTranslate2#615)", "[processors]") {
  const past before{{0, 0, 0, 1}, 3};
  CHECK(logits_after(repetition_penalty(2), {8, 8, 8}, before) == row{4, 4, 8});
  CHECK(logits_after(repetition_penalty(2), {8, 8, 8}, {{0}, 1}) == row{4, 8, 8});
}

TEST_CASE("all history counts, not the last step only (CTranslate2#615)", "[processors]") {
  tokens text(5000, 2);
  text[0] = 0;
  CHECK(logits_after(repetition_penalty(2), {8, 8, 8}, {text}) == row{4, 8, 4});
}

TEST_CASE("without a history nothing changes", "[processors]") {
  CHECK(logits_after(repetition_penalty(2), golden) == golden);
}

TEST_CASE("a repetition penalty of 1 is the identity bit for bit", "[processors]") {
  CHECK(repetition_penalty(1).off());
  CHECK(!repetition_penalty(1.0001).off());
  check_identity(repetition_penalty(1));
}

TEST_CASE("a penalty above 1 never raises a logit, below 1 never lowers one", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const row logits = random_row(40, seed);
    const past before = some_past(40);
    for (const double penalty : {1.0001, 1.2, 3.0, 100.0}) {
      const row lower = logits_after(repetition_penalty(penalty), logits, before);
      const row higher = logits_after(repetition_penalty(1 / penalty), logits, before);
      for (std::size_t i = 0; i < 40; ++i) {
        CHECK(lower[i] <= logits[i]);
        CHECK(higher[i] >= logits[i]);
        const bool seen = std::ranges::find(before.text, static_cast<token_id>(i)) != before.text.end();
        if (!seen) CHECK(lower[i] == logits[i]);
      }
    }
  }
}

TEST_CASE("one penalised token does not gain probability, one of two can", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const row logits = random_row(10, seed);
    for (token_id v = 0; v < 10; ++v) {
      const auto i = static_cast<std::size_t>(v);
      CHECK(law_after(repetition_penalty(1.3), logits, {{v}})[i] <= reference::exact_law(logits)[i] + of_float);
    }
  }
  const row logits{10, 0.1F, 0};
  const double before = reference::exact_law(logits)[1],
               after = law_after(repetition_penalty(1.2), logits, {{0, 1}})[1];
  CHECK(before == Approx(5.0e-5).epsilon(0.01));
  CHECK(after == Approx(2.6e-4).epsilon(0.02));
}

TEST_CASE("a constant added to all logits changes the result (transformers#47595)", "[processors]") {
  row shifted = golden;
  for (float& z : shifted) z -= 4;
  CHECK(difference(law_after(repetition_penalty(1.5), golden, {{0}}),
                   law_after(repetition_penalty(1.5), shifted, {{0}})) > 0.05);
}

TEST_CASE("the sign is that of the logit as it stands", "[processors]") {
  const auto shift = [](candidates& c, const step_context&) { c.affine(1, -2); };
  CHECK(logits_after(chain(shift, repetition_penalty(2)), {1, 4}, {{0, 1}}) == row{-2, 1});
  const auto scale = [](candidates& c, const step_context&) { c.affine(0.5); };
  CHECK(logits_after(chain(scale, repetition_penalty(2)), {-2, 4}, {{0, 1}}) == row{-2, 1});
}

TEST_CASE("the repetition penalty equals the reference, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    row logits = random_row(31, seed);
    logits[5] = gone;
    const past before = some_past(31);
    for (const double penalty : {0.5, 1.1, 2.0}) {
      const law expected =
          reference::exact_law(reference::repetition_penalty(reference::widened(logits), before.text, penalty));
      CHECK(difference(law_after(repetition_penalty(penalty), logits, before), expected) < of_float);
      CHECK(difference(enumerated_law(repetition_penalty(penalty), logits, before), expected) < of_float);
    }
  }
}

TEST_CASE("a repetition penalty refuses what is not a finite number > 0", "[processors]") {
  for (const double bad : {not_a_number, infinity, -infinity, 0.0, -0.0, -1.0, -denormal}) {
    check_rejects<repetition_penalty>(bad, "repetition_penalty", "penalty", "must be a finite number > 0");
  }
  for (const double good : {denormal, 1e-300, 0.5, 1.0, 1.2, 1e300, largest}) check_accepts<repetition_penalty>(good);
  CHECK(repetition_penalty(1.2).describe() == "repetition_penalty(1.2)");
}

TEST_CASE("every accepted penalty leaves a good row good", "[processors]") {
  const past before{{0, 1, 2, 3}};
  for (const double penalty : {denormal, 1e-300, 1e-45, 1e-38, 1e-30, 1e30, 1e38, 1e45, 1e300, largest}) {
    INFO("penalty " << penalty);
    CHECK(status_after(repetition_penalty(penalty), {2, -2, 0, 1e-3F, 1}, before) == row_status::ok);
    CHECK(status_after(repetition_penalty(penalty), {3e38F, -3e38F, 0, 1, 1}, before) == row_status::ok);
  }
}

TEST_CASE("the paper's plain division raises negative logits, the default never does", "[processors]") {
  const past before{{0, 1, 2, 3}};
  const row logits{-2, 2, 0, gone, -1};
  CHECK(logits_after(repetition_penalty(2, decant::penalty_form::ctrl_paper), logits, before) ==
        row{-1, 1, 0, gone, -1});
  CHECK(logits_after(repetition_penalty(2, decant::penalty_form::never_raises), logits, before) ==
        row{-4, 1, 0, gone, -1});
  // A token that occurred becomes likelier: what the other form is there to prevent.
  CHECK(law_after(repetition_penalty(2, decant::penalty_form::ctrl_paper), {-2, -1}, {{0}})[0] >
        reference::exact_law(row{-2, -1})[0] + 0.1);
  CHECK(law_after(repetition_penalty(2), {-2, -1}, {{0}})[0] < reference::exact_law(row{-2, -1})[0] - 0.1);
}

TEST_CASE("both forms are one on positive logits, and mirror each other on negative ones", "[processors]") {
  const past before = some_past(40);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const row logits = random_row(40, seed);
    const row paper = logits_after(repetition_penalty(1.3, decant::penalty_form::ctrl_paper), logits, before);
    const row standard = logits_after(repetition_penalty(1.3), logits, before);
    for (std::size_t i = 0; i < 40; ++i) {
      const bool was_seen = std::ranges::find(before.text, static_cast<token_id>(i)) != before.text.end();
      if (logits[i] > 0 || !was_seen) CHECK(paper[i] == standard[i]);
      if (was_seen) CHECK(paper[i] == static_cast<float>(static_cast<double>(logits[i]) / 1.3));
    }
  }
}

TEST_CASE("the paper's form takes a scope, is off at 1, refuses the same and says what it is", "[processors]") {
  using decant::penalty_form;
  CHECK(logits_after(repetition_penalty(2, penalty_form::ctrl_paper, {.window = 1}), {-2, -2}, {{0, 1}}) ==
        row{-2, -1});
  check_identity(repetition_penalty(1, penalty_form::ctrl_paper));
  const std::string expected = "repetition_penalty: penalty = 0 must be a finite number > 0";
  CHECK(complaint([] { return repetition_penalty(0, penalty_form::ctrl_paper); }) == expected);
  CHECK(repetition_penalty::make(0.0, penalty_form::ctrl_paper).error().message == expected);
  CHECK(repetition_penalty(1.2, penalty_form::never_raises).describe() == "repetition_penalty(1.2)");
  CHECK(repetition_penalty(1.2, penalty_form::ctrl_paper, {.window = 64}).describe() ==
        "repetition_penalty(1.2, form = ctrl_paper, window = 64)");
  const past before{{0, 1, 2, 3}};
  for (const double penalty : {denormal, 1e-45, 1e-38, 1e38, largest}) {
    CHECK(status_after(repetition_penalty(penalty, penalty_form::ctrl_paper), {3e38F, -3e38F, 0, 1, 1}, before) ==
          row_status::ok);
  }
  check_report_of(repetition_penalty(1.3, penalty_form::ctrl_paper), {.allocations = decant::testing::allocations});
}

TEST_CASE("the repetition penalty has Hugging Face's numbers", "[processors]") {
  const row g8{2.5F, -1.25F, 0.75F, 3, 0, -2, 1.5F, 0.25F};
  CHECK(logits_after(repetition_penalty(1.5), g8, {{0, 1, 2}}) ==
        row{static_cast<float>(2.5 / 1.5), -1.875F, 0.5F, 3, 0, -2, 1.5F, 0.25F});
  CHECK(logits_after(repetition_penalty(1.5), g8, {{0, 0, 0, 1, 1}}) ==
        row{static_cast<float>(2.5 / 1.5), -1.875F, 0.75F, 3, 0, -2, 1.5F, 0.25F});
  CHECK(logits_after(repetition_penalty(0.5), g8, {{3, 5}}) == row{2.5F, -1.25F, 0.75F, 6, 0, -1, 1.5F, 0.25F});
  CHECK(logits_after(repetition_penalty(2), g8, {{4}}) == g8);
  CHECK(logits_after(repetition_penalty(1.25), {2, gone, 1, gone, 3, gone, 0, 0.5F}, {{1, 4}}) ==
        row{2, gone, 1, gone, static_cast<float>(2.4), gone, 0, 0.5F});
  CHECK(logits_after(repetition_penalty(2), {1000, 999, 998.5F, -1000, 0, 997, 996, 500}, {{0, 3}}) ==
        row{500, 999, 998.5F, -2000, 0, 997, 996, 500});
}

TEST_CASE("a history with an id outside the vocabulary is misuse", "[processors]") {
  CHECK_THROWS_AS(logits_after(repetition_penalty(2), golden, {{6}}), assertion_error);
  CHECK_THROWS_AS(logits_after(repetition_penalty(2), golden, {{-1}}), assertion_error);
}

TEST_CASE("other rows are untouched by a penalty (TGI#1810)", "[processors]") {
  candidates c;
  row penalised = golden, other = golden;
  c.bind(std::span<float>(penalised));
  repetition_penalty policy(2);
  const tokens text{0, 1};
  policy(c, context_after(text, 0, {}));
  CHECK(c.logit(0) == 1);
  c.bind(std::span<float>(other));
  CHECK(c.logit(0) == 2);
  CHECK(same_bits(penalised, golden));
  c.release();
  CHECK(same_bits(other, golden));
}

TEST_CASE("the repetition penalty on all sizes and on bad rows", "[processors]") {
  for (const double penalty : {0.7, 1.0, 1.3}) {
    check_sizes(repetition_penalty(penalty));
    check_bad_rows(repetition_penalty(penalty));
  }
}

TEST_CASE("the repetition penalty passes check_processor", "[processors]") {
  for (const double penalty : {0.7, 1.0, 1.3}) {
    check_report_of(repetition_penalty(penalty), {.allocations = decant::testing::allocations});
  }
}

}  // namespace repetition_penalty_tests
