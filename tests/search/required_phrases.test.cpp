// SPDX-License-Identifier: MIT
#include <decant/search/required_phrases.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <decant/search/beam_search.hpp>
#include <decant/testing/enumerate.hpp>

#include "search/constraints.hpp"
#include "search/models.hpp"
#include "search/naive_beam.hpp"

namespace required_phrases_test {

using namespace search_test;
using decant::beam_options;
using decant::beam_search;
using decant::phrase_choice;
using decant::required_phrases;

using choices = std::vector<phrase_choice>;

static_assert(decant::ProgressConstraint<required_phrases>);

/// Whether a text has a phrase that begins at `from` or later; then also where the first such ends.
bool contains(const ids& text, const ids& phrase, std::size_t from, std::size_t& end) {
  const auto found =
      std::search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), phrase.begin(), phrase.end());
  if (found == text.end()) return false;
  end = static_cast<std::size_t>(found - text.begin()) + phrase.size();
  return true;
}

/// What required_phrases decides, by looking at the whole text again.
bool fulfilled(const choices& all, bool ordered, const ids& text) {
  std::size_t from = 0;
  for (const phrase_choice& choice : all) {
    std::size_t first = text.size() + 1;
    for (const ids& phrase : choice.alternatives) {
      std::size_t end = 0;
      if (contains(text, phrase, ordered ? from : 0, end)) first = std::min(first, end);
    }
    if (first > text.size()) return false;
    from = first;
  }
  return true;
}

bool accepts(const choices& all, bool ordered, const ids& text) {
  required_phrases constraint(all, {.ordered = ordered});
  for (const token_id token : text) constraint.accept(token);
  return constraint.finished();
}

/// All texts of some length.
template <class F>
void each_text(std::size_t vocabulary, std::size_t length, F f) {
  ids text(length, 0);
  for (;;) {
    f(text);
    std::size_t i = 0;
    while (i < length && static_cast<std::size_t>(++text[i]) == vocabulary) text[i++] = 0;
    if (i == length) return;
  }
}

std::vector<choices> many_choices() {
  return {{},
          {{{{1, 1, 2}}}},
          {{{{1, 2}}}, {{{2, 0}}}},
          {{{{1, 2, 1, 0}}}},
          {{{{0}}}, {{{0}}}},
          {{{{1, 2}, {2, 1, 0}}}, {{{0, 0}}}},
          {{{{0, 1, 0}}}, {{{1, 0, 1}}}},
          {{{{2}}}, {{{1, 2}}}, {{{0, 1}}}}};
}

TEST_CASE("phrases are found in every text that has them, and in no other", "[search][required_phrases]") {
  for (const choices& all : many_choices()) {
    for (const bool ordered : {false, true}) {
      for (std::size_t length = 1; length <= 7; ++length) {
        std::size_t wrong = 0;
        each_text(3, length,
                  [&](const ids& text) { wrong += accepts(all, ordered, text) != fulfilled(all, ordered, text); });
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("an order is kept, and phrases in it do not overlap", "[search][required_phrases]") {
  const choices all{{{{1, 2}}}, {{{2, 3}}}};
  CHECK(accepts(all, false, {1, 2, 3}));
  CHECK_FALSE(accepts(all, true, {1, 2, 3}));
  CHECK(accepts(all, true, {1, 2, 2, 3}));
  CHECK(accepts(all, false, {2, 3, 1, 2}));
  CHECK_FALSE(accepts(all, true, {2, 3, 1, 2}));
}

TEST_CASE("progress counts tokens, and every advancing token makes it more", "[search][required_phrases]") {
  required_phrases one({{{{1, 1, 2}}}, {{{4}, {5, 6}}}});
  CHECK(one.goal() == 4);  // three, and the shorter alternative
  std::vector<std::size_t> progress;
  for (const token_id token : {1, 1, 1, 4, 1, 1, 2}) {
    const std::size_t expected = one.progress_after(token);
    one.accept(token);
    CHECK(one.progress() == expected);
    progress.push_back(one.progress());
  }
  CHECK(progress == std::vector<std::size_t>{1, 2, 2, 1, 2, 3, 4});
  CHECK(one.finished());
  for (const choices& all : many_choices()) {
    for (const bool ordered : {false, true}) {
      each_text(3, 4, [&](const ids& text) {
        required_phrases constraint(all, {.ordered = ordered});
        for (const token_id token : text) constraint.accept(token);
        CHECK(constraint.progress() <= constraint.goal());
        CHECK((constraint.progress() == constraint.goal()) == constraint.finished());
        ids advancing;
        constraint.advancing(advancing);
        for (token_id token = 0; token < 3; ++token) {
          if (constraint.progress_after(token) > constraint.progress()) {
            CHECK(std::ranges::find(advancing, token) != advancing.end());
          }
        }
        CHECK(advancing.empty() == constraint.finished());
      });
    }
  }
}

TEST_CASE("rollback undoes, and a copy goes its own way", "[search][required_phrases]") {
  required_phrases first({{{{1, 2}}}});
  first.accept(1);
  required_phrases second = first;
  second.accept(2);
  CHECK(second.finished());
  CHECK_FALSE(first.finished());
  second.rollback(1);
  CHECK_FALSE(second.finished());
  CHECK(second.progress() == 1);
  second.accept(3);
  second.accept(2);
  CHECK_FALSE(second.finished());
  second.rollback(3);
  CHECK(second.progress() == 0);
  CHECK_THROWS_AS(second.rollback(1), assertion_error);
}

TEST_CASE("phrases that cannot be are refused", "[search][required_phrases]") {
  CHECK_THROWS_WITH(required_phrases(choices{{{{}}}}), "required_phrases: phrase length = 0 must be at least 1");
  CHECK_THROWS_WITH(required_phrases(choices{{{{1}}}, {}}), "required_phrases: alternatives = 0 must be at least 1");
  CHECK_FALSE(required_phrases::make(choices(65, {{{1}}})).has_value());
  CHECK(required_phrases::make(choices(64, {{{1}}})).has_value());
}

// ---- in a search

beam_options with(std::size_t width, decant::any_constraint constraint) {
  return {.width = width,
          .n_best = width,
          .max_new_tokens = 5,
          .end_tokens = {0},
          .length_penalty = decant::length_penalty::mean(),
          .early_stopping = decant::early_stopping::exact,
          .constraint = std::move(constraint)};
}

const choices two{{{{2, 3}}}, {{{1}, {3, 3}}}};

TEST_CASE("a wide beam finds the best outputs that have all phrases", "[search][required_phrases]") {
  for (const bool ordered : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      CAPTURE(ordered, seed);
      const naive_search naive{random_rows(4, seed, 0.05),
                               {1},
                               {0},
                               5,
                               0,
                               [](double s, std::size_t n) { return s / static_cast<double>(n); }};
      auto expected = naive.all();
      std::erase_if(expected, [&](const auto& one) { return !fulfilled(two, ordered, one.tokens); });
      any_model model(naive.rows);
      const auto found = beam_search(model, naive.prompt, with(1000, required_phrases(two, {.ordered = ordered})));
      REQUIRE(found.hypotheses.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (!is_tied(expected, i)) CHECK(found.hypotheses[i].tokens == expected[i].tokens);
        CHECK(found.hypotheses[i].score == Approx(expected[i].score));
      }
    }
  }
}

TEST_CASE("a narrow beam finds outputs that have all phrases, which without them it would not",
          "[search][required_phrases]") {
  std::size_t without = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    for (const std::size_t width : {1U, 2U, 4U}) {
      CAPTURE(seed, width);
      // Twenty tokens, of which the phrases' are improbable.
      any_model model([rows = random_rows(20, seed, 0)](std::span<const token_id> text) {
        auto row = rows(text);
        for (const std::size_t id : {2U, 3U}) row[id] -= 6;
        return row;
      });
      beam_options options = with(width, required_phrases(two));
      options.max_new_tokens = 8;
      const auto found = beam_search(model, ids{1}, options);
      REQUIRE(!found.hypotheses.empty());
      for (const decant::hypothesis& one : found.hypotheses) CHECK(fulfilled(two, false, one.tokens));
      options.constraint = {};
      const auto free = beam_search(model, ids{1}, options);
      without += fulfilled(two, false, free.best()->tokens);
    }
  }
  CHECK(without == 0);
}

TEST_CASE("without phrases a constrained search is a search", "[search][required_phrases]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    any_model model(random_rows(6, seed));
    const auto plain = beam_search(model, ids{2}, with(3, {}));
    const auto constrained = beam_search(model, ids{2}, with(3, required_phrases(choices{})));
    REQUIRE(plain.hypotheses.size() == constrained.hypotheses.size());
    for (std::size_t i = 0; i < plain.hypotheses.size(); ++i) {
      CHECK(plain.hypotheses[i].tokens == constrained.hypotheses[i].tokens);
      CHECK(plain.hypotheses[i].score == constrained.hypotheses[i].score);
    }
  }
}

TEST_CASE("what cannot be fulfilled within the length gives no result", "[search][required_phrases]") {
  any_model model(random_rows(4, 3, 0));
  std::size_t unfulfilled = 0;
  beam_options options = with(3, required_phrases({{{{1, 2, 3, 1, 2, 3}}}}));
  options.on_candidate = [&](const auto& one) { unfulfilled += one.fate == decant::candidate_fate::unfulfilled; };
  const auto found = beam_search(model, ids{1}, options);
  CHECK(found.hypotheses.empty());
  CHECK(found.end == decant::search_end::length);
  CHECK(unfulfilled > 0);
}

TEST_CASE("a constraint of any type shapes a search, and its hypotheses keep their own", "[search][required_phrases]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const naive_search naive{random_rows(4, seed, 0), {1}, {0}, 5, 2};
    any_model model(naive.rows);
    auto expected = naive.all();
    std::erase_if(expected, [](const auto& one) { return std::ranges::adjacent_find(one.tokens) != one.tokens.end(); });
    beam_options options = with(1000, no_doubles{.vocabulary = 4});
    options.length_penalty = {};
    const auto found = beam_search(model, naive.prompt, options);
    REQUIRE(found.hypotheses.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!is_tied(expected, i)) CHECK(found.hypotheses[i].tokens == expected[i].tokens);
      // Not made a distribution again: the mask takes nothing from the score.
      CHECK(found.hypotheses[i].score == Approx(expected[i].score));
    }
    options.constraint = tokens_in_order{{3, 1, 2}};
    options.width = options.n_best = 2;
    for (const decant::hypothesis& one : beam_search(model, naive.prompt, options).hypotheses) {
      std::size_t next = 0;
      for (const token_id token : one.tokens) next += next < 3 && token == ids{3, 1, 2}[next];
      CHECK(next == 3);
    }
  }
}

TEST_CASE("sampling under a constraint is not sampling from what fulfils it", "[search][required_phrases]") {
  const naive_search naive{random_rows(3, 2, 0), {1}, {}, 3};
  auto fulfilling = naive.all();
  std::erase_if(fulfilling, [](const auto& one) { return std::ranges::adjacent_find(one.tokens) != one.tokens.end(); });
  any_model model(naive.rows);
  const auto law = decant::testing::enumerate_law([&](decant::decision_hook& hook) {
    return beam_search(model, naive.prompt,
                       {.width = 1,
                        .max_new_tokens = 3,
                        .sampling = decant::beam_sampling{.draws = 1},
                        .constraint = no_doubles{.vocabulary = 3},
                        .hook = &hook})
        .best()
        ->tokens;
  });
  REQUIRE(law.size() == fulfilling.size());
  double mass = 0, furthest = 0;
  for (const auto& one : fulfilling) mass += std::exp(one.log_prob);
  for (const auto& one : fulfilling) {
    // Each step draws from what is allowed there, whatever becomes of it later.
    double local = 1;
    for (std::size_t i = 0; i < one.tokens.size(); ++i) {
      const auto row = naive.log_law({one.tokens.begin(), one.tokens.begin() + static_cast<std::ptrdiff_t>(i)});
      double allowed = 0;
      for (std::size_t v = 0; v < row.size(); ++v) {
        if (i == 0 || static_cast<std::size_t>(one.tokens[i - 1]) != v) allowed += std::exp(row[v]);
      }
      local *= std::exp(row[static_cast<std::size_t>(one.tokens[i])]) / allowed;
    }
    CHECK(law.at(one.tokens) == Approx(local));
    furthest = std::max(furthest, std::abs(local - std::exp(one.log_prob) / mass));
  }
  CHECK(furthest > 0.01);
}

}  // namespace required_phrases_test
