// SPDX-License-Identifier: MIT
#include <decant/speculative/target_laws.hpp>

#include <decant/chain.hpp>
#include <decant/samplers/mirostat.hpp>
#include <decant/samplers/multinomial.hpp>

#include "speculative/drivers.hpp"
#include "support/catch.hpp"

namespace target_laws_tests {

using namespace drivers;

TEST_CASE("in whatever order laws are asked for, each is that of its own history", "[speculative]") {
  const markov table = decant::testing::random_markov_model(4, 2, 3);
  draft drafted;
  const auto a = drafted.add(1), b = drafted.add(2), c = drafted.add(3, a), d = drafted.add(0, a),
             e = drafted.add(2, d);
  const ids prompt{0, 1};
  const auto text_to = [&](std::int32_t node) {
    std::vector<std::size_t> path;
    drafted.path_to(node, path);
    ids text = prompt;
    for (const std::size_t n : path) text.push_back(drafted.token(static_cast<std::int32_t>(n)));
    return text;
  };
  const auto row = [&](std::int32_t node) { return table.row_after(text_to(node)); };
  const decant::draw_stream draws(5);
  // Mirostat's law depends on every token accepted before.
  const auto chain = decant::dynamic_chain{} | decant::any_sampler(decant::mirostat(1, 0.8));
  const auto expected = [&](std::int32_t node) {
    auto fresh = chain;
    ids text = prompt;
    for (std::size_t i = prompt.size(); i < text_to(node).size(); ++i) {
      const token_id token = text_to(node)[i];
      fresh.accept(token, fresh.record_of(table.row_after(text), decant::context_after(text, 2, draws), token));
      text.push_back(token);
    }
    return fresh.law_of(table.row_after(text), decant::context_after(text, 2, draws));
  };
  for (const std::vector<std::int32_t>& order : {std::vector<std::int32_t>{no_parent, a, c, d, e, b},
                                                 {e, d, c, b, a, no_parent},
                                                 {c, b, e, no_parent, e, a, d}}) {
    auto moved = chain;
    decant::detail::target_laws<run_time_decoder> laws;
    laws.begin(drafted, prompt.size(), draws);
    ids text = prompt;
    for (const std::int32_t node : order) CHECK(laws.at(node, moved, text, row) == expected(node));
    laws.go_to(e, moved, text, row);
    CHECK(text == text_to(e));
    CHECK(moved.law_of(row(e), laws.context(text)) == expected(e));
    laws.go_to(no_parent, moved, text, row);
    CHECK(text == prompt);
  }
}

TEST_CASE("a law is made once a round", "[speculative]") {
  const markov table = decant::testing::random_markov_model(4, 1, 3);
  draft drafted;
  drafted.add(1);
  int calls = 0;
  const auto count = [&](decant::candidates&, const decant::step_context&) { ++calls; };
  auto chain = decant::dynamic_chain{count} | decant::any_sampler(decant::multinomial{});
  decant::detail::target_laws<run_time_decoder> laws;
  ids text{0};
  const auto row = [&](std::int32_t) { return table.row_after(text); };
  for (int round = 1; round <= 3; ++round) {
    laws.begin(drafted, 1, decant::draw_stream(1));
    const decant::law* first = &laws.at(no_parent, chain, text, row);
    CHECK(first == &laws.at(no_parent, chain, text, row));
    CHECK(calls == round);
  }
}

TEST_CASE("whether a decoder has a law, and keeps state", "[speculative]") {
  const auto plain = decant::dynamic_chain{} | decant::any_sampler(decant::multinomial{});
  CHECK(decant::detail::decoder_has_law(plain));
  CHECK(!decant::detail::decoder_keeps_state(plain));
  CHECK(decant::detail::decoder_keeps_state(decant::dynamic_chain{} | decant::any_sampler(decant::mirostat(1, 0.1))));
  const auto lambda = [](decant::candidates& row, const decant::step_context&) { return row.argmax(); };
  CHECK(!decant::detail::decoder_has_law(decant::decode_with(lambda)));
}

}  // namespace target_laws_tests
