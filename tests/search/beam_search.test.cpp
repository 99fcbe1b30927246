// SPDX-License-Identifier: MIT
#include <decant/search/beam_search.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/generate/generate.hpp>
#include <decant/processors/min_new_tokens.hpp>
#include <decant/processors/no_repeat_ngram.hpp>
#include <decant/processors/renormalise.hpp>
#include <decant/processors/suppress_tokens.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/reference/transformer.hpp>
#include <decant/reference/transformer_batch.hpp>
#include <decant/samplers/greedy.hpp>

#include "reference/fixtures.hpp"
#include "search/models.hpp"
#include "search/naive_beam.hpp"

// What a search finds, held against search by its definition and against all that could be found.

namespace beam_search_test {

using namespace search_test;
using decant::beam_options;
using decant::beam_result;
using decant::beam_search;
using decant::early_stopping;
using decant::hypothesis;
using decant::length_penalty;

constexpr double infinite = std::numeric_limits<double>::infinity();

/// A penalty in both forms, and its name.
struct penalty_case {
  std::string name;
  length_penalty penalty;
  score_function score;
};

std::vector<penalty_case> penalties() {
  std::vector<penalty_case> all{{"none", {}, [](double s, std::size_t) { return s; }}};
  for (const double exponent : {-1.0, 0.0, 0.6, 1.0, 2.0}) {
    all.push_back({"power", length_penalty::power(exponent),
                   [=](double s, std::size_t n) { return s / std::pow(static_cast<double>(n), exponent); }});
  }
  all.push_back({"gnmt", length_penalty::gnmt(0.6),
                 [](double s, std::size_t n) { return s / std::pow((5 + static_cast<double>(n)) / 6, 0.6); }});
  // Best of all at three tokens: neither end of the range of lengths bounds it.
  const auto bump = [](double s, std::size_t n) { return s - std::abs(static_cast<double>(n) - 3); };
  all.push_back({"own", length_penalty(bump), bump});
  return all;
}

void check_same(const beam_result& found, const std::vector<naive_hypothesis>& expected) {
  REQUIRE(found.hypotheses.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!is_tied(expected, i)) CHECK(found.hypotheses[i].tokens == expected[i].tokens);
    CHECK(found.hypotheses[i].log_prob == Approx(expected[i].log_prob).margin(1e-9));
    CHECK(found.hypotheses[i].score == Approx(expected[i].score).margin(1e-9));
  }
}

TEST_CASE("beams are what their definition says, for every penalty, way to stop and set of ends", "[search][beam]") {
  using stop = naive_search::stop;
  struct way {
    early_stopping ours;
    stop theirs;
    double patience;
  };
  const std::vector<way> ways{{early_stopping::first_n, stop::first_n, 1},
                              {early_stopping::first_n, stop::first_n, 0.4},
                              {early_stopping::first_n, stop::first_n, 2.5},
                              {early_stopping::heuristic, stop::heuristic, 1},
                              {early_stopping::exact, stop::exact, 1}};
  std::uint64_t seed = 0;
  for (const penalty_case& penalty : penalties()) {
    for (const way& how : ways) {
      for (const ids& ends : std::vector<ids>{{}, {0}, {4, 1}, {0, 1, 2}}) {
        for (std::size_t width = 1; width <= 4; ++width) {
          const std::size_t least = seed % 5 == 0 ? 2 : 0;
          CAPTURE(penalty.name, ends.size(), width, least, ++seed);
          const naive_search naive{random_rows(5, seed), {1, 3}, ends, 6, least, penalty.score};
          any_model model(naive.rows);
          const beam_result found = beam_search(model, naive.prompt,
                                                {.width = width,
                                                 .n_best = width,
                                                 .max_new_tokens = 6,
                                                 .min_new_tokens = least,
                                                 .end_tokens = ends,
                                                 .length_penalty = penalty.penalty,
                                                 .early_stopping = how.ours,
                                                 .patience = how.patience});
          check_same(found, naive.beam(width, how.theirs, how.patience));
        }
      }
    }
  }
}

TEST_CASE(
    "a beam that holds everything finds the best of all, whatever the penalty and the way to stop (OpenNMT-py#1320)",
    "[search][beam]") {
  // Three tokens other than the end, four steps: at most 3^3 live hypotheses that matter, and 121 outputs.
  for (const penalty_case& penalty : penalties()) {
    for (const auto how : {early_stopping::first_n, early_stopping::heuristic, early_stopping::exact}) {
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        CAPTURE(penalty.name, seed);
        const naive_search naive{random_rows(4, seed, 0.05), {2}, {0}, 4, 0, penalty.score};
        auto expected = naive.all();
        any_model model(naive.rows);
        const beam_options options{.width = 200,
                                   .n_best = 200,
                                   .max_new_tokens = 4,
                                   .end_tokens = {0},
                                   .length_penalty = penalty.penalty,
                                   .early_stopping = how};
        check_same(beam_search(model, naive.prompt, options), expected);
      }
    }
  }
}

TEST_CASE("with a width of n^(T-1) the most probable sequence of T tokens is found", "[search][beam]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const naive_search naive{random_rows(3, seed, 0), {0}, {}, 4};
    any_model model(naive.rows);
    const auto found = beam_search(model, naive.prompt, {.width = 27, .max_new_tokens = 4});
    REQUIRE(found.best() != nullptr);
    CHECK(found.best()->tokens == naive.all().front().tokens);
  }
}

TEST_CASE("exact stopping gives what running to the maximum length gives (transformers#20901, #21368)",
          "[search][beam]") {
  std::size_t sooner = 0;
  for (const penalty_case& penalty : penalties()) {
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
      CAPTURE(penalty.name, seed);
      any_model model(random_rows(5, seed));
      beam_options options{.width = 3,
                           .n_best = 3,
                           .max_new_tokens = 8,
                           .end_tokens = {0, 1},
                           .length_penalty = penalty.penalty,
                           .early_stopping = early_stopping::exact};
      const auto exact = beam_search(model, ids{2}, options);
      options.early_stopping = early_stopping::first_n;
      options.patience = infinite;
      const auto whole = beam_search(model, ids{2}, options);
      sooner += exact.steps < whole.steps;
      REQUIRE(exact.hypotheses.size() == whole.hypotheses.size());
      for (std::size_t i = 0; i < whole.hypotheses.size(); ++i) {
        CHECK(exact.hypotheses[i].tokens == whole.hypotheses[i].tokens);
      }
    }
  }
  CHECK(sooner > 20);
}

TEST_CASE("a beam of one is greedy", "[search][beam]") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    any_model model(random_rows(6, seed));
    const ids prompt{1, 2};
    const auto greedy =
        generate(model, prompt, decode_with(decant::greedy{}), {.max_new_tokens = 7, .stop_tokens = {0}});
    const auto found = beam_search(
        model, prompt, {.width = 1, .max_new_tokens = 7, .end_tokens = {0}, .early_stopping = early_stopping::first_n});
    REQUIRE(found.hypotheses.size() == 1);
    CHECK(found.best()->tokens == greedy.tokens);
  }
}

TEST_CASE("the sum of log-probabilities is what scoring the sequence again gives", "[search][beam]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const naive_search naive{random_rows(7, seed), {3}, {0}, 9};
    any_model model(naive.rows);
    const auto found =
        beam_search(model, naive.prompt, {.width = 4, .n_best = 4, .max_new_tokens = 9, .end_tokens = {0}});
    for (const hypothesis& one : found.hypotheses) {
      double sum = 0;
      ids so_far;
      for (const token_id token : one.tokens) {
        sum += naive.log_law(so_far)[static_cast<std::size_t>(token)];
        so_far.push_back(token);
      }
      CHECK(one.log_prob == Approx(sum).margin(1e-11));
    }
  }
}

TEST_CASE("on the transformer: beams are those of rows scored one by one, alone and in a batch", "[search][beam]") {
  const decant::checkpoint weights = reference_tests::random_checkpoint(reference_tests::tiny_config(true), 91);
  decant::transformer_batch model(weights);
  const std::vector<ids> prompts{{3, 1, 4, 1, 5}, {2, 7}, {6}};
  const beam_options options{
      .width = 4, .n_best = 4, .max_new_tokens = 6, .end_tokens = {2}, .early_stopping = early_stopping::exact};
  std::vector<decant::beam_request> requests;
  for (const ids& prompt : prompts) requests.push_back({prompt, options});
  const std::vector<beam_result> together = beam_search(model, requests);
  REQUIRE(together.size() == prompts.size());
  CHECK(model.sequences() == 0);
  CHECK(model.kv().pages_in_use() == 0);
  decant::candidates row;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const beam_result alone = beam_search(model, prompts[i], options);
    REQUIRE(together[i].hypotheses.size() == 4);
    REQUIRE(alone.hypotheses.size() == 4);
    for (std::size_t h = 0; h < 4; ++h) {
      const hypothesis& found = together[i].hypotheses[h];
      CHECK(found.tokens == alone.hypotheses[h].tokens);
      CHECK(found.log_prob == Approx(alone.hypotheses[h].log_prob).margin(1e-9));
      ids text = prompts[i];
      text.insert(text.end(), found.tokens.begin(), found.tokens.end());
      decant::transformer scorer(weights);
      scorer.score(text);
      double sum = 0;
      for (std::size_t t = 0; t < found.tokens.size(); ++t) {
        row.bind(scorer.row(prompts[i].size() - 1 + t));
        sum += row.log_probability(found.tokens[t]);
      }
      CHECK(found.log_prob == Approx(sum).margin(1e-9));
    }
    // And it is the beam that plain loops find, which encode every text anew.
    const naive_search naive{[&](std::span<const token_id> text) {
                               decant::transformer scorer(weights);
                               const auto last = scorer.evaluate(text);
                               return std::vector<float>(last.begin(), last.end());
                             },
                             prompts[i],
                             {2},
                             6};
    check_same(together[i], naive.beam(4, naive_search::stop::exact));
  }
}

TEST_CASE("results come best first, end once, and say with which end", "[search][beam]") {
  std::size_t ended[2] = {};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    any_model model(random_rows(6, seed));
    const auto found = beam_search(model, ids{5}, {.width = 5, .n_best = 5, .max_new_tokens = 6, .end_tokens = {0, 3}});
    CHECK(std::ranges::is_sorted(found.hypotheses, std::greater{}, &hypothesis::score));
    for (const hypothesis& one : found.hypotheses) {
      const auto is_end = [](token_id token) { return token == 0 || token == 3; };
      CHECK(std::ranges::none_of(one.tokens.begin(), one.tokens.end() - 1, is_end));
      if (one.finish == decant::finish_reason::stop_token) {
        CHECK(one.end_token == one.tokens.back());
        CHECK(is_end(one.end_token));
        ++ended[one.end_token == 3];
      } else {
        CHECK(one.finish == decant::finish_reason::length);
        CHECK(one.tokens.size() == 6);
        CHECK(one.end_token == decant::no_token);
        CHECK_FALSE(is_end(one.tokens.back()));
      }
    }
    for (std::size_t i = 0; i < found.hypotheses.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) CHECK(found.hypotheses[i].tokens != found.hypotheses[j].tokens);
    }
  }
  CHECK((ended[0] > 0 && ended[1] > 0));
}

TEST_CASE("a request is served alone and in a batch alike (transformers#38778)", "[search][beam]") {
  any_model model(random_rows(6, 4));
  const std::vector<ids> prompts{{1}, {2, 3, 4, 5}, {0, 0}, {5, 1}};
  std::vector<decant::beam_request> requests;
  for (const ids& prompt : prompts) {
    // All different, and of different lengths.
    requests.push_back({prompt,
                        {.width = 1 + requests.size(),
                         .max_new_tokens = 3 + 2 * requests.size(),
                         .end_tokens = {0},
                         .length_penalty = length_penalty::power(static_cast<double>(requests.size()) / 2)}});
  }
  const auto together = beam_search(model, std::span<const decant::beam_request>(requests));
  REQUIRE(together.size() == 4);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto alone = beam_search(model, prompts[i], requests[i].options);
    REQUIRE(together[i].hypotheses.size() == alone.hypotheses.size());
    CHECK(together[i].steps == alone.steps);
    CHECK(together[i].end == alone.end);
    CHECK(together[i].best()->tokens == alone.best()->tokens);
    CHECK(together[i].best()->score == alone.best()->score);
  }
}

// ---- few continuations, and none

/// Rows that are the same after any text.
row_function always(std::vector<float> row) {
  return [row](std::span<const token_id>) { return row; };
}

constexpr float gone = decant::gone;

TEST_CASE("a vocabulary smaller than the beam gives fewer live hypotheses, and no inventions (whisper.cpp#474)",
          "[search][beam]") {
  any_model model(always({1, 1}));
  std::vector<std::size_t> live;
  const auto found =
      beam_search(model, ids{0}, {.width = 5, .n_best = 5, .max_new_tokens = 3, .on_step = [&](const auto& step) {
                                    live.push_back(step.live);
                                    return true;
                                  }});
  CHECK(live == std::vector<std::size_t>{2, 4, 0});
  // Equal scores: in the order of parents, then of ids.
  REQUIRE(found.hypotheses.size() == 5);
  CHECK(found.hypotheses[0].tokens == ids{0, 0, 0});
  CHECK(found.hypotheses[1].tokens == ids{0, 0, 1});
  CHECK(found.hypotheses[4].tokens == ids{1, 0, 0});
}

TEST_CASE("when continuations run out, there are as many results as were found", "[search][beam]") {
  // After 1 only 2, after 2 only the end.
  any_model model([](std::span<const token_id> text) {
    std::vector<float> row(4, gone);
    row[text.back() == 1 ? 2U : text.back() == 2 ? 0U : 1U] = 0.5F;
    return row;
  });
  const auto found = beam_search(model, ids{3}, {.width = 4, .n_best = 4, .end_tokens = {0}});
  REQUIRE(found.hypotheses.size() == 1);
  CHECK(found.best()->tokens == ids{1, 2, 0});
  CHECK(found.best()->log_prob == 0);
  CHECK(found.end == decant::search_end::exhausted);
  CHECK(found.status == decant::row_status::ok);
}

TEST_CASE("rows from which nothing can come end their hypothesis, and the status says so", "[search][beam]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool finite : {true, false}) {
    any_model all_bad(always({gone, finite ? gone : nan, gone}));
    const auto found = beam_search(all_bad, ids{0}, {.width = 2});
    CHECK(found.hypotheses.empty());
    CHECK(found.best() == nullptr);
    CHECK(found.steps == 1);
    CHECK(found.end == decant::search_end::exhausted);
    CHECK(found.status == (finite ? decant::row_status::empty : decant::row_status::not_finite));
    // Only what follows 1 is bad; 2 is less probable.
    any_model one_bad([&](std::span<const token_id> text) {
      if (text.back() != 1) return std::vector<float>{gone, 2, 1};
      return std::vector<float>{finite ? gone : nan, gone, finite ? gone : 0};
    });
    const auto rest = beam_search(one_bad, ids{0}, {.width = 2, .n_best = 2, .max_new_tokens = 3});
    REQUIRE(rest.hypotheses.size() == 2);
    CHECK(rest.hypotheses[0].tokens == ids{2, 2, 1});
    CHECK(rest.hypotheses[1].tokens == ids{2, 2, 2});
    CHECK(rest.status == (finite ? decant::row_status::ok : decant::row_status::not_finite));
  }
}

TEST_CASE("a bad row of one request does not touch another", "[search][beam]") {
  any_model model([](std::span<const token_id> text) {
    return text.front() == 0 ? std::vector<float>{gone, gone} : std::vector<float>{0, 1};
  });
  const ids bad{0}, good{1};
  const std::vector<decant::beam_request> requests{{bad, {.max_new_tokens = 2}}, {good, {.max_new_tokens = 2}}};
  const auto found = beam_search(model, std::span<const decant::beam_request>(requests));
  CHECK(found[0].status == decant::row_status::empty);
  CHECK(found[0].hypotheses.empty());
  CHECK(found[1].status == decant::row_status::ok);
  CHECK(found[1].best()->tokens == ids{1, 1});
}

TEST_CASE("when processors ban every alternative there is no token, and the status is empty (OpenNMT-py#745)",
          "[search][beam]") {
  any_model model(random_rows(4, 1, 0));
  const auto none = beam_search(model, ids{0}, {.processors = {decant::suppress_tokens({0, 1, 2, 3})}});
  CHECK(none.hypotheses.empty());
  CHECK(none.status == decant::row_status::empty);
  // Every token at most once: four tokens, then nothing.
  const auto once = beam_search(model, ids{0}, {.max_new_tokens = 9, .processors = {decant::no_repeat_ngram(1)}});
  CHECK(once.hypotheses.empty());
  CHECK(once.steps == 4);
  CHECK(once.status == decant::row_status::empty);
}

TEST_CASE("an end at step one is a result like others", "[search][beam]") {
  any_model model(always({3, 0, 1}));
  const auto found = beam_search(model, ids{2}, {.width = 2, .n_best = 2, .max_new_tokens = 5, .end_tokens = {0}});
  REQUIRE(!found.hypotheses.empty());
  CHECK(found.best()->tokens == ids{0});
  CHECK(found.best()->end_token == 0);
  const auto only = beam_search(
      model, ids{2}, {.width = 1, .max_new_tokens = 5, .end_tokens = {0}, .early_stopping = early_stopping::first_n});
  CHECK(only.best()->tokens == ids{0});
  CHECK(only.steps == 1);
  CHECK(only.end == decant::search_end::enough);
}

TEST_CASE("a stop criterion that ends with a token says with which", "[search][beam]") {
  any_model model(random_rows(3, 4));
  const auto found = beam_search(model, ids{0},
                                 {.width = 2,
                                  .n_best = 2,
                                  .max_new_tokens = 6,
                                  .stop = decant::stop_tokens{{1}},
                                  .early_stopping = early_stopping::first_n});
  REQUIRE_FALSE(found.hypotheses.empty());
  std::size_t stopped = 0;
  for (const hypothesis& h : found.hypotheses) {
    if (h.finish != decant::finish_reason::stop_token) continue;
    ++stopped;
    CHECK(h.tokens.back() == 1);
    CHECK(h.end_token == 1);
  }
  CHECK(stopped > 0);
}

TEST_CASE("an end that is not among the best of its step does not count, unlike all others", "[search][beam]") {
  // Three ends at once, of which the width lets in the best two; the one live continuation is kept though it is last.
  any_model model(always({4, 3, 2, 1}));
  std::vector<decant::candidate_fate> fates;
  const auto found = beam_search(model, ids{3},
                                 {.width = 2,
                                  .n_best = 2,
                                  .max_new_tokens = 2,
                                  .end_tokens = {0, 1, 2},
                                  .early_stopping = early_stopping::first_n,
                                  .on_candidate = [&](const auto& candidate) { fates.push_back(candidate.fate); }});
  using fate = decant::candidate_fate;
  CHECK(fates == std::vector<fate>{fate::finished, fate::finished, fate::ended_low, fate::live});
  REQUIRE(found.hypotheses.size() == 2);
  CHECK(found.hypotheses[0].tokens == ids{0});
  CHECK(found.hypotheses[1].end_token == 1);
}

// ---- lengths

TEST_CASE("no end comes before the minimum length, and none of several", "[search][beam]") {
  any_model model(always({5, 4, 1, 0}));
  const beam_options options{.width = 3, .n_best = 3, .max_new_tokens = 5, .min_new_tokens = 2, .end_tokens = {0, 1}};
  for (const hypothesis& one : beam_search(model, ids{2}, options).hypotheses) {
    CHECK(one.tokens.size() == 3);
    CHECK(one.finish == decant::finish_reason::stop_token);
  }
  // The processor of that name, with which it agrees: scores are not made a distribution again.
  beam_options by_processor = options;
  by_processor.min_new_tokens = 0;
  by_processor.processors = {decant::min_new_tokens(2, {0, 1})};
  CHECK(beam_search(model, ids{2}, options).best()->score ==
        Approx(beam_search(model, ids{2}, by_processor).best()->score));
}

TEST_CASE("the context ends a hypothesis, and a full one lets none begin", "[search][beam]") {
  any_model model(random_rows(4, 3, 0));
  const auto found = beam_search(model, ids{1, 2, 3}, {.max_new_tokens = 9, .context_length = 5});
  CHECK(found.best()->tokens.size() == 2);
  CHECK(found.best()->finish == decant::finish_reason::context_full);
  CHECK(found.end == decant::search_end::length);
  const auto full = beam_search(model, ids{1, 2, 3}, {.context_length = 3});
  CHECK(full.hypotheses.empty());
  CHECK(full.steps == 0);
  CHECK(full.end == decant::search_end::length);
}

// ---- processors

TEST_CASE("processors see log-probabilities, each hypothesis with its own text", "[search][beam]") {
  any_model model(random_rows(5, 6, 0));
  std::vector<ids> seen;
  double worst = 0;
  const auto look = [&](decant::candidates& row, const decant::step_context& context) {
    seen.emplace_back(context.tokens.begin(), context.tokens.end());
    worst = std::max(worst, std::abs(row.log_sum()));
    CHECK(context.prompt_size == 2);
    CHECK(context.draws.position() == context.tokens.size());
  };
  (void)beam_search(model, ids{4, 4}, {.width = 2, .max_new_tokens = 3, .processors = {look}});
  CHECK(worst < 1e-12);
  REQUIRE(seen.size() == 1 + 2 + 2);
  CHECK(seen[0] == ids{4, 4});
  CHECK(seen[1].size() == 3);
  CHECK(seen[1] != seen[2]);
  CHECK(seen[3].size() == 4);
}

TEST_CASE("what processors take away is missing in the score, or made up for on request", "[search][beam]") {
  any_model model(always({1, 1, 1, 1}));
  beam_options options{.width = 1, .max_new_tokens = 2, .processors = {decant::suppress_tokens({0, 1})}};
  CHECK(beam_search(model, ids{0}, options).best()->log_prob == Approx(2 * std::log(0.25)));
  options.renormalise = true;
  CHECK(beam_search(model, ids{0}, options).best()->log_prob == Approx(2 * std::log(0.5)));
  options.renormalise = false;
  options.processors = {decant::suppress_tokens({0, 1}), decant::renormalise()};
  CHECK(beam_search(model, ids{0}, options).best()->log_prob == Approx(2 * std::log(0.5)).epsilon(1e-6));
}

TEST_CASE("a temperature counts in the score (CTranslate2#546)", "[search][beam]") {
  any_model model(always({0, 3}));
  const auto score = [&](decant::dynamic_chain processors) {
    return beam_search(model, ids{0}, {.width = 1, .max_new_tokens = 1, .processors = std::move(processors)})
        .best()
        ->log_prob;
  };
  const double plain = -std::log1p(std::exp(-3.0));
  CHECK(score({}) == Approx(plain));
  CHECK(score({decant::temperature(0.5)}) == Approx(plain / 0.5));
}

TEST_CASE("logits far from zero lose nothing", "[search][beam]") {
  for (const float shift : {1000.0F, -1000.0F, 0x1p100F, -0x1p100F}) {
    any_model model(always({shift, shift, shift, shift}));
    const auto found = beam_search(model, ids{0}, {.width = 2, .max_new_tokens = 3});
    CHECK(found.best()->log_prob == Approx(3 * std::log(0.25)));
  }
}

TEST_CASE("no hypothesis repeats an n-gram that its own text has (fairseq#5206)", "[search][beam]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    any_model model(random_rows(4, seed, 0));
    const auto found = beam_search(
        model, ids{1, 2}, {.width = 4, .n_best = 4, .max_new_tokens = 8, .processors = {decant::no_repeat_ngram(2)}});
    REQUIRE(!found.hypotheses.empty());
    for (const hypothesis& one : found.hypotheses) {
      ids text{1, 2};
      text.insert(text.end(), one.tokens.begin(), one.tokens.end());
      std::vector<std::pair<token_id, token_id>> pairs;
      for (std::size_t i = 1; i < text.size(); ++i) pairs.emplace_back(text[i - 1], text[i]);
      std::ranges::sort(pairs);
      CHECK(std::ranges::adjacent_find(pairs) == pairs.end());
    }
  }
}

TEST_CASE("a criterion ends hypotheses, and the reason is given", "[search][beam]") {
  any_model model(random_rows(4, 2, 0));
  const auto found = beam_search(
      model, ids{0},
      {.width = 3, .n_best = 3, .max_new_tokens = 6, .stop = decant::stop_any(decant::stop_sequence{{1, 2}})});
  std::size_t stopped = 0;
  for (const hypothesis& one : found.hypotheses) {
    const auto place = std::ranges::search(one.tokens, ids{1, 2});
    const bool at_end = !place.empty() && place.end() == one.tokens.end();
    CHECK(at_end == (one.finish == decant::finish_reason::stop_sequence));
    CHECK((place.empty() || at_end));
    stopped += at_end;
  }
  CHECK(stopped > 0);
}

// ---- errors

TEST_CASE("options that break a rule are refused by name", "[search][beam]") {
  any_model model(always({0, 1}));
  const auto refused = [&](beam_options options, const std::string& what) {
    CHECK_THROWS_WITH(beam_search(model, ids{0}, std::move(options)), Catch::Contains(what));
  };
  refused({.width = 0}, "width");
  refused({.width = 2, .n_best = 3}, "n_best");
  refused({.patience = 0}, "patience");
  CHECK(model.start() == 0);  // nothing was begun
}

TEST_CASE("misuse of a search is caught", "[search][beam]") {
  any_model model(always({0, 1}));
  CHECK_THROWS_AS(beam_search(model, ids{}), assertion_error);
  CHECK_THROWS_AS(beam_search(model, ids{0}, {.end_tokens = {2}}), assertion_error);
}

}  // namespace beam_search_test
