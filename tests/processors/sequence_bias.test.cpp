// SPDX-License-Identifier: MIT
#include <decant/processors/sequence_bias.hpp>

#include "processors/lists.hpp"

#include <decant/chain.hpp>
#include <decant/processors/logit_bias.hpp>

namespace sequence_bias_tests {

using namespace lists;
using decant::sequence_bias;
using options = decant::sequence_bias_options;
using sequences = std::vector<decant::sequence_with_bias>;

/// The row with this much added to one token.
row plus(row logits, std::size_t id, float amount) {
  logits[id] += amount;
  return logits;
}

TEST_CASE("a sequence of one token is a bias at every step", "[processors]") {
  check_becomes(sequence_bias({{{3}, -2}}), g8, {}, plus(g8, 3, -2));
  check_becomes(sequence_bias({{{3}, -2}}), g8, {{1}}, plus(g8, 3, -2));
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(40, seed);
    CHECK(same_bits(logits_after(sequence_bias({{{3}, 1.3}, {{9}, -0.7}, {{3}, 0.1}}), logits, some_past(40)),
                    logits_after(decant::logit_bias({{3, 1.3}, {9, -0.7}, {3, 0.1}}), logits, some_past(40))));
  }
}

TEST_CASE("the last token of a sequence gets the bias where the others stand before it", "[processors]") {
  check_becomes(sequence_bias({{{1, 2}, 5}}), g8, {{0, 1}}, plus(g8, 2, 5));
  check_becomes(sequence_bias({{{1, 2, 3}, 5}}), g8, {{0, 1, 2}}, plus(g8, 3, 5));
  check_leaves(sequence_bias({{{1, 2}, 5}}), g8, {{1, 0}});
  check_leaves(sequence_bias({{{1, 2, 3}, 5}}), g8, {{1, 2, 2}});
  check_leaves(sequence_bias({{{1, 2, 3}, 5}}), g8, {{2, 1}});
}

TEST_CASE("sequence_bias: a text that is just the prefix counts (transformers misses it)", "[processors]") {
  check_becomes(sequence_bias({{{1, 2, 3}, 5}}), g8, {{1, 2}}, plus(g8, 3, 5));
  check_becomes(sequence_bias({{{1, 2}, 5}}), g8, {{1}}, plus(g8, 2, 5));
  check_leaves(sequence_bias({{{1, 2}, 5}}), g8, {});
  check_leaves(sequence_bias({{{1, 2, 3}, 5}}), g8, {{2}});
}

TEST_CASE("a prefix may lie in the prompt, or begin there", "[processors]") {
  for (std::size_t prompt = 0; prompt <= 3; ++prompt) {
    check_becomes(sequence_bias({{{1, 2, 3}, 5}}), g8, {{0, 1, 2}, prompt}, plus(g8, 3, 5));
  }
}

TEST_CASE("the cases of the golden file of sequence_bias", "[processors]") {
  for (const options& reading : {options{}, options{.hf_prefix = true}}) {
    check_becomes(sequence_bias({{{3}, -2}}, reading), g8, {{1}}, plus(g8, 3, -2));
    check_becomes(sequence_bias({{{1, 2}, 5}}, reading), g8, {{0, 1}}, plus(g8, 2, 5));
    check_leaves(sequence_bias({{{1, 2}, 5}}, reading), g8, {{1, 0}});
    check_leaves(sequence_bias({{{1, 2, 3}, 5}}, reading), g8, {{1, 2, 2}});
    check_becomes(sequence_bias({{{1}, 10}, {{0}, -infinity}}, reading), inf8, {{0}}, without(inf8, {0}));
    check_leaves(sequence_bias({{{1, 2, 3, 4, 5}, 7}}, reading), g8, {{2, 3, 4}});
  }
  // Where the text is only the prefix, the readings differ.
  check_leaves(sequence_bias({{{1, 2, 3}, 5}}, {.hf_prefix = true}), g8, {{1, 2}});
  const sequences fours{{{4, 4}, 1.5}, {{4, 4, 4}, 2.5}, {{3, 4}, 9}};
  check_becomes(sequence_bias(fours, {.hf_prefix = true}), g16, {{4, 4}}, plus(g16, 4, 1.5F));
  check_becomes(sequence_bias(fours), g16, {{4, 4}}, plus(g16, 4, 4));
  // Listed twice: the last one counts there, the sum here.
  check_becomes(sequence_bias({{{2}, 1}, {{2}, -3}}), g8, {{0}}, plus(g8, 2, -2));
}

TEST_CASE("with hf_prefix a single token needs no text, a sequence a text as long as itself", "[processors]") {
  check_becomes(sequence_bias({{{3}, 1}}, {.hf_prefix = true}), g8, {}, plus(g8, 3, 1));
  check_leaves(sequence_bias({{{1, 3}, 1}}, {.hf_prefix = true}), g8, {{1}});
  check_becomes(sequence_bias({{{1, 3}, 1}}, {.hf_prefix = true}), g8, {{1, 1}}, plus(g8, 3, 1));
}

TEST_CASE("overlapping sequences add, in any order to the same bits", "[processors]") {
  sequences list{{{3}, 0.1},    {{2, 3}, 1e8}, {{1, 2, 3}, -1e8}, {{0, 2, 3}, 50},
                 {{2, 3}, 0.7}, {{2, 5}, 0.3}, {{5}, -1}};
  const row expected = logits_after(sequence_bias(list), g8, {{1, 2}});
  CHECK(expected[3] == Approx(3.8));
  CHECK(expected[5] == Approx(-2.7));
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::ranges::rotate(list, list.begin() + 1);
    CHECK(same_bits(logits_after(sequence_bias(list), g8, {{1, 2}}), expected));
    std::ranges::reverse(list);
    CHECK(same_bits(logits_after(sequence_bias(list), g8, {{1, 2}}), expected));
  }
}

TEST_CASE("sequence_bias: -inf bans, whatever else applies", "[processors]") {
  check_becomes(sequence_bias({{{3}, 100}, {{1, 3}, -infinity}}), g8, {{1}}, without(g8, {3}));
  check_becomes(sequence_bias({{{3}, 100}, {{1, 3}, -infinity}}), g8, {{2}}, plus(g8, 3, 100));
}

TEST_CASE("sequence_bias equals its definition on random texts", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::uint32_t asked = 0;
    const auto below = [&](int n) {
      return static_cast<int>(draw_stream(seed).uniform(decant::purpose::user, asked++) * n);
    };
    sequences list;
    for (int i = 0; i < 12; ++i) {
      decant::sequence_with_bias one{{}, below(9) - 4.0};
      for (int k = below(4); k >= 0; --k) one.tokens.push_back(below(3));
      list.push_back(one);
    }
    past before;
    for (int i = below(6); i > 0; --i) before.text.push_back(below(3));
    const row logits{0.5F, -1, 2};
    row expected = logits;
    for (const auto& one : list) {
      const auto prefix = one.tokens.size() - 1;
      bool applies = prefix <= before.text.size();
      for (std::size_t k = 0; applies && k < prefix; ++k) {
        applies = before.text[before.text.size() - prefix + k] == one.tokens[k];
      }
      if (applies) expected[static_cast<std::size_t>(one.tokens.back())] += static_cast<float>(one.bias);
    }
    CHECK(logits_after(sequence_bias(list), logits, before) == expected);
    CHECK(difference(enumerated_law(sequence_bias(list), logits, before), reference::exact_law(expected)) < of_float);
  }
}

TEST_CASE("sequence_bias: no sequences and biases of 0 are off", "[processors]") {
  for (const sequences& list : {sequences{}, sequences{{{0}, 0}}, sequences{{{0}, -0.0}, {{5, 1, 0}, 0}}}) {
    CHECK(sequence_bias(list).off());
    check_identity(sequence_bias(list));
  }
  CHECK(!sequence_bias({{{0}, 1e-30}}).off());
  const past before{{5, 1}};
  check_leaves(sequence_bias({{{0}, 2}, {{5, 1, 0}, -2}}), {-0.0F, 1, 2, 3, 4, 5}, before);
}

TEST_CASE("sequence_bias refuses an empty sequence, NaN and +inf", "[processors]") {
  check_refused<sequence_bias>("sequence_bias.length of a sequence",
                               "sequence_bias: length of a sequence = 0 must be >= 1", sequences{{{1}, 1}, {{}, 1}});
  for (const double bad : {not_a_number, infinity}) {
    check_refused<sequence_bias>(
        "sequence_bias.bias",
        "sequence_bias: bias = " + decant::detail::number_text(bad) + " must be a finite number, or -inf to ban",
        sequences{{{1}, 1}, {{1, 2}, bad}});
  }
  check_made<sequence_bias>("sequence_bias(0 sequences)", sequences{});
  check_made<sequence_bias>("sequence_bias(1 sequence)", sequences{{{1, 2}, -infinity}});
  check_made<sequence_bias>("sequence_bias(2 sequences, hf_prefix = true)", sequences{{{1}, 1}, {{2}, largest}},
                            options{.hf_prefix = true});
}

TEST_CASE("an id outside the vocabulary is misuse at the first row, wherever it stands", "[processors]") {
  check_misuse(sequence_bias({{{8}, 1}}), g8);
  check_misuse(sequence_bias({{{1, 2, 8}, 1}}), g8);
  check_misuse(sequence_bias({{{8, 2}, 1}}), g8);
  check_misuse(sequence_bias({{{1}, 1}, {{-1, 2}, 1}}), g8);
}

TEST_CASE("sequence_bias on all sizes and on bad rows", "[processors]") {
  for (const double bias : {-infinity, -2.0, 3.0}) {
    check_sizes(sequence_bias({{{0}, bias}, {{0, 0}, bias}}), true);
    check_bad_rows(sequence_bias({{{0}, bias}, {{0, 0}, bias}}), true);
  }
}

TEST_CASE("sequence_bias passes check_processor", "[processors]") {
  check_report_with_ids(sequence_bias({{{2, 9, 4}, 2}, {{9, 5}, -3}, {{5}, 1}}), 12, false);
  check_report_with_ids(sequence_bias({{{2, 9, 4}, 2}, {{9, 5}, -infinity}, {{5}, 1}}), 12);
  check_report_of(sequence_bias(sequences{}));
}

}  // namespace sequence_bias_tests
