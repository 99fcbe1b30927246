// SPDX-License-Identifier: MIT
#include <decant/search/best_first_search.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <decant/processors/suppress_tokens.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/reference/transformer.hpp>
#include <decant/reference/transformer_batch.hpp>
#include <decant/search/beam_search.hpp>

#include "reference/fixtures.hpp"
#include "search/models.hpp"
#include "search/naive_beam.hpp"
#include "search/padded.hpp"

namespace best_first_search_test {

using namespace decant;
using namespace search_test;
using numbers = std::vector<float>;

struct named_penalty {
  std::string name;
  length_penalty penalty;
};

const std::vector<named_penalty>& penalties() {
  static const std::vector<named_penalty> all{
      {"none", length_penalty::none()},
      {"power(-1)", length_penalty::power(-1)},
      {"power(0.6)", length_penalty::power(0.6)},
      {"mean", length_penalty::mean()},
      {"power(2)", length_penalty::power(2)},
      {"gnmt(0.6)", length_penalty::gnmt(0.6)},
      {"likes 3", [](double log_prob, std::size_t length) { return log_prob + (length == 3 ? 1.0 : 0.0); }},
  };
  return all;
}

naive_search naive(const row_function& rows, const length_penalty& penalty, std::size_t length = 5) {
  return {.rows = rows, .prompt = {0, 1}, .ends = {2}, .length = length, .score = penalty};
}

best_first_options options_for(const length_penalty& penalty, std::size_t length = 5) {
  return {.max_new_tokens = length, .end_tokens = {2}, .length_penalty = penalty};
}

/// Counts the rows asked for.
any_model counting(const row_function& rows, std::size_t& count) {
  return any_model([rows, &count](std::span<const token_id> text) { return ++count, rows(text); });
}

TEST_CASE("without a width it finds the best of all outputs, in order", "[search]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const row_function rows = random_rows(4, seed);
    for (const auto& [name, penalty] : penalties()) {
      INFO(name << ", seed " << seed);
      const auto all = naive(rows, penalty).all();
      any_model model(rows);
      best_first_options options = options_for(penalty);
      options.n_best = 6;
      const auto found = best_first_search(model, ids{0, 1}, options);
      REQUIRE(found.hypotheses.size() == 6);
      CHECK(found.end == best_first_end::settled);
      for (std::size_t i = 0; i < 6; ++i) {
        CHECK(found.hypotheses[i].tokens == all[i].tokens);
        CHECK(found.hypotheses[i].score == Approx(all[i].score).margin(1e-9));
        CHECK(found.hypotheses[i].log_prob == Approx(all[i].log_prob).margin(1e-9));
      }
      REQUIRE(found.bound);
      CHECK(*found.bound >= all[6].score - 1e-9);
      CHECK(*found.bound <= found.hypotheses.back().score);
    }
  }
}

TEST_CASE("asked for more outputs than there are, it gives all and says so", "[search]") {
  const row_function rows = random_rows(3, 9, 0.3);
  any_model model(rows);
  best_first_options options = options_for(length_penalty::none(), 3);
  options.n_best = 1000;
  const auto found = best_first_search(model, ids{0, 1}, options);
  const auto all = naive(rows, length_penalty::none(), 3).all();
  CHECK(found.hypotheses.size() == all.size());
  CHECK(found.end == best_first_end::exhausted);
  CHECK(!found.bound);
}

TEST_CASE("with a width its best output is that of beam search, for no more rows", "[search]") {
  std::size_t saved = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const row_function rows = random_rows(6, seed);
    for (const auto& [name, penalty] : penalties()) {
      for (const std::size_t width : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{5}}) {
        INFO(name << ", seed " << seed << ", width " << width);
        std::size_t rows_of_beam = 0, rows_of_best_first = 0;
        any_model for_beam = counting(rows, rows_of_beam), for_best_first = counting(rows, rows_of_best_first);
        const auto expected = beam_search(for_beam, ids{0, 1},
                                          {.width = width,
                                           .max_new_tokens = 6,
                                           .end_tokens = {2, 4},
                                           .length_penalty = penalty,
                                           .early_stopping = early_stopping::exact});
        best_first_options options = options_for(penalty, 6);
        options.end_tokens = {2, 4};
        options.width = width;
        const auto found = best_first_search(for_best_first, ids{0, 1}, options);
        REQUIRE((found.best() == nullptr) == (expected.best() == nullptr));
        if (found.best() == nullptr) continue;
        CHECK(found.best()->tokens == expected.best()->tokens);
        CHECK(found.best()->score == Approx(expected.best()->score).margin(1e-12));
        CHECK(found.best()->finish == expected.best()->finish);
        CHECK(found.best()->end_token == expected.best()->end_token);
        CHECK(found.rows == rows_of_best_first);
        CHECK(rows_of_best_first <= rows_of_beam);
        saved += rows_of_beam - rows_of_best_first;
        CHECK(!found.bound);
      }
    }
  }
  CHECK(saved > 0);
}

TEST_CASE("a width of 1 is greedy decoding", "[search]") {
  const row_function rows = random_rows(6, 33);
  any_model model(rows);
  const auto found = best_first_search(model, ids{0, 1}, {.width = 1, .max_new_tokens = 8});
  ids text{0, 1};
  for (int i = 0; i < 8; ++i) {
    const numbers row = rows(text);
    text.push_back(static_cast<token_id>(std::max_element(row.begin(), row.end()) - row.begin()));
  }
  REQUIRE(found.best() != nullptr);
  CHECK(found.best()->tokens == ids(text.begin() + 2, text.end()));
  CHECK(found.rows == 8);
}

/// The exact log-probability of the best that can follow a text, by plain recursion.
double best_rest(const naive_search& of, const ids& output) {
  if (output.size() == of.length || (!output.empty() && of.is_end(output.back()))) return 0;
  const auto law = of.log_law(output);
  double best = -std::numeric_limits<double>::infinity();
  for (std::size_t v = 0; v < law.size(); ++v) {
    if (law[v] < -1e300) continue;
    ids longer = output;
    longer.push_back(static_cast<token_id>(v));
    best = std::max(best, law[v] + best_rest(of, longer));
  }
  return best;
}

TEST_CASE("A*: an exact heuristic extends the best path alone, a weaker one no more than none", "[search]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const row_function rows = random_rows(4, seed, 0.0);
    const naive_search of = naive(rows, length_penalty::none());
    any_model model(rows);
    best_first_options options = options_for(length_penalty::none());
    const auto plain = best_first_search(model, ids{0, 1}, options);
    options.heuristic = [](std::span<const token_id>) { return 0.0; };
    const auto zero = best_first_search(model, ids{0, 1}, options);
    CHECK(zero.rows == plain.rows);
    CHECK(zero.best()->tokens == plain.best()->tokens);

    const auto rest = [&](std::span<const token_id> text) { return best_rest(of, ids(text.begin() + 2, text.end())); };
    options.heuristic = [&](std::span<const token_id> text) { return rest(text) / 2; };
    const auto half = best_first_search(model, ids{0, 1}, options);
    CHECK(half.best()->tokens == plain.best()->tokens);
    CHECK(half.rows <= plain.rows);

    options.heuristic = [&](std::span<const token_id> text) { return rest(text) + 1e-12; };
    const auto exact = best_first_search(model, ids{0, 1}, options);
    CHECK(exact.best()->tokens == plain.best()->tokens);
    CHECK(exact.rows == plain.best()->tokens.size());
  }
}

TEST_CASE("A*: what cannot go on is not waited for", "[search]") {
  const row_function rows = random_rows(4, 5, 0.0);
  any_model model(rows);
  best_first_options options = options_for(length_penalty::none());
  options.n_best = 1000;
  // Nothing may follow a 3.
  options.heuristic = [](std::span<const token_id> text) {
    return text.back() == 3 ? -std::numeric_limits<double>::infinity() : 0.0;
  };
  const auto found = best_first_search(model, ids{0, 1}, options);
  CHECK(found.end == best_first_end::exhausted);
  for (const hypothesis& h : found.hypotheses) {
    CHECK(std::find(h.tokens.begin(), h.tokens.end() - 1, 3) == h.tokens.end() - 1);
  }
}

TEST_CASE("a budget that is used up: what was found, and how good the rest could be", "[search]") {
  const row_function rows = random_rows(5, 41, 0.0);
  const auto all = naive(rows, length_penalty::none(), 6).all();
  any_model model(rows);
  best_first_options options = options_for(length_penalty::none(), 6);
  options.n_best = 3;
  const std::size_t needed = best_first_search(model, ids{0, 1}, options).rows;
  REQUIRE(needed > 3);
  for (std::size_t rows_allowed = 1; rows_allowed < needed; ++rows_allowed) {
    options.max_rows = rows_allowed;
    const auto found = best_first_search(model, ids{0, 1}, options);
    CHECK(found.end == best_first_end::budget);
    CHECK(found.rows == rows_allowed);
    REQUIRE(found.bound);
    for (const hypothesis& h : found.hypotheses) {
      const auto same = std::ranges::find(all, h.tokens, &naive_hypothesis::tokens);
      REQUIRE(same != all.end());
      CHECK(h.score == Approx(same->score).margin(1e-9));
    }
    CHECK(std::ranges::is_sorted(found.hypotheses, std::greater<>(), &hypothesis::score));
    // Either the true best is there, or the bound does not exclude it.
    const bool there = found.best() != nullptr && found.best()->tokens == all[0].tokens;
    CHECK((there || *found.bound >= all[0].score - 1e-9));
  }
  options.max_rows = needed;
  CHECK(best_first_search(model, ids{0, 1}, options).end == best_first_end::settled);
}

TEST_CASE("the callback counts rows, and may cancel", "[search]") {
  any_model model(random_rows(5, 42, 0.0));
  best_first_options options = options_for(length_penalty::none(), 6);
  std::size_t last = 0;
  options.on_row = [&](std::size_t rows) {
    CHECK(rows == last + 1);
    last = rows;
    return rows < 4;
  };
  const auto found = best_first_search(model, ids{0, 1}, options);
  CHECK(found.end == best_first_end::cancelled);
  CHECK(found.rows == 4);
}

TEST_CASE("ties go to the lower id", "[search]") {
  any_model flat([](std::span<const token_id>) { return numbers(4, 1.0F); });
  for (const std::size_t width : {std::size_t{0}, std::size_t{2}}) {
    const auto found = best_first_search(flat, ids{0}, {.width = width, .n_best = 2, .max_new_tokens = 3});
    REQUIRE(found.hypotheses.size() == 2);
    CHECK(found.hypotheses[0].tokens == ids{0, 0, 0});
    CHECK(found.hypotheses[1].tokens == ids{0, 0, 1});
  }
}

TEST_CASE("an end at the first step; a vocabulary of one; a vocabulary smaller than the width", "[search]") {
  any_model ending([](std::span<const token_id>) { return numbers{gone, 0, gone}; });
  for (const std::size_t width : {std::size_t{0}, std::size_t{1}, std::size_t{5}}) {
    const auto ended = best_first_search(ending, ids{0}, {.width = width, .n_best = 3, .end_tokens = {1, 2}});
    REQUIRE(ended.hypotheses.size() == 1);
    CHECK(ended.best()->tokens == ids{1});
    CHECK(ended.best()->finish == finish_reason::stop_token);
    CHECK(ended.best()->end_token == 1);
    CHECK(ended.best()->score == 0);
    CHECK(ended.end == best_first_end::exhausted);
    any_model single([](std::span<const token_id>) { return numbers{3}; });
    const auto same = best_first_search(single, ids{0}, {.width = width, .n_best = 3, .max_new_tokens = 4});
    REQUIRE(same.hypotheses.size() == 1);
    CHECK(same.best()->tokens == ids(4, 0));
    CHECK(same.best()->finish == finish_reason::length);
  }
}

TEST_CASE("rows that cannot be decoded end their hypotheses without a result", "[search]") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t width : {std::size_t{0}, std::size_t{3}}) {
    any_model all_gone([](std::span<const token_id>) { return numbers(3, gone); });
    auto found = best_first_search(all_gone, ids{0}, {.width = width});
    CHECK(found.best() == nullptr);
    CHECK(found.status == row_status::empty);
    CHECK(found.end == best_first_end::exhausted);
    any_model broken(
        [](std::span<const token_id> text) { return text.back() == 1 ? numbers{0, nan, 0} : numbers{0, 1, -1}; });
    found = best_first_search(broken, ids{0}, {.width = width, .n_best = 100, .max_new_tokens = 2});
    CHECK(found.status == row_status::not_finite);
    for (const hypothesis& h : found.hypotheses) CHECK(h.tokens.front() != 1);
    CHECK(found.hypotheses.size() == (width == 0 ? 6 : 3));
    found = best_first_search(broken, ids{1}, {.width = width});
    CHECK(found.best() == nullptr);
    CHECK(found.status == row_status::not_finite);
  }
}

TEST_CASE("processors make the distribution that is searched best first", "[search]") {
  const row_function rows = random_rows(5, 51, 0.0);
  any_model model(rows);
  const auto plain = best_first_search(model, ids{0, 1}, {.max_new_tokens = 4});
  const auto colder = best_first_search(model, ids{0, 1}, {.max_new_tokens = 4, .processors = {temperature(0.25)}});
  CHECK(colder.best()->log_prob > plain.best()->log_prob);
  const token_id banned = plain.best()->tokens.front();
  const auto without =
      best_first_search(model, ids{0, 1}, {.max_new_tokens = 4, .processors = {suppress_tokens({banned})}});
  CHECK(std::ranges::count(without.best()->tokens, banned) == 0);
}

TEST_CASE("on the transformer: exact, re-scored, within the context, and nothing left behind", "[search]") {
  const checkpoint weights = reference_tests::random_checkpoint(reference_tests::tiny_config(true), 100);
  transformer_batch model(weights);
  const ids prompt{3, 1, 4};
  const auto found = best_first_search(model, prompt, {.n_best = 4, .max_new_tokens = 4, .end_tokens = {7}});
  REQUIRE(found.hypotheses.size() == 4);
  CHECK(model.sequences() == 0);
  CHECK(model.kv().pages_in_use() == 0);
  for (const hypothesis& h : found.hypotheses) {
    ids text = prompt;
    text.insert(text.end(), h.tokens.begin(), h.tokens.end());
    transformer alone(weights);
    alone.score(text);
    candidates row;
    double sum = 0;
    for (std::size_t i = 0; i < h.tokens.size(); ++i) {
      row.bind(alone.row(prompt.size() - 1 + i));
      sum += row.log_probability(h.tokens[i]);
    }
    CHECK(h.log_prob == Approx(sum).margin(1e-9));
  }
  const auto wide = beam_search(
      model, prompt, {.width = 200, .max_new_tokens = 4, .end_tokens = {7}, .early_stopping = early_stopping::exact});
  CHECK(found.best()->score >= wide.best()->score - 1e-9);

  const auto full = best_first_search(model, ids(38, 7), {.width = 2});
  CHECK(full.best()->tokens.size() == 2);
  CHECK(full.best()->finish == finish_reason::context_full);
  CHECK(best_first_search(model, ids(40, 7)).best() == nullptr);
}

TEST_CASE("bad parameters are named, misuse is caught, ends have words", "[search]") {
  any_model model(random_rows(3, 1));
  CHECK_THROWS_WITH(best_first_search(model, ids{0}, {.n_best = 0}), "best_first_search: n_best = 0 must be >= 1");
  CHECK_THROWS_WITH(best_first_search(model, ids{0}, {.max_rows = 0}), "best_first_search: max_rows = 0 must be >= 1");
  CHECK_THROWS_WITH(best_first_search(model, ids{0}, {.max_new_tokens = 0}),
                    "best_first_search: max_new_tokens = 0 must be >= 1");
  CHECK_FALSE(best_first_options{}.validate());
  CHECK_THROWS_AS(best_first_search(model, ids{}), assertion_error);
  for (const auto end : {best_first_end::none, best_first_end::settled, best_first_end::exhausted,
                         best_first_end::budget, best_first_end::cancelled}) {
    CHECK(std::string(to_string(end)) != "unknown");
  }
}

TEST_CASE("best-first search never takes what pads a row", "[search]") {
  const row_function rows = random_rows(6, 33);
  stateless plain(rows);
  search_tests::padded model{stateless(rows)};
  const best_first_options options{.max_new_tokens = 4, .end_tokens = {1}};
  const auto expected = best_first_search(plain, ids{0, 1}, options);
  const auto found = best_first_search(model, ids{0, 1}, options);
  REQUIRE(found.best() != nullptr);
  CHECK(found.best()->tokens == expected.best()->tokens);
  CHECK(found.best()->log_prob == expected.best()->log_prob);
}

}  // namespace best_first_search_test
