// SPDX-License-Identifier: MIT
#include <decant/search/contrastive_search.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/generate/generate.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/processors/no_repeat_ngram.hpp>
#include <decant/reference/transformer.hpp>
#include <decant/reference/transformer_batch.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/testing/hidden_state_model.hpp>
#include <decant/testing/markov_model.hpp>

#include "reference/fixtures.hpp"
#include "search/padded.hpp"

namespace contrastive_search_test {

using namespace decant;
using ids = std::vector<token_id>;
using numbers = std::vector<float>;
using decant::testing::hidden_state_model;
using decant::testing::markov_model;
using decant::testing::random_markov_model;

/// A hidden state that no other text has: cosines never tie.
numbers state_after(std::span<const token_id> tokens) {
  draw_stream text(9);
  for (const token_id token : tokens) text = text.child(static_cast<std::uint64_t>(token));
  numbers state;
  for (std::uint32_t d = 0; d < 6; ++d) state.push_back(static_cast<float>(text.uniform(purpose::user, d) - 0.4));
  return state;
}

numbers row_after(const markov_model& rows, std::span<const token_id> tokens) {
  const auto row = rows.row_after(tokens);
  return {row.begin(), row.end()};
}

/// Rows from a table, hidden states times a scale.
auto toy(const markov_model& rows, float scale = 1) {
  return hidden_state_model(
      rows.vocabulary_size(), [&rows](std::span<const token_id> tokens) { return row_after(rows, tokens); },
      [scale](std::span<const token_id> tokens) {
        numbers state = state_after(tokens);
        for (float& x : state) x *= scale;
        return state;
      });
}

markov_model table(std::uint64_t seed) { return random_markov_model(7, 2, seed, 2); }

/// The definition: every candidate is looked at anew, in plain loops, from the whole text.
ids by_definition(const markov_model& rows, ids tokens, std::size_t k, double alpha, std::size_t length) {
  const std::size_t prompt = tokens.size();
  while (tokens.size() < prompt + length) {
    const auto row = rows.row_after(tokens);
    double mass = 0;
    ids order;
    for (std::size_t v = 0; v < row.size(); ++v) {
      mass += std::exp(static_cast<double>(row[v]));
      order.push_back(static_cast<token_id>(v));
    }
    const auto at = [&](token_id v) { return static_cast<double>(row[static_cast<std::size_t>(v)]); };
    std::stable_sort(order.begin(), order.end(), [&](token_id a, token_id b) { return at(a) > at(b); });
    order.resize(std::min(k, order.size()));
    token_id best = no_token;
    double best_score = 0;
    for (const token_id v : order) {
      ids longer = tokens;
      longer.push_back(v);
      const numbers mine = state_after(longer);
      double similarity = -1;
      for (std::size_t j = 1; j <= tokens.size(); ++j) {
        const numbers other = state_after(std::span<const token_id>(tokens).first(j));
        double ab = 0, aa = 0, bb = 0;
        for (std::size_t d = 0; d < mine.size(); ++d) {
          const double a = static_cast<double>(mine[d]), b = static_cast<double>(other[d]);
          ab += a * b, aa += a * a, bb += b * b;
        }
        similarity = std::max(similarity, ab / std::sqrt(aa * bb));
      }
      const double score = (1 - alpha) * std::exp(at(v)) / mass - alpha * similarity;
      if (best == no_token || score > best_score) best = v, best_score = score;
    }
    tokens.push_back(best);
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt), tokens.end()};
}

TEST_CASE("contrastive search is what its definition says", "[search]") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const markov_model t = table(seed);
    const ids prompt{1, static_cast<token_id>(seed % 7), 4};
    for (const std::size_t k : {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{7}}) {
      for (const double alpha : {0.0, 0.25, 0.6, 1.0}) {
        auto model = toy(t);
        const auto found = contrastive_search(model, prompt, {.k = k, .alpha = alpha, .max_new_tokens = 15});
        CHECK(found.tokens == by_definition(t, prompt, k, alpha, 15));
        CHECK(found.finish == finish_reason::length);
        CHECK(model.sequences() == 0);
      }
    }
  }
}

TEST_CASE("with alpha 0 or one candidate it is greedy decoding, one token a pass", "[search]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const markov_model t = table(seed);
    stateless plain([&](std::span<const token_id> tokens) { return row_after(t, tokens); });
    const ids prompt{2, 5};
    const ids expected = generate(plain, prompt, decode_with(greedy{}), {.max_new_tokens = 20, .seed = 1}).tokens;
    for (const auto& [k, alpha] : {std::pair<std::size_t, double>{5, 0.0}, {1, 0.6}, {1, 1.0}}) {
      auto model = toy(t);
      const auto found = contrastive_search(model, prompt, {.k = k, .alpha = alpha, .max_new_tokens = 20});
      CHECK(found.tokens == expected);
      CHECK(found.model_calls == 20);
      CHECK(model.evaluated() == 2 + 19);
    }
  }
}

TEST_CASE("one pass a token: the lookahead's rows serve the next step", "[search]") {
  const markov_model t = table(3);
  auto model = toy(t);
  const auto found = contrastive_search(model, ids{0, 1, 2}, {.k = 4, .max_new_tokens = 10});
  CHECK(found.tokens.size() == 10);
  CHECK(found.model_calls == 11);
  CHECK(model.passes() == 11);
  CHECK(model.evaluated() == 3 + 10 * 4);
}

TEST_CASE("alpha 1 takes the candidate least like the text", "[search]") {
  const markov_model t = table(4);
  auto model = toy(t);
  std::size_t steps = 0;
  const auto check = [&](const contrastive_step& step) {
    ++steps;
    for (const auto& c : step.candidates) {
      CHECK(c.similarity >= step.candidates[step.chosen].similarity);
      CHECK(c.score == -c.similarity);
    }
    for (std::size_t i = 1; i < step.candidates.size(); ++i) {
      CHECK(step.candidates[i - 1].probability >= step.candidates[i].probability);
    }
    return true;
  };
  (void)contrastive_search(model, ids{0}, {.k = 5, .alpha = 1, .max_new_tokens = 12, .on_step = check});
  CHECK(steps == 12);
}

TEST_CASE("the scale of hidden states does not matter", "[search]") {
  const markov_model t = table(5);
  auto model = toy(t);
  const auto expected = contrastive_search(model, ids{0, 3}, {.max_new_tokens = 20}).tokens;
  for (const float scale : {1e-30F, 0x1p-10F, 3.0F, 1e30F}) {
    auto scaled = toy(t, scale);
    CHECK(contrastive_search(scaled, ids{0, 3}, {.max_new_tokens = 20}).tokens == expected);
  }
}

TEST_CASE("log_prob is what the model says of the output", "[search]") {
  const markov_model t = table(6);
  auto model = toy(t);
  ids text{0, 3};
  const auto found = contrastive_search(model, text, {.max_new_tokens = 9});
  double log_prob = 0;
  for (const token_id token : found.tokens) {
    const auto row = t.row_after(text);
    double mass = 0;
    for (const float z : row) mass += std::exp(static_cast<double>(z));
    log_prob += static_cast<double>(row[static_cast<std::size_t>(token)]) - std::log(mass);
    text.push_back(token);
  }
  CHECK(found.log_prob == Approx(log_prob).margin(1e-9));
}

TEST_CASE("a token too rare for a probability has a log-probability all the same", "[search]") {
  auto model = hidden_state_model(
      2, [](std::span<const token_id>) { return numbers{0, -800}; },
      [](std::span<const token_id> tokens) { return numbers{1, static_cast<float>(tokens.back())}; });
  const auto found = contrastive_search(model, ids{0}, {.k = 2, .alpha = 1, .max_new_tokens = 1});
  CHECK(found.tokens == ids{1});
  CHECK(found.log_prob == Approx(-800));
}

TEST_CASE("degeneration_penalty: the greatest cosine", "[search]") {
  degeneration_penalty seen;
  CHECK(seen(numbers{1, 0}) == 0);
  seen.add(numbers{0, 2});
  CHECK(seen(numbers{3, 0}) == 0);
  CHECK(seen(numbers{0, -1}) == -1);
  seen.add(numbers{1, 1});
  CHECK(seen.size() == 2);
  CHECK(seen(numbers{5, 0}) == Approx(std::sqrt(0.5)));
  CHECK(seen(numbers{0, 7}) == 1);
  CHECK(seen(numbers{0.1F, 0.1F}) <= 1);
  CHECK_THROWS_AS(seen.add(numbers{1}), assertion_error);
  CHECK_THROWS_AS(seen(numbers{1, 2, 3}), assertion_error);
  seen.clear();
  seen.add(numbers{1, 2, 3});
  CHECK(seen.size() == 1);
}

TEST_CASE("degeneration_penalty: a state without a direction is like nothing", "[search]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  degeneration_penalty seen;
  seen.add(numbers{1, 0});
  for (const numbers& odd : {numbers{0, 0}, numbers{infinity, 1}, numbers{std::nanf(""), 1}}) {
    CHECK(seen(odd) == 0);
    degeneration_penalty of_odd;
    of_odd.add(odd);
    CHECK(of_odd(numbers{1, 0}) == 0);
    CHECK(of_odd(odd) == 0);
    of_odd.add(numbers{-1, 0});
    CHECK(of_odd(numbers{1, 0}) == 0);  // 0 with the odd one is more than -1
  }
  CHECK(seen(numbers{3e38F, 3e38F}) == Approx(std::sqrt(0.5)));
}

TEST_CASE("equal scores go to the more probable, then to the lower id", "[search]") {
  std::vector<contrastive_candidate> tied{{4, 0.5, 0.5, 0}, {1, 0.25, 0.25, 0}, {2, 0.5, 0.5, 0}};
  CHECK(choose_contrastive(tied, 0.5) == 0);
  CHECK(tied[1].score == 0);
  CHECK_THROWS_AS(choose_contrastive(std::span<contrastive_candidate>(), 0.5), assertion_error);
  // Of equal probability and equally like the text: the lower id is the first candidate.
  auto model = hidden_state_model(
      5, [](std::span<const token_id>) { return numbers{0, 2, 2, 0, 2}; },
      [](std::span<const token_id>) { return numbers{1, 1}; });
  CHECK(contrastive_search(model, ids{0}, {.k = 3, .max_new_tokens = 3}).tokens == ids{1, 1, 1});
}

// A model of three tokens that likes 0, 1, 2 in this order.
auto falling(float last = -2) {
  return hidden_state_model(
      3, [last](std::span<const token_id>) { return numbers{2, 0, last}; },
      [](std::span<const token_id> tokens) { return numbers{1, static_cast<float>(tokens.back())}; });
}

TEST_CASE("an end token ends the output, and may be the first", "[search]") {
  auto model = falling();
  auto found = contrastive_search(model, ids{1}, {.k = 1, .end_tokens = {2, 0}});
  CHECK(found.tokens == ids{0});
  CHECK(found.finish == finish_reason::stop_token);
  CHECK(found.end_token == 0);
  CHECK(found.model_calls == 1);
  found = contrastive_search(model, ids{0}, {.k = 3, .alpha = 1, .end_tokens = {2}});
  CHECK(found.tokens == ids{2});  // the least like the prompt
  CHECK(model.sequences() == 0);
}

TEST_CASE("fewer candidates than k: a small vocabulary, a row with few left", "[search]") {
  auto model = falling(gone);
  std::size_t steps = 0;
  const auto two = [&](const contrastive_step& step) { return ++steps, step.candidates.size() == 2; };
  CHECK(contrastive_search(model, ids{0}, {.k = 50, .max_new_tokens = 8, .on_step = two}).tokens.size() == 8);
  CHECK(steps == 8);
}

TEST_CASE("a row that cannot be decoded ends the output", "[search]") {
  for (const float bad : {gone, std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t good : {std::size_t{0}, std::size_t{3}}) {
      auto model = hidden_state_model(
          2, [=](std::span<const token_id> tokens) { return numbers(2, tokens.size() < good + 2 ? 1.0F : bad); },
          [](std::span<const token_id> tokens) { return numbers{static_cast<float>(tokens.size()), 1}; });
      const auto found = contrastive_search(model, ids{0, 1}, {.k = 2});
      CHECK(found.tokens.size() == good);
      CHECK(found.finish == finish_reason::bad_row);
      CHECK(found.status == (is_gone(bad) ? row_status::empty : row_status::not_finite));
      CHECK(model.sequences() == 0);
    }
  }
}

TEST_CASE("limits, criteria and the callback end the output", "[search]") {
  auto model = falling();
  auto found = contrastive_search(model, ids{1}, {.max_new_tokens = 0});
  CHECK(found.tokens.empty());
  CHECK(found.model_calls == 0);
  found = contrastive_search(model, ids{1, 1}, {.context_length = 5});
  CHECK(found.tokens.size() == 3);
  CHECK(found.finish == finish_reason::context_full);
  found = contrastive_search(model, ids{1}, {.k = 1, .stop = stop_sequence{{0, 0}}});
  CHECK(found.tokens == ids{0, 0});
  CHECK(found.finish == finish_reason::stop_sequence);
  found = contrastive_search(model, ids{1}, {.on_step = [](const contrastive_step&) { return false; }});
  CHECK(found.tokens.size() == 1);
  CHECK(found.finish == finish_reason::cancelled);
}

TEST_CASE("processors see the text, and bans hold", "[search]") {
  const markov_model t = table(7);
  auto model = toy(t);
  const auto found = contrastive_search(model, ids{0}, {.max_new_tokens = 30, .processors = {no_repeat_ngram(2)}});
  ids text{0};
  text.insert(text.end(), found.tokens.begin(), found.tokens.end());
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) CHECK_FALSE((text[i] == text[j] && text[i + 1] == text[j + 1]));
  }
}

TEST_CASE("on the transformer: lookahead with shared keys equals encoding every candidate anew", "[search]") {
  const checkpoint weights = reference_tests::random_checkpoint(reference_tests::small_config(), 80);
  const ids prompt = reference_tests::number_source(81).tokens(18, 31);
  transformer_batch model(weights);
  const auto found = contrastive_search(model, prompt, {.k = 5, .alpha = 0.4, .max_new_tokens = 12});
  CHECK(found.tokens.size() == 12);
  CHECK(model.sequences() == 0);
  CHECK(model.kv().pages_in_use() == 0);

  const auto with = [](ids tokens, token_id next) { return tokens.push_back(next), tokens; };
  ids text = prompt;
  for (const token_id taken : found.tokens) {
    transformer before(weights);
    candidates row;
    row.bind(before.evaluate(text));
    degeneration_penalty seen;
    for (std::size_t j = 0; j < text.size(); ++j) seen.add(before.hidden(j));
    std::vector<contrastive_candidate> looked_at;
    for (const entry& e : row.descending(5)) looked_at.push_back({.token = e.id});
    for (auto& c : looked_at) {
      c.probability = math::exp(row.log_probability(c.token));
      transformer after(weights);
      after.evaluate(with(text, c.token));
      c.similarity = seen(after.hidden(text.size()));
    }
    REQUIRE(taken == looked_at[choose_contrastive(looked_at, 0.4)].token);
    text.push_back(taken);
  }
}

TEST_CASE("the context of a model that says its length is not overrun", "[search]") {
  transformer_batch model(reference_tests::random_checkpoint(reference_tests::tiny_config(true), 82));
  const auto found = contrastive_search(model, ids{1, 2, 3}, {.k = 3});
  CHECK(found.tokens.size() == 37);
  CHECK(found.finish == finish_reason::context_full);
}

TEST_CASE("of contrastive search, bad parameters are named, misuse is caught", "[search]") {
  auto model = falling();
  CHECK_THROWS_WITH(contrastive_search(model, ids{0}, {.k = 0}), "contrastive_search: k = 0 must be >= 1");
  for (const double bad : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    const contrastive_options options{.alpha = bad};
    CHECK_THROWS_AS(contrastive_search(model, ids{0}, options), parameter_error);
    REQUIRE(options.validate());
    CHECK(options.validate()->parameter == "alpha");
  }
  CHECK_FALSE(contrastive_options{}.validate());
  CHECK_THROWS_AS(contrastive_search(model, ids{}), assertion_error);
  CHECK(model.sequences() == 0);
}

TEST_CASE("contrastive search never takes what pads a row", "[search]") {
  const markov_model t = table(3);
  auto plain = toy(t);
  search_tests::padded model(toy(t));
  const auto expected = contrastive_search(plain, ids{2, 5}, {.k = 4, .max_new_tokens = 12});
  CHECK(contrastive_search(model, ids{2, 5}, {.k = 4, .max_new_tokens = 12}).tokens == expected.tokens);
}

}  // namespace contrastive_search_test
