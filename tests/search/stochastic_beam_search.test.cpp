// SPDX-License-Identifier: MIT
#include <decant/search/stochastic_beam_search.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <vector>

#include <decant/processors/allowed_tokens.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/reference/transformer.hpp>
#include <decant/reference/transformer_batch.hpp>
#include <decant/testing/chi_square.hpp>
#include <decant/testing/markov_model.hpp>

#include "reference/fixtures.hpp"
#include "search/leaves.hpp"
#include "search/padded.hpp"

namespace stochastic_beam_search_test {

using namespace decant;
using namespace search_tests;
using decant::testing::markov_model;
using decant::testing::random_markov_model;

/// Outputs of up to two tokens of three, of which 2 ends: seven.
const markov_model small = random_markov_model(3, 1, 5);
const ids start{0};
const auto small_leaves = leaves(small, start, {2}, 2);

std::vector<ids> outputs(const stochastic_beam_result& result) {
  std::vector<ids> all;
  for (const auto& s : result.sequences) all.push_back(s.tokens);
  return all;
}

/// How often each order was drawn, over so many seeds, against the law of drawing without replacement.
double p_of_order(std::size_t count, std::size_t seeds) {
  const auto possible = orders(small_leaves, count);
  std::map<std::vector<ids>, std::size_t> place;
  std::vector<double> expected;
  for (const auto& order : possible) {
    place.emplace(order, place.size());
    expected.push_back(plackett_luce(small_leaves, order));
  }
  std::vector<std::size_t> counts(possible.size());
  auto model = model_of(small);
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    const auto drawn =
        stochastic_beam_search(model, start, {.count = count, .max_new_tokens = 2, .end_tokens = {2}, .seed = seed});
    ++counts[place.at(outputs(drawn))];
  }
  return decant::testing::chi_square(counts, expected).p_value;
}

TEST_CASE("the order of the sequences has the law of drawing without replacement", "[search]") {
  REQUIRE(small_leaves.size() == 7);
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{7}})
    CHECK(p_of_order(count, 8000) > 1e-4);
}

TEST_CASE("the order of three sequences, over many seeds", "[search][long]") {
  CHECK(p_of_order(3, 400'000) > 1e-4);
  CHECK(p_of_order(1, 100'000) > 1e-4);  // ancestral sampling
}

TEST_CASE("asking for more adds sequences after the same ones", "[search]") {
  const markov_model table = random_markov_model(6, 2, 11);
  auto model = model_of(table);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    stochastic_beam_options options{.count = 12, .max_new_tokens = 5, .end_tokens = {3}, .seed = seed};
    const auto many = stochastic_beam_search(model, ids{1, 2}, options);
    REQUIRE(many.sequences.size() == 12);
    for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{5}}) {
      options.count = count;
      const auto few = stochastic_beam_search(model, ids{1, 2}, options);
      REQUIRE(few.sequences.size() == count);
      for (std::size_t i = 0; i < count; ++i) {
        CHECK(few.sequences[i].tokens == many.sequences[i].tokens);
        CHECK(few.sequences[i].perturbed == many.sequences[i].perturbed);
      }
      CHECK(few.threshold == many.sequences[count].perturbed);
    }
  }
}

TEST_CASE("sequences are distinct, complete, in order, and as probable as the model says", "[search]") {
  const markov_model table = random_markov_model(5, 2, 12, 2, 0.2);
  auto model = model_of(table);
  const ids prompt{4, 0};
  const auto all = leaves(table, prompt, {1, 3}, 6);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto drawn =
        stochastic_beam_search(model, prompt, {.count = 9, .max_new_tokens = 6, .end_tokens = {1, 3}, .seed = seed});
    std::set<ids> seen;
    double last = 1e9;
    for (const auto& s : drawn.sequences) {
      CHECK(seen.insert(s.tokens).second);
      REQUIRE(all.contains(s.tokens));
      CHECK(s.log_prob == Approx(all.at(s.tokens)).margin(1e-9));
      CHECK(s.perturbed <= last);
      last = s.perturbed;
      const bool ended = s.tokens.back() == 1 || s.tokens.back() == 3;
      CHECK(s.finish == (ended ? finish_reason::stop_token : finish_reason::length));
      CHECK(s.end_token == (ended ? s.tokens.back() : no_token));
    }
    REQUIRE(drawn.threshold);
    CHECK(*drawn.threshold <= last);
  }
}

TEST_CASE("asked for all sequences, it gives all, with their probabilities as weights", "[search]") {
  auto model = model_of(small);
  for (const std::size_t count : {std::size_t{7}, std::size_t{8}, std::size_t{100}}) {
    const auto drawn =
        stochastic_beam_search(model, start, {.count = count, .max_new_tokens = 2, .end_tokens = {2}, .seed = 3});
    CHECK(drawn.sequences.size() == 7);
    CHECK(!drawn.threshold);
    double mass = 0;
    for (const auto& s : drawn.sequences) {
      CHECK(s.weight == Approx(std::exp(small_leaves.at(s.tokens))));
      mass += s.weight;
    }
    CHECK(mass == Approx(1));
    CHECK(drawn.estimate([](const auto& s) { return s.tokens.size() == 1 ? 1.0 : 0.0; }) ==
          Approx(std::exp(small_leaves.at(ids{2}))));
  }
}

TEST_CASE("asked for more sequences than can be counted, it gives all", "[search]") {
  auto model = model_of(small);
  const stochastic_beam_options all{
      .count = std::numeric_limits<std::size_t>::max(), .max_new_tokens = 2, .end_tokens = {2}};
  CHECK(stochastic_beam_search(model, start, all).sequences.size() == small_leaves.size());
}

TEST_CASE("the weighted sum is unbiased, and the normalised one close", "[search]") {
  const auto value = [](const drawn_sequence& s) {
    double sum = 0;
    for (const token_id token : s.tokens) sum = 3 * sum + static_cast<double>(token) + 1;
    return sum;
  };
  double exact = 0;
  for (const auto& [tokens, log_p] : small_leaves) exact += std::exp(log_p) * value({.tokens = tokens});
  auto model = model_of(small);
  for (const std::size_t count : {std::size_t{1}, std::size_t{3}}) {
    constexpr std::size_t runs = 6000;
    double sum = 0, squares = 0, normalised = 0;
    for (std::size_t seed = 0; seed < runs; ++seed) {
      const auto drawn = stochastic_beam_search(
          model, start, {.count = count, .max_new_tokens = 2, .end_tokens = {2}, .seed = seed, .sequence = 1});
      const double x = drawn.estimate(value);
      sum += x;
      squares += x * x;
      normalised += drawn.normalised_estimate(value);
    }
    const double mean = sum / runs, error = std::sqrt((squares / runs - mean * mean) / runs);
    CHECK(std::abs(mean - exact) < 4 * error);
    CHECK(error < 0.1 * exact);
    // Of one sequence it is just that sequence's value.
    CHECK(std::abs(normalised / runs - exact) < 0.1 * exact);
  }
}

TEST_CASE("processors make the distribution: temperature, bans", "[search]") {
  auto model = model_of(small);
  const auto drawn = stochastic_beam_search(
      model, start,
      {.count = 50, .max_new_tokens = 2, .end_tokens = {2}, .processors = {allowed_tokens({0, 2}), temperature(0.5)}});
  CHECK(drawn.sequences.size() == 3);  // 2; 0 0; 0 2
  double mass = 0;
  for (const auto& s : drawn.sequences) {
    CHECK(std::find(s.tokens.begin(), s.tokens.end(), 1) == s.tokens.end());
    mass += std::exp(s.log_prob);
  }
  CHECK(mass == Approx(1));
  const auto p = log_probs(small, start);
  const double odds = 2 * (p.at(2) - p.at(0));
  for (const auto& s : drawn.sequences) {
    if (s.tokens == ids{2}) CHECK(s.log_prob == Approx(-std::log1p(std::exp(-odds))));
  }
}

TEST_CASE("the greatest child has exactly its parent's value, the others less", "[search]") {
  draw_stream draws(77);
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const double parent = 40 * draws.uniform(purpose::user, i, 0) - 30;
    const double greatest = 40 * draws.uniform(purpose::user, i, 1) - 30;
    const double below = -math::exp(60 * draws.uniform(purpose::user, i, 2) - 50);
    CHECK(detail::condition_on_maximum(parent, greatest, 0) == parent);
    const double child = detail::condition_on_maximum(parent, greatest + below, below);
    CHECK(child <= parent);
    CHECK(math::is_finite(child));
    // e^-child = e^-parent - e^-greatest + e^-perturbed, as the paper defines it, where that is not lost in rounding.
    if (below < -1e-3 && below > -20) {
      const long double exact =
          -std::log(std::exp(-static_cast<long double>(parent)) - std::exp(-static_cast<long double>(greatest)) +
                    std::exp(-static_cast<long double>(greatest + below)));
      CHECK(child == Approx(static_cast<double>(exact)).epsilon(1e-9).margin(1e-9));
    }
  }
  CHECK(detail::condition_on_maximum(-3, -2, -1e-320) <= -3);
  CHECK(detail::condition_on_maximum(-3, -2000, -1998) == Approx(-2000));
}

TEST_CASE("weights of rare and of sure sequences are finite", "[search]") {
  CHECK(detail::importance_weight(-900, -5) == Approx(std::exp(-5.0)));
  CHECK(detail::importance_weight(-45, -5) == Approx(std::exp(-5.0)));
  CHECK(detail::importance_weight(-1, -900) == Approx(std::exp(-1.0)));
  CHECK(detail::importance_weight(-2, -1) == Approx(std::exp(-2.0) / -std::expm1(-std::exp(-1.0))));
}

TEST_CASE("an end at the first step; one possible sequence; a vocabulary of one", "[search]") {
  stateless ending([](std::span<const token_id>) { return numbers{gone, 0, gone}; });
  auto drawn = stochastic_beam_search(ending, ids{0}, {.count = 3, .end_tokens = {1}});
  REQUIRE(drawn.sequences.size() == 1);
  CHECK(drawn.sequences[0].tokens == ids{1});
  CHECK(drawn.sequences[0].log_prob == 0);
  CHECK(drawn.sequences[0].weight == 1);
  CHECK(drawn.steps == 1);
  stateless one([](std::span<const token_id>) { return numbers{3}; });
  drawn = stochastic_beam_search(one, ids{0}, {.count = 3, .max_new_tokens = 5});
  REQUIRE(drawn.sequences.size() == 1);
  CHECK(drawn.sequences[0].tokens == ids(5, 0));
  CHECK(drawn.sequences[0].finish == finish_reason::length);
}

TEST_CASE("in a stochastic beam, a row that cannot be decoded ends its sequence, and counts as one", "[search]") {
  for (const float bad : {gone, std::numeric_limits<float>::quiet_NaN()}) {
    // After 1 nothing can come.
    stateless model(
        [bad](std::span<const token_id> tokens) { return tokens.back() == 1 ? numbers(2, bad) : numbers{0, 0}; });
    const auto drawn = stochastic_beam_search(model, ids{0}, {.count = 9, .max_new_tokens = 3});
    std::map<ids, finish_reason> found;
    double mass = 0;
    for (const auto& s : drawn.sequences) {
      found[s.tokens] = s.finish;
      mass += s.weight;
      if (s.finish == finish_reason::bad_row) {
        CHECK(s.status == (is_gone(bad) ? row_status::empty : row_status::not_finite));
      }
    }
    CHECK(found == std::map<ids, finish_reason>{{ids{1}, finish_reason::bad_row},
                                                {ids{0, 1}, finish_reason::bad_row},
                                                {ids{0, 0, 0}, finish_reason::length},
                                                {ids{0, 0, 1}, finish_reason::length}});
    CHECK(mass == Approx(1));
    const auto at_once = stochastic_beam_search(model, ids{1}, {.count = 2});
    REQUIRE(at_once.sequences.size() == 1);
    CHECK(at_once.sequences[0].tokens.empty());
    CHECK(at_once.sequences[0].finish == finish_reason::bad_row);
  }
}

TEST_CASE("on the transformer: scores are those of re-scoring, and nothing is left behind", "[search]") {
  const checkpoint weights = reference_tests::random_checkpoint(reference_tests::tiny_config(true), 90);
  transformer_batch model(weights);
  const ids prompt{3, 1, 4, 1, 5};
  const auto drawn = stochastic_beam_search(model, prompt, {.count = 6, .max_new_tokens = 9, .end_tokens = {2}});
  REQUIRE(drawn.sequences.size() == 6);
  CHECK(model.sequences() == 0);
  CHECK(model.kv().pages_in_use() == 0);
  candidates row;
  for (const auto& s : drawn.sequences) {
    transformer alone(weights);
    alone.score(joined(prompt, s.tokens));
    double sum = 0;
    for (std::size_t i = 0; i < s.tokens.size(); ++i) {
      row.bind(alone.row(prompt.size() - 1 + i));
      sum += row.log_probability(s.tokens[i]);
    }
    CHECK(s.log_prob == Approx(sum).margin(1e-9));
  }
  // The context of 40 ends what would not end by itself.
  const auto full = stochastic_beam_search(model, ids(38, 7), {.count = 2});
  for (const auto& s : full.sequences) {
    CHECK(s.tokens.size() == 2);
    CHECK(s.finish == finish_reason::context_full);
  }
  const auto none = stochastic_beam_search(model, ids(40, 7), {.count = 2});
  REQUIRE(none.sequences.size() == 1);
  CHECK(none.sequences[0].tokens.empty());
  CHECK(none.sequences[0].weight == 1);
}

TEST_CASE("cancelling leaves prefixes in order", "[search]") {
  const markov_model table = random_markov_model(4, 1, 15);
  auto model = model_of(table);
  const auto two_steps = [](std::size_t steps) { return steps < 2; };
  const auto drawn = stochastic_beam_search(model, ids{0}, {.count = 5, .on_step = two_steps});
  REQUIRE(drawn.sequences.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(drawn.sequences[i].tokens.size() == 2);
    CHECK(drawn.sequences[i].finish == finish_reason::cancelled);
    if (i > 0) CHECK(drawn.sequences[i].perturbed <= drawn.sequences[i - 1].perturbed);
  }
  CHECK(drawn.steps == 2);
}

TEST_CASE("of a stochastic beam, bad parameters are named, misuse is caught", "[search]") {
  auto model = model_of(small);
  CHECK_THROWS_WITH(stochastic_beam_search(model, start, {.count = 0}),
                    "stochastic_beam_search: count = 0 must be >= 1");
  CHECK_THROWS_WITH(stochastic_beam_search(model, start, {.max_new_tokens = 0}),
                    "stochastic_beam_search: max_new_tokens = 0 must be >= 1");
  CHECK_FALSE(stochastic_beam_options{}.validate());
  CHECK_THROWS_AS(stochastic_beam_search(model, ids{}), assertion_error);
}

TEST_CASE("a stochastic beam never draws what pads a row", "[search]") {
  auto plain = model_of(small);
  padded model(model_of(small));
  const stochastic_beam_options options{.count = 7, .max_new_tokens = 2, .end_tokens = {2}, .seed = 4};
  CHECK(outputs(stochastic_beam_search(model, start, options)) ==
        outputs(stochastic_beam_search(plain, start, options)));
}

}  // namespace stochastic_beam_search_test
