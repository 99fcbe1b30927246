// SPDX-License-Identifier: MIT
#include <decant/search/beam.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <decant/processors/repetition_penalty.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/mirostat.hpp>
#include <decant/testing/counting_allocator.hpp>
#include <decant/testing/enumerate.hpp>

#include "search/models.hpp"
#include "search/naive_beam.hpp"

namespace beam_test {

using namespace search_test;
using decant::beam;
using decant::beam_candidate;
using decant::beam_options;
using decant::beam_result;
using decant::candidate_fate;

/// Drives a search as an engine would: it keeps the text of every lane by the events alone.
beam_result run(const row_function& rows, const ids& prompt, beam_options options) {
  beam search(prompt, std::move(options));
  std::map<std::size_t, ids> texts;
  while (!search.ended()) {
    for (const std::size_t lane : search.drops()) texts.erase(lane);
    for (const auto& [from, to] : search.forks()) texts.emplace(to, texts.at(from));
    for (const std::size_t lane : search.lanes()) {
      const auto input = search.input(lane);
      texts[lane].insert(texts[lane].end(), input.begin(), input.end());
    }
    REQUIRE(texts.size() == search.lanes().size());
    std::map<std::size_t, std::vector<float>> held;
    search.advance([&](std::size_t lane) { return std::span<const float>(held[lane] = rows(texts.at(lane))); });
  }
  CHECK(search.lanes().empty());
  return search.result();
}

TEST_CASE("an engine that follows the events searches as the definition says", "[search][beam]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const naive_search naive{random_rows(6, seed), {1, 4}, {0}, 7};
    const auto expected = naive.beam(4, naive_search::stop::heuristic);
    const auto found = run(naive.rows, naive.prompt, {.width = 4, .n_best = 4, .max_new_tokens = 7, .end_tokens = {0}});
    REQUIRE(found.hypotheses.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!is_tied(expected, i)) CHECK(found.hypotheses[i].tokens == expected[i].tokens);
    }
  }
}

// ---- the trace

TEST_CASE("the trace tells of the best continuations of every step, and of their fates", "[search][beam]") {
  std::vector<beam_candidate> trace;
  const row_function rows = random_rows(5, 8, 0);
  beam_options options{.width = 2, .n_best = 2, .max_new_tokens = 4, .end_tokens = {0}};
  options.on_candidate = [&](const beam_candidate& candidate) { trace.push_back(candidate); };
  const auto found = run(rows, {1}, options);
  // Replays the search: what every candidate continues is what was called so.
  std::map<decant::hypothesis_link, std::pair<ids, double>> known{{decant::root_link, {{}, 0.0}}};
  std::vector<std::vector<std::size_t>> fates(found.steps, std::vector<std::size_t>(6));
  const naive_search naive{rows, {1}, {0}, 4};
  for (const beam_candidate& one : trace) {
    REQUIRE(known.contains(one.parent));
    const auto& [text, log_prob] = known.at(one.parent);
    CHECK(text.size() == one.step);
    CHECK(one.token_log_prob == Approx(naive.log_law(text)[static_cast<std::size_t>(one.token)]));
    CHECK(one.log_prob == Approx(log_prob + one.token_log_prob));
    ++fates[one.step][static_cast<std::size_t>(one.fate)];
    const bool lives = one.fate == candidate_fate::live || one.fate == candidate_fate::finished;
    CHECK(lives == (one.node != decant::no_link));
    if (!lives) continue;
    ids longer = text;
    longer.push_back(one.token);
    known[one.node] = {longer, one.log_prob};
  }
  for (std::size_t step = 0; step < found.steps; ++step) {
    const auto& count = fates[step];
    CHECK(count[0] == (step + 1 < 4 ? 2U : 0U));
    CHECK(count[0] + count[1] + count[2] + count[3] + count[4] + count[5] == 4);
  }
  for (const decant::hypothesis& one : found.hypotheses) {
    CHECK(std::ranges::any_of(known, [&](const auto& entry) { return entry.second.first == one.tokens; }));
  }
}

TEST_CASE("candidates of one step come in the order of their ranks", "[search][beam]") {
  std::vector<beam_candidate> trace;
  beam_options options{.width = 3, .max_new_tokens = 3};
  options.on_candidate = [&](const beam_candidate& candidate) { trace.push_back(candidate); };
  (void)run(random_rows(5, 2, 0), {0}, options);
  for (std::size_t i = 1; i < trace.size(); ++i) {
    if (trace[i].step != trace[i - 1].step) continue;
    CHECK(trace[i].rank == trace[i - 1].rank + 1);
    CHECK(trace[i].log_prob <= trace[i - 1].log_prob);
  }
}

// ---- streaming

TEST_CASE("what is common to all that may still win is streamed, and is what wins", "[search][beam]") {
  std::size_t early = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ids streamed;
    std::vector<std::size_t> steps;
    beam_options options{.width = 2, .max_new_tokens = 12, .end_tokens = {0}};
    options.length_penalty = decant::length_penalty::mean();
    options.on_step = [&](const decant::beam_step& step) {
      streamed.insert(streamed.end(), step.tokens.begin(), step.tokens.end());
      steps.push_back(step.step);
      early += !step.tokens.empty() && step.live > 0;
      return true;
    };
    const auto found = run(random_rows(5, seed, 0.1, 2), {1}, options);
    REQUIRE(found.best() != nullptr);
    CHECK(streamed == found.best()->tokens);
    REQUIRE(steps.size() == found.steps);
    for (std::size_t i = 0; i < steps.size(); ++i) CHECK(steps[i] == i);
  }
  CHECK(early > 20);
}

TEST_CASE("a search that is cancelled gives what it has, as it stands", "[search][beam]") {
  beam_options options{.width = 3, .n_best = 3, .max_new_tokens = 9};
  options.on_step = [](const decant::beam_step& step) { return step.step < 2; };
  const auto found = run(random_rows(5, 3, 0), {1}, options);
  CHECK(found.end == decant::search_end::cancelled);
  CHECK(found.steps == 3);
  REQUIRE(found.hypotheses.size() == 3);
  for (const decant::hypothesis& one : found.hypotheses) {
    CHECK(one.tokens.size() == 3);
    CHECK(one.finish == decant::finish_reason::cancelled);
  }
  beam at_once(ids{1}, {});
  at_once.cancel();
  CHECK(at_once.ended());
  CHECK(at_once.result().hypotheses.empty());
  CHECK(at_once.result().end == decant::search_end::cancelled);
}

// ---- coverage

TEST_CASE("coverage is part of the score, by the attention of all steps", "[search][beam]") {
  // Two source positions; the step after an even token attends to the first, after an odd one to the second.
  const row_function rows = random_rows(5, 9, 0);
  std::vector<float> weights;
  beam_options options{.width = 60, .n_best = 60, .max_new_tokens = 3, .end_tokens = {0}};
  options.coverage = {.beta = 0.7, .alignment = [&](const decant::alignment_step& step) {
                        const bool even = step.context.tokens.back() % 2 == 0;
                        weights = even ? std::vector<float>{0.75F, 0.25F} : std::vector<float>{0.25F, 0.75F};
                        return std::span<const float>(weights);
                      }};
  const auto found = run(rows, {1}, options);
  REQUIRE(found.hypotheses.size() == 60);
  std::set<double> parts;
  for (const decant::hypothesis& one : found.hypotheses) {
    double sums[2] = {};
    token_id before = 1;
    for (const token_id token : one.tokens) {
      const std::size_t near = before % 2 == 0 ? 0 : 1;
      sums[near] += 0.75;
      sums[1 - near] += 0.25;
      before = token;
    }
    const double part = 0.7 * (std::log(std::min(sums[0], 1.0)) + std::log(std::min(sums[1], 1.0)));
    CHECK(one.coverage == Approx(part).margin(1e-12));
    CHECK(one.score == Approx(one.log_prob + part));
    parts.insert(one.coverage);
  }
  CHECK(parts.size() > 3);
}

// ---- sampling

TEST_CASE("a sampling beam of width and draw one is ancestral sampling", "[search][beam]") {
  const naive_search naive{random_rows(3, 5), {1}, {0}, 3};
  const auto law = decant::testing::enumerate_law([&](decant::decision_hook& hook) {
    return run(naive.rows, naive.prompt,
               {.width = 1,
                .max_new_tokens = 3,
                .end_tokens = {0},
                .early_stopping = decant::early_stopping::first_n,
                .sampling = decant::beam_sampling{.draws = 1},
                .hook = &hook})
        .best()
        ->tokens;
  });
  const auto expected = naive.all();
  CHECK(law.size() == expected.size());
  for (const naive_hypothesis& one : expected) {
    REQUIRE(law.contains(one.tokens));
    CHECK(law.at(one.tokens) == Approx(std::exp(one.log_prob)));
  }
}

TEST_CASE("the first draws of a sampling beam are draws without replacement", "[search][beam]") {
  // Of one step with two draws and width two the set of live tokens is what two draws give.
  const row_function rows = random_rows(4, 2, 0);
  const naive_search naive{rows, {1}, {}, 1};
  const auto law = decant::testing::enumerate_law([&](decant::decision_hook& hook) {
    std::set<token_id> drawn;
    for (const decant::hypothesis& one : run(rows, {1},
                                             {.width = 2,
                                              .n_best = 2,
                                              .max_new_tokens = 1,
                                              .sampling = decant::beam_sampling{.draws = 1},
                                              .hook = &hook})
                                             .hypotheses) {
      drawn.insert(one.tokens[0]);
    }
    return drawn;
  });
  const auto log_law = naive.log_law({});
  const auto p = [&](token_id id) { return std::exp(log_law[static_cast<std::size_t>(id)]); };
  CHECK(law.size() == 6);
  for (const auto& [pair, probability] : law) {
    const double a = p(*pair.begin()), b = p(*pair.rbegin());
    CHECK(probability == Approx(a * b / (1 - a) + b * a / (1 - b)));
  }
}

TEST_CASE("a sampling beam is a function of its seed, and of nothing else", "[search][beam]") {
  const row_function rows = random_rows(20, 6, 0);
  const auto sample = [&](std::uint64_t seed, std::uint64_t sequence) {
    return run(rows, {1},
               {.width = 4,
                .max_new_tokens = 8,
                .sampling = decant::beam_sampling{},
                .seed = seed,
                .sequence = sequence})
        .best()
        ->tokens;
  };
  CHECK(sample(1, 0) == sample(1, 0));
  std::set<ids> different;
  for (std::uint64_t i = 0; i < 8; ++i) different.insert(sample(i, 0));
  for (std::uint64_t i = 1; i < 8; ++i) different.insert(sample(0, i));
  CHECK(different.size() > 10);
}

TEST_CASE("what a sampler narrows away is never drawn", "[search][beam]") {
  struct two_best {
    decant::token_id operator()(decant::candidates& row, const decant::step_context& context) {
      narrow(row, context);
      return row.draw(context.draws);
    }
    void narrow(decant::candidates& row, const decant::step_context&) { row.keep_largest(2); }
  };
  const naive_search naive{random_rows(9, 4, 0), {1}, {}, 5};
  const auto found = run(naive.rows, naive.prompt,
                         {.width = 3, .n_best = 3, .max_new_tokens = 5, .sampling = decant::beam_sampling{two_best{}}});
  REQUIRE(found.hypotheses.size() == 3);
  for (const decant::hypothesis& one : found.hypotheses) {
    ids so_far;
    double sum = 0;
    for (const token_id token : one.tokens) {
      const auto law = naive.log_law(so_far);
      const double here = law[static_cast<std::size_t>(token)];
      CHECK(std::ranges::count_if(law, [&](double other) { return other > here; }) < 2);
      so_far.push_back(token);
      sum += here;
    }
    CHECK(one.log_prob == Approx(sum));  // of the row before it was narrowed
  }
}

// ---- costs

/// Rows for a search without a model: one for every last token. They do not allocate.
struct fixed_rows {
  std::vector<std::vector<float>> rows;

  explicit fixed_rows(std::size_t vocabulary) {
    for (std::uint64_t i = 0; i < 8; ++i) {
      rows.emplace_back(vocabulary);
      const decant::draw_stream draws(i);
      for (std::size_t id = 0; id < vocabulary; ++id) {
        rows.back()[id] = static_cast<float>(draws.gumbel(decant::purpose::user, static_cast<token_id>(id)));
      }
      rows.back()[0] -= 20;  // ends are rare
    }
  }
  [[nodiscard]] std::span<const float> of(beam& search, std::size_t lane) const {
    return rows[static_cast<std::size_t>(search.input(lane).back()) % 8];
  }
};

std::size_t allocations_of_late_steps(const fixed_rows& rows, beam_options options) {
  options.max_new_tokens = 200;
  beam search(ids{1}, std::move(options));
  std::size_t before = 0;
  for (std::size_t step = 0; step < 190; ++step) {
    // By then what grows with the text, as a penalty's list of it, has doubled for the last time.
    if (step == 135) before = decant::testing::allocations();
    REQUIRE_FALSE(search.ended());
    search.advance([&](std::size_t lane) { return rows.of(search, lane); });
  }
  return decant::testing::allocations() - before;
}

TEST_CASE("in steady state a step allocates nothing", "[search][beam]") {
  const fixed_rows rows(60);
  CHECK(allocations_of_late_steps(rows, {.width = 4, .end_tokens = {0}}) == 0);
  CHECK(allocations_of_late_steps(
            rows, {.width = 6, .processors = {decant::repetition_penalty(1.2), decant::top_k(20)}}) == 0);
  CHECK(allocations_of_late_steps(rows, {.width = 4, .diversity = {.groups = 2, .strength = 0.5}}) == 0);
  CHECK(allocations_of_late_steps(rows, {.width = 4, .sampling = decant::beam_sampling{}}) == 0);
}

TEST_CASE("a search keeps a link for every hypothesis that lived, and no more", "[search][beam]") {
  const fixed_rows rows(60);
  beam search(ids{1}, {.width = 4, .max_new_tokens = 200});
  for (std::size_t step = 1; step < 100; ++step) {
    search.advance([&](std::size_t lane) { return rows.of(search, lane); });
    CHECK(search.links().size() == 1 + 4 * step);
  }
}

// ---- misuse

/// A processor with state, which a search cannot keep for every hypothesis.
struct counting_processor {
  void operator()(decant::candidates&, const decant::step_context&) const {}
  void accept(token_id, const decant::step_record&) const {}
  void rollback(std::size_t) const {}
  void reset() const {}
};

TEST_CASE("misuse of the engine is caught", "[search][beam]") {
  const std::vector<float> row{0, 1};
  const auto give = [&](std::size_t) { return std::span<const float>(row); };
  beam done(ids{1}, {.max_new_tokens = 1});
  done.advance(give);
  CHECK(done.ended());
  CHECK_THROWS_AS(done.advance(give), assertion_error);
  CHECK_THROWS_AS(beam(ids{}, {}), assertion_error);
  const auto stateful = decant::mirostat(5, 0.1);
  CHECK_THROWS_AS(beam(ids{1}, {.sampling = decant::beam_sampling{stateful}}), assertion_error);
  const auto lawless = [](decant::candidates& any, const decant::step_context&) { return any.argmax(); };
  CHECK_THROWS_AS(beam(ids{1}, {.sampling = decant::beam_sampling{lawless}}), assertion_error);
  CHECK_THROWS_AS(beam(ids{1}, {.processors = {counting_processor{}}}), assertion_error);
}

}  // namespace beam_test
