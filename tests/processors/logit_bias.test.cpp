// SPDX-License-Identifier: MIT
#include <decant/processors/logit_bias.hpp>

#include "processors/lists.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace logit_bias_tests {

using namespace lists;
using decant::logit_bias;
using biases = std::vector<decant::token_bias>;

TEST_CASE("a bias is added to its token", "[processors]") {
  check_becomes(logit_bias({{0, -1}, {3, 0.5}}), g8, {}, {1.5F, -1.25F, 0.75F, 3.5F, 0, -2, 1.5F, 0.25F});
  check_becomes(logit_bias({{4, 100}}), g8, {}, {2.5F, -1.25F, 0.75F, 3, 100, -2, 1.5F, 0.25F});
}

TEST_CASE("several biases on one token add up, in any order to the same bits", "[processors]") {
  check_becomes(logit_bias({{2, 1}, {2, -3}}), g8, {}, {2.5F, -1.25F, -1.25F, 3, 0, -2, 1.5F, 0.25F});
  biases list{{5, 0.1}, {1, 1e7}, {5, 0.7}, {1, -1e7}, {5, 1e8}, {1, 0.3}, {5, -1e8}};
  const row expected = logits_after(logit_bias(list), g8);
  CHECK(expected[5] == Approx(-1.2));
  CHECK(expected[1] == Approx(-0.95));
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::ranges::rotate(list, list.begin() + 1);
    CHECK(same_bits(logits_after(logit_bias(list), g8), expected));
    std::ranges::reverse(list);
    CHECK(same_bits(logits_after(logit_bias(list), g8), expected));
  }
}

TEST_CASE("a bias of -inf bans before any filter (llama.cpp#19699, ik_llama.cpp#1109)", "[processors]") {
  const row logits{120, 3, 2, 1};
  check_becomes(logit_bias({{0, -infinity}}), logits, {}, {gone, 3, 2, 1});
  CHECK(survivors(decant::chain(logit_bias({{0, -infinity}}), decant::top_k(2)), logits) == tokens{1, 2});
  check_becomes(logit_bias({{0, 500}, {0, -infinity}, {0, 500}}), logits, {}, {gone, 3, 2, 1});
}

TEST_CASE("a bias of -100 does not ban: a logit 120 above still wins (mikupad#25)", "[processors]") {
  const row logits{120, -5, -5, -5};
  CHECK(survivors(logit_bias({{0, -100}}), logits) == tokens{0, 1, 2, 3});
  CHECK(law_after(logit_bias({{0, -100}}), logits)[0] > 0.999);
}

TEST_CASE("logit_bias: all tokens banned leave an empty row", "[processors]") {
  biases all;
  for (token_id id = 0; id < 8; ++id) all.push_back({id, -infinity});
  check_becomes(logit_bias(all), g8, {}, row(8, gone));
}

TEST_CASE("logit_bias: a token that is gone gets no bias", "[processors]") {
  check_becomes(logit_bias({{1, 50}, {2, 1}}), inf8, {}, {2, gone, 2, gone, 3, gone, 0, 0.5F});
}

TEST_CASE("a bias is in units of the logits as they stand", "[processors]") {
  CHECK(logits_after(decant::chain(decant::temperature(2), logit_bias({{0, 1}})), {4, 2}) == row{3, 1});
  CHECK(logits_after(decant::chain(logit_bias({{0, 1}}), decant::temperature(2)), {4, 2}) == row{2.5F, 1});
}

TEST_CASE("the same bias on every token changes no probability", "[processors]") {
  biases all;
  for (token_id id = 0; id < 8; ++id) all.push_back({id, 4});
  CHECK(difference(law_after(logit_bias(all), g8), reference::exact_law(g8)) < of_float);
}

TEST_CASE("a negated list undoes a list", "[processors]") {
  const logit_bias there({{0, 2}, {3, -8}}), back({{0, -2}, {3, 8}});
  CHECK(logits_after(decant::chain(there, back), g8) == g8);
}

TEST_CASE("no biases, and those that add up to 0, are the identity bit for bit", "[processors]") {
  for (const biases& list : {biases{}, biases{{0, 0}}, biases{{0, -0.0}}, biases{{0, 3}, {0, -3}}}) {
    CHECK(logit_bias(list).off());
    check_identity(logit_bias(list));
  }
  CHECK(!logit_bias({{0, 1e-30}}).off());
  CHECK(!logit_bias({{0, -infinity}}).off());
}

TEST_CASE("every accepted bias leaves a good row good", "[processors]") {
  for (const double bias : {denormal, -denormal, 1e-40, 1e30, -1e30, 3.5e38, -3.5e38, largest, -largest}) {
    INFO("bias " << bias);
    CHECK(status_after(logit_bias({{0, bias}, {1, -bias}}), {3e38F, -3e38F, 0}) == row_status::ok);
    CHECK(survivors(logit_bias({{0, bias}, {1, -bias}}), {3e38F, -3e38F, 0}) == tokens{0, 1, 2});
  }
}

TEST_CASE("logit_bias refuses NaN and +inf", "[processors]") {
  for (const double bad : {not_a_number, infinity}) {
    check_refused<logit_bias>(
        "logit_bias.bias",
        "logit_bias: bias = " + decant::detail::number_text(bad) + " must be a finite number, or -inf to ban",
        biases{{0, 1}, {2, bad}});
  }
  check_made<logit_bias>("logit_bias(2 tokens)", biases{{0, 1}, {2, -infinity}, {0, 1}});
  check_made<logit_bias>("logit_bias(0 tokens)", biases{});
}

TEST_CASE("a bias on an id outside the vocabulary is misuse", "[processors]") {
  check_misuse(logit_bias({{8, 1}}), g8);
  check_misuse(logit_bias({{-1, 1}}), g8);
  check_misuse(logit_bias({{0, 1}, {8, 0}}), g8);
  check_misuse(logit_bias({{8, -infinity}}), g8);
}

TEST_CASE("logit_bias on all sizes and on bad rows", "[processors]") {
  for (const double bias : {-infinity, -2.0, 3.0}) {
    check_sizes(logit_bias({{0, bias}}), true);
    check_bad_rows(logit_bias({{0, bias}}), true);
  }
}

TEST_CASE("logit_bias passes check_processor", "[processors]") {
  check_report_with_ids(logit_bias({{0, 2}, {7, -2}}), 8, false);
  check_report_with_ids(logit_bias({{0, 2}, {1, -infinity}}), 8);
  check_report_of(logit_bias(biases{}));
}

}  // namespace logit_bias_tests
