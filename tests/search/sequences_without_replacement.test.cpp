// SPDX-License-Identifier: MIT
#include <decant/search/sequences_without_replacement.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/generate/generate.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/reference/transformer.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/testing/enumerate.hpp>
#include <decant/testing/markov_model.hpp>

#include "reference/fixtures.hpp"
#include "search/leaves.hpp"
#include "search/padded.hpp"

namespace sequences_without_replacement_test {

using namespace decant;
using namespace search_tests;
using decant::testing::markov_model;
using decant::testing::random_markov_model;

const ids start{0};

TEST_CASE("the law of the first sequences is that of drawing without replacement, by enumeration", "[search]") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const markov_model table = random_markov_model(3, 1, seed, 1, seed > 2 ? 0.3 : 0.0);
    const auto all = leaves(table, start, {2}, 2);
    auto model = model_of(table);
    for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
      const auto law = decant::testing::enumerate_law([&](decision_hook& hook) {
        sequences_without_replacement source(model, start, {.max_new_tokens = 2, .end_tokens = {2}, .hook = &hook});
        std::vector<ids> drawn;
        while (drawn.size() < count) {
          const fresh_sequence* s = source.next();
          if (s == nullptr) break;
          drawn.push_back(s->tokens);
        }
        return drawn;
      });
      std::map<std::vector<ids>, double> expected;
      for (const auto& order : orders(all, count)) expected[order] = plackett_luce(all, order);
      CHECK(law.size() == expected.size());
      CHECK(decant::testing::distance(law, expected) < 1e-6);
    }
  }
}

TEST_CASE("it ends when all are drawn, each once, with the mass that is left on the way", "[search]") {
  const markov_model table = random_markov_model(4, 2, 21, 1, 0.2);
  const auto all = leaves(table, ids{1, 0}, {3}, 4);
  auto model = model_of(table);
  sequences_without_replacement source(model, ids{1, 0}, {.max_new_tokens = 4, .end_tokens = {3}, .seed = 5});
  CHECK(source.remaining() == 1);
  std::set<ids> seen;
  double mass = 1;
  for (const fresh_sequence& s : source) {
    CHECK(seen.insert(s.tokens).second);
    REQUIRE(all.contains(s.tokens));
    CHECK(s.log_prob == Approx(all.at(s.tokens)).margin(1e-6));
    CHECK(s.finish == (s.tokens.back() == 3 ? finish_reason::stop_token : finish_reason::length));
    CHECK(s.end_token == (s.tokens.back() == 3 ? 3 : no_token));
    mass -= std::exp(all.at(s.tokens));
    CHECK(source.remaining() == Approx(mass).margin(1e-6));
  }
  CHECK(seen.size() == all.size());
  CHECK(source.remaining() == 0);
  CHECK(source.drawn() == all.size());
  CHECK(source.next() == nullptr);
  CHECK(source.next() == nullptr);
}

TEST_CASE("what is left of a mass that is nearly used up is right to the last places", "[search]") {
  // The likely one has all but 1e-17 of the mass: 1 minus its probability would be 0.
  stateless model([](std::span<const token_id>) { return numbers{40, 0, 1}; });
  bool likely_first = false;
  for (std::uint64_t seed = 0; seed < 5 && !likely_first; ++seed) {
    sequences_without_replacement source(model, start, {.max_new_tokens = 1, .seed = seed});
    likely_first = source.next()->tokens == ids{0};
    if (!likely_first) continue;
    const double e = std::exp(1.0);
    CHECK(source.remaining() == Approx((1 + e) / (std::exp(40.0) + 1 + e)).epsilon(1e-6).margin(0));
    const ids second = source.next()->tokens;
    CHECK(source.remaining() == Approx((second == ids{1} ? e : 1) / (std::exp(40.0) + 1 + e)).epsilon(1e-6).margin(0));
    CHECK(source.next() != nullptr);
    CHECK(source.remaining() == 0);
    CHECK(source.next() == nullptr);
  }
  CHECK(likely_first);
}

TEST_CASE("the same deep in the trie: what is left is a product of small shares", "[search]") {
  // At every step 0 has all but 1e-9, so that the second sequence differs somewhere by one token.
  stateless model([](std::span<const token_id>) { return numbers{20.7F, 0}; });
  sequences_without_replacement source(model, start, {.max_new_tokens = 6, .seed = 1});
  REQUIRE(source.next()->tokens == ids(6, 0));
  const double q = 1 / (1 + std::exp(static_cast<double>(20.7F)));
  CHECK(source.remaining() == Approx(-std::expm1(6 * std::log1p(-q))).epsilon(1e-6).margin(0));
  const ids second = source.next()->tokens;
  CHECK(std::count(second.begin(), second.end(), 1) == 1);
  while (source.next() != nullptr) {
  }
  CHECK(source.drawn() == 64);
  CHECK(source.remaining() == 0);
}

TEST_CASE("the first is what generate draws from the same seed", "[search]") {
  const checkpoint weights = reference_tests::random_checkpoint(reference_tests::small_config(), 95);
  const ids prompt{3, 1, 4};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    transformer model(weights);
    const auto expected = generate(model, prompt, temperature(0.7) | multinomial{},
                                   {.max_new_tokens = 12, .stop_tokens = {9}, .seed = seed, .sequence = 4});
    sequences_without_replacement source(
        model, prompt,
        {.max_new_tokens = 12, .end_tokens = {9}, .processors = {temperature(0.7)}, .seed = seed, .sequence = 4});
    const fresh_sequence first = *source.next();
    CHECK(first.tokens == expected.tokens);
    CHECK(first.finish == expected.finish);
    CHECK(source.next()->tokens != first.tokens);
  }
}

TEST_CASE("a large vocabulary, whose first row is drawn by rejection", "[search]") {
  stateless model([](std::span<const token_id>) {
    numbers row(9000);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i % 7);
    return row;
  });
  sequences_without_replacement source(model, start, {.max_new_tokens = 1, .seed = 2});
  std::set<ids> seen;
  for (int i = 0; i < 300; ++i) CHECK(seen.insert(source.next()->tokens).second);
}

TEST_CASE("a prefix is given to the model once", "[search]") {
  std::size_t rows = 0;
  stateless model([&rows](std::span<const token_id>) { return ++rows, numbers{0, 0, 0}; });
  sequences_without_replacement source(model, ids{0, 1}, {.max_new_tokens = 3});
  while (source.next() != nullptr) {
  }
  CHECK(source.drawn() == 27);
  CHECK(rows == 1 + 3 + 9);
}

TEST_CASE("processors make the distribution", "[search]") {
  const markov_model table = random_markov_model(6, 1, 31);
  auto model = model_of(table);
  sequences_without_replacement source(model, start, {.max_new_tokens = 3, .processors = {top_k(2)}});
  double mass = 0;
  for (const fresh_sequence& s : source) mass += std::exp(s.log_prob);
  CHECK(source.drawn() == 8);
  CHECK(mass == Approx(1));
}

TEST_CASE("a row that cannot be decoded ends its sequence, and counts as one", "[search]") {
  for (const float bad : {gone, std::numeric_limits<float>::quiet_NaN()}) {
    stateless model(
        [bad](std::span<const token_id> tokens) { return tokens.back() == 1 ? numbers(2, bad) : numbers{0, 0}; });
    std::map<ids, finish_reason> found;
    for (const fresh_sequence& s : sequences_without_replacement(model, start, {.max_new_tokens = 2})) {
      found[s.tokens] = s.finish;
      if (s.finish == finish_reason::bad_row) {
        CHECK(s.status == (is_gone(bad) ? row_status::empty : row_status::not_finite));
      }
    }
    CHECK(found == std::map<ids, finish_reason>{{ids{1}, finish_reason::bad_row},
                                                {ids{0, 0}, finish_reason::length},
                                                {ids{0, 1}, finish_reason::length}});
    sequences_without_replacement at_once(model, ids{1});
    const fresh_sequence* only = at_once.next();
    REQUIRE(only != nullptr);
    CHECK(only->tokens.empty());
    CHECK(only->finish == finish_reason::bad_row);
    CHECK(at_once.next() == nullptr);
  }
}

TEST_CASE("an end at the first step, a vocabulary of one, a context that is full", "[search]") {
  stateless ending([](std::span<const token_id>) { return numbers{gone, 0}; });
  sequences_without_replacement one(ending, start, {.end_tokens = {1}});
  CHECK(one.next()->tokens == ids{1});
  CHECK(one.next() == nullptr);
  stateless single([](std::span<const token_id>) { return numbers{3}; });
  sequences_without_replacement same(single, start, {.max_new_tokens = 4});
  CHECK(same.next()->tokens == ids(4, 0));
  CHECK(same.next() == nullptr);
  sequences_without_replacement cut(single, ids{0, 0}, {.context_length = 3});
  CHECK(cut.next()->finish == finish_reason::context_full);
  sequences_without_replacement full(single, ids{0, 0}, {.context_length = 2});
  CHECK(full.next()->tokens.empty());
  CHECK(full.next() == nullptr);
}

TEST_CASE("of sequences without replacement, bad parameters are named, misuse is caught", "[search]") {
  const markov_model table = random_markov_model(3, 1, 1);
  auto model = model_of(table);
  using source = sequences_without_replacement<decltype(model)>;
  CHECK_THROWS_WITH(source(model, start, {.max_new_tokens = 0}),
                    "sequences_without_replacement: max_new_tokens = 0 must be >= 1");
  CHECK_FALSE(without_replacement_options{}.validate());
  CHECK_THROWS_AS(source(model, ids{}), assertion_error);
}

TEST_CASE("sequences without replacement never hold what pads a row", "[search]") {
  const markov_model table = random_markov_model(4, 2, 21, 1, 0.2);
  auto plain = model_of(table);
  padded model(model_of(table));
  std::vector<ids> expected, drawn;
  const without_replacement_options options{.max_new_tokens = 3, .end_tokens = {2}, .seed = 5};
  for (const fresh_sequence& s : sequences_without_replacement(plain, start, options)) expected.push_back(s.tokens);
  for (const fresh_sequence& s : sequences_without_replacement(model, start, options)) drawn.push_back(s.tokens);
  CHECK(expected.size() > 10);
  CHECK(drawn == expected);
}

}  // namespace sequences_without_replacement_test
