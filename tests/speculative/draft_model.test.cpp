// SPDX-License-Identifier: MIT
#include <decant/speculative/draft_model.hpp>

#include <cmath>

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/samplers/mirostat.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/testing/enumerate.hpp>

#include "speculative/drivers.hpp"
#include "support/catch.hpp"

namespace draft_model_tests {

using namespace drivers;
using decant::any_sampler;
using decant::dynamic_chain;

/// A model that counts what it is given.
struct counted : markov {
  std::size_t given = 0, passes = 0, length = 1000;
  explicit counted(markov rows) : markov(std::move(rows)) {}
  std::span<const float> evaluate(std::span<const token_id> tokens) {
    given += tokens.size();
    ++passes;
    return markov::evaluate(tokens);
  }
  [[nodiscard]] std::size_t sequence_length() const { return length; }
};

run_time_decoder sampling() { return dynamic_chain{decant::temperature(0.8)} | any_sampler(decant::multinomial{}); }
run_time_decoder best() { return dynamic_chain{} | any_sampler(decant::greedy{}); }

/// `text` must live as long as the request.
draft_request request_for(const ids& text, std::size_t depth, std::uint64_t seed = 1) {
  const decant::draw_stream round = decant::draw_stream(seed).at(text.size()).child(text.size());
  draft_request request;
  request.context = decant::context_after(text, 1, round);
  request.draws = round.child(0);
  request.max_depth = request.max_nodes = depth;
  return request;
}

TEST_CASE("a draft is drawn from the laws that stand in it", "[speculative]") {
  const markov table = decant::testing::random_markov_model(4, 1, 3);
  const ids text{0, 2};
  const auto law = decant::testing::enumerate_law([&](decant::decision_hook& hook) {
    counted model(table);
    decant::draft_model drafter(model, sampling());
    draft_request request = request_for(text, 2);
    request.draws = request.draws.with_hook(&hook);
    draft out;
    drafter.propose(request, out);
    CHECK(out.mode() == proposal::with_replacement);
    CHECK(out.is_chain());
    auto expected = sampling();
    ids longer = text;
    for (std::int32_t node = no_parent; node < 1; ++node) {
      const auto context = decant::context_after(longer, 1, decant::draw_stream(9));
      CHECK(out.children_law(node) == expected.law_of(table.row_after(longer), context));
      longer.push_back(out.token(node + 1));
    }
    return ids(out.tokens().begin(), out.tokens().end());
  });
  double sum = 0;
  for (const auto& [tokens, chance] : law) {
    CHECK(tokens.size() == 2);
    sum += chance;
  }
  CHECK(law.size() == 16);
  CHECK(std::abs(sum - 1) < 1e-12);
}

TEST_CASE("each token is given to the model once, and what was rejected is forgotten", "[speculative]") {
  counted model(decant::testing::random_markov_model(4, 2, 5));
  decant::draft_model drafter(model, sampling());
  draft out;
  ids text{0, 1, 2};
  drafter.propose(request_for(text, 3), out);
  CHECK(model.given == 3 + 2);
  CHECK(out.size() == 3);
  // All accepted, and one more: the last draft has not been evaluated yet, nor the token after it.
  text.insert(text.end(), out.tokens().begin(), out.tokens().end());
  text.push_back(1);
  model.given = 0;
  out.clear();
  drafter.propose(request_for(text, 2), out);
  CHECK(model.given == 2 + 1);
  // None accepted: another token in place of the first.
  text.push_back(out.token(0) == 0 ? 1 : 0);
  model.given = 0;
  out.clear();
  drafter.propose(request_for(text, 1), out);
  CHECK(model.given == 1);
  // Any other text.
  model.given = 0;
  out.clear();
  drafter.propose(request_for({3, 3}, 1), out);
  CHECK(model.given == 2);
  // The same text again: its last row was not kept.
  model.given = 0;
  out.clear();
  drafter.propose(request_for({3, 3}, 1), out);
  CHECK(model.given == 1);
}

TEST_CASE("whatever was asked before, the draft is the same", "[speculative]") {
  for (const bool stateful : {false, true}) {
    const auto chain = stateful ? dynamic_chain{} | any_sampler(decant::mirostat(1.5, 0.5)) : sampling();
    counted used(decant::testing::random_markov_model(4, 2, 6));
    decant::draft_model drafter(used, chain);
    draft out, fresh_out;
    for (const ids& text : {ids{0, 1}, {0, 1, 2, 2, 1}, {0, 1, 2}, {3}, {0, 1, 2, 3, 3, 3}}) {
      counted fresh(decant::testing::random_markov_model(4, 2, 6));
      decant::draft_model anew(fresh, chain);
      out.clear();
      fresh_out.clear();
      drafter.propose(request_for(text, 3), out);
      anew.propose(request_for(text, 3), fresh_out);
      CHECK(std::ranges::equal(out.tokens(), fresh_out.tokens()));
      for (std::int32_t node = no_parent; node < 2; ++node)
        CHECK(out.children_law(node) == fresh_out.children_law(node));
    }
    drafter.reset();
    CHECK(used.size() == 0);
  }
}

/// A processor whose state is how many tokens it has been told of.
struct counting_bias {
  void operator()(decant::candidates& row, const decant::step_context&) const {
    row.add(0, 0.1F * static_cast<float>(seen));
  }
  void accept(token_id, const decant::step_record&) { ++seen; }
  void rollback(std::size_t count) { seen -= count; }
  void reset() { seen = 0; }
  std::size_t seen = 0;
};

TEST_CASE("a chain with state follows a text whose prompt is shorter than that of the text before", "[speculative]") {
  const auto chain = counting_bias{} | decant::multinomial{};
  const ids first{0, 1, 2, 3, 3, 0, 1, 2, 3, 3, 1, 1}, second{0, 1, 2, 3, 3, 0, 1, 2, 0, 0, 2, 2};
  const auto request = [](const ids& text, std::size_t prompt_size) {
    draft_request asked = request_for(text, 2);
    asked.context = decant::context_after(text, prompt_size, asked.context.draws);
    return asked;
  };
  counted used(decant::testing::random_markov_model(4, 2, 6)), fresh(decant::testing::random_markov_model(4, 2, 6));
  decant::draft_model drafter(used, chain), anew(fresh, chain);
  draft out, fresh_out;
  drafter.propose(request(first, 10), out);
  for (const std::size_t prompt_size : {5U, 9U, 2U}) {
    out.clear();
    fresh_out.clear();
    drafter.propose(request(second, prompt_size), out);
    anew.reset();
    anew.propose(request(second, prompt_size), fresh_out);
    CHECK(out.children_law(no_parent) == fresh_out.children_law(no_parent));
    drafter.reset();
    out.clear();
    drafter.propose(request(first, 10), out);
  }
}

TEST_CASE("a greedy drafter's drafts are deterministic", "[speculative]") {
  counted model(decant::testing::random_markov_model(4, 1, 7));
  decant::draft_model drafter(model, best());
  draft out;
  drafter.propose(request_for({0}, 4), out);
  CHECK(out.mode() == proposal::deterministic);
  CHECK(out.size() == 4);
  const auto row = model.row_after(ids{0});
  CHECK(out.token(0) == std::ranges::max_element(row) - row.begin());
}

TEST_CASE("a draft ends at a stop token, at little confidence and at the model's context", "[speculative]") {
  counted model(markov(3, 1, {0, 0, 0, /**/ 9, 0, 0, /**/ 0, 0, 0, /**/ 0, 9, 0}));  // 0 -> any, 1 -> 0, 2 -> any
  for (const auto& chain : {sampling(), best()}) {
    decant::draft_model drafter(model, chain);
    draft out;
    const ids text{1};
    draft_request request = request_for(text, 5);
    request.min_confidence = 0.9;
    drafter.propose(request, out);
    CHECK(out.size() == 1);  // 1 -> 0 is sure enough, what follows 0 is not
    out.clear();
    const ids stops{0};
    request = request_for(text, 5);
    request.stop_tokens = stops;
    drafter.propose(request, out);
    CHECK(out.size() == 1);
    CHECK(out.token(0) == 0);
    out.clear();
    model.length = 3;
    drafter.propose(request_for({1, 0}, 5), out);
    CHECK(out.size() == 2);
    model.length = 1000;
  }
}

TEST_CASE("a row from which nothing can be drawn ends a draft", "[speculative]") {
  const float gone = decant::gone;
  counted model(markov(2, 1, {gone, 0, /**/ gone, gone, /**/ 0, 0}));
  decant::draft_model drafter(model, sampling());
  draft out;
  drafter.propose(request_for({0}, 5), out);
  CHECK(out.size() == 1);
  CHECK(out.token(0) == 1);
}

}  // namespace draft_model_tests
