// SPDX-License-Identifier: MIT
#include <decant/processors/encoder_repetition_penalty.hpp>

#include "processors/lists.hpp"

#include <decant/chain.hpp>
#include <decant/processors/repetition_penalty.hpp>
#include <decant/processors/temperature.hpp>

namespace encoder_repetition_penalty_tests {

using namespace lists;
using decant::chain;
using decant::encoder_repetition_penalty;

encoder_repetition_penalty with(double penalty, const tokens& source) { return {penalty, source}; }

TEST_CASE("the cases of the golden file of encoder_repetition_penalty", "[processors]") {
  check_becomes(with(1.5, {0, 1}), g8, {{2}}, {3.75F, static_cast<float>(-1.25 / 1.5), 0.75F, 3, 0, -2, 1.5F, 0.25F});
  check_becomes(with(0.5, {3, 3, 5}), g8, {{2}}, {2.5F, -1.25F, 0.75F, 1.5F, 0, -4, 1.5F, 0.25F});
  check_leaves(with(1, {0}), g8, {{0}});
  check_leaves(with(2, {4}), g8, {{1}});
  check_becomes(with(2, {5, 6}), single8, {{1}}, {gone, gone, gone, gone, gone, 2.5F, gone, gone});
  row expected = neg12;
  expected[0] = static_cast<float>(-3.5 / 1.2);
  expected[4] = -10;
  expected[10] = static_cast<float>(-0.25 / 1.2);
  check_becomes(with(1.2, {0, 4, 10}), neg12, {{1}}, expected);
  expected = g16;
  expected[1] = -0.40625F;
  expected[2] = static_cast<float>(-1.0625 / 3);
  expected[3] = static_cast<float>(-2.140625 / 3);
  check_becomes(with(3, {1, 2, 3}), g16, {{1}}, expected);
}

TEST_CASE("it is the repetition penalty of the source with the inverse penalty", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    row logits = random_row(40, seed);
    logits[5] = gone;
    const past source = some_past(40);
    for (const double penalty : {0.25, 0.5, 2.0, 8.0}) {  // with exact inverses
      CHECK(same_bits(logits_after(with(penalty, source.text), logits, {{7, 7}}),
                      logits_after(decant::repetition_penalty(1 / penalty), logits, source)));
    }
    for (const double penalty : {0.7, 1.1, 1.5}) {
      const law expected =
          reference::exact_law(reference::repetition_penalty(reference::widened(logits), source.text, 1 / penalty));
      CHECK(difference(law_after(with(penalty, source.text), logits, {{7, 7}}), expected) < of_float);
      CHECK(difference(enumerated_law(with(penalty, source.text), logits, {{7, 7}}), expected) < of_float);
    }
  }
}

TEST_CASE("encoder_repetition_penalty: only the source counts, each token once", "[processors]") {
  CHECK(logits_after(with(2, {1, 1, 1, 2, 1}), {4, 4, -4}, {{0, 0, 1}, 1}) == row{4, 8, -2});
}

TEST_CASE("encoder_repetition_penalty: the source is copied", "[processors]") {
  tokens source{1};
  const encoder_repetition_penalty policy(2, source);
  source[0] = 0;
  CHECK(logits_after(policy, {4, 4}) == row{4, 8});
}

TEST_CASE("a penalty above 1 never lowers a logit, below 1 never raises one", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const row logits = random_row(40, seed);
    const tokens source = some_past(40).text;
    for (const double penalty : {1.0001, 1.2, 3.0, 100.0}) {
      const row higher = logits_after(with(penalty, source), logits),
                lower = logits_after(with(1 / penalty, source), logits);
      for (std::size_t i = 0; i < 40; ++i) {
        CHECK(higher[i] >= logits[i]);
        CHECK(lower[i] <= logits[i]);
        if (std::ranges::find(source, static_cast<token_id>(i)) == source.end()) CHECK(higher[i] == logits[i]);
      }
    }
  }
}

TEST_CASE("encoder_repetition_penalty: a constant added to all logits changes the result", "[processors]") {
  row shifted = golden;
  for (float& z : shifted) z -= 4;
  CHECK(difference(law_after(with(1.5, {0}), golden), law_after(with(1.5, {0}), shifted)) > 0.05);
}

TEST_CASE("encoder_repetition_penalty: the sign is that of the logit as it stands", "[processors]") {
  const auto shift = [](candidates& c, const step_context&) { c.affine(1, -2); };
  CHECK(logits_after(chain(shift, with(2, {0, 1})), {1, 4}) == row{-0.5F, 4});
  CHECK(logits_after(chain(decant::temperature(2), with(2, {0, 1})), {-2, 4}) == row{-0.5F, 4});
}

TEST_CASE("a penalty of 1 and an empty source are off", "[processors]") {
  CHECK(with(1, {0}).off());
  CHECK(with(2, {}).off());
  CHECK(!with(1.0001, {0}).off());
  check_identity(with(1, {0}));
  check_identity(with(2, {}));
}

TEST_CASE("encoder_repetition_penalty refuses what is not a finite number > 0", "[processors]") {
  for (const double bad : {not_a_number, infinity, -infinity, 0.0, -0.0, -1.0, -denormal}) {
    check_refused<encoder_repetition_penalty>(
        "encoder_repetition_penalty.penalty",
        "encoder_repetition_penalty: penalty = " + decant::detail::number_text(bad) + " must be a finite number > 0",
        bad, tokens{0});
  }
  for (const double good : {denormal, 1e-300, 0.5, 1.0, 1.2, 1e300, largest}) {
    check_made<encoder_repetition_penalty>("encoder_repetition_penalty(" + decant::detail::number_text(good) + ")",
                                           good, tokens{0, 1});
  }
}

TEST_CASE("encoder_repetition_penalty: every accepted penalty leaves a good row good", "[processors]") {
  for (const double penalty : {denormal, 1e-300, 1e-45, 1e-38, 1e-30, 1e30, 1e38, 1e45, 1e300, largest}) {
    INFO("penalty " << penalty);
    CHECK(status_after(with(penalty, {0, 1, 2, 3}), {2, -2, 0, 1e-3F, 1}) == row_status::ok);
    CHECK(status_after(with(penalty, {0, 1, 2, 3}), {3e38F, -3e38F, 0, -0.0F, 1}) == row_status::ok);
  }
}

TEST_CASE("encoder_repetition_penalty: a source token outside the vocabulary is misuse", "[processors]") {
  check_misuse(with(2, {0, 8}), g8);
  check_misuse(with(2, {-1}), g8);
}

TEST_CASE("encoder_repetition_penalty on all sizes and on bad rows", "[processors]") {
  for (const double penalty : {0.7, 1.0, 1.3}) {
    check_sizes(with(penalty, {0}));
    check_bad_rows(with(penalty, {0}));
  }
}

TEST_CASE("encoder_repetition_penalty passes check_processor", "[processors]") {
  for (const double penalty : {0.7, 1.0, 1.3}) check_report_with_ids(with(penalty, {0, 2, 7, 2}), 8, false, false);
}

}  // namespace encoder_repetition_penalty_tests
