// SPDX-License-Identifier: MIT
#include <decant/generate/batch.hpp>

#include "math/bits.hpp"
#include "support/catch.hpp"

#include <decant/chain/any.hpp>
#include <decant/generate/thread_pool.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace batch_test {

using decant::any_sampler;
using decant::decoder;
using decant::dynamic_chain;
using decant::row_status;
using decant::step_outcome;
using decant::token_id;
using any_decoder = decoder<dynamic_chain, any_sampler>;
using row = decant::batch_row<any_decoder>;

constexpr std::size_t vocabulary = 5000;

/// A request of its own kind: logits, text, decoder, seed.
struct request {
  std::vector<float> logits;
  std::vector<token_id> text;
  any_decoder decoder;
  decant::draw_stream draws;
};

request make_request(std::uint64_t number) {
  test_bits::splitmix next(number);
  std::vector<float> logits(vocabulary);
  for (float& z : logits) z = static_cast<float>(next.between(-9, 9));
  std::vector<token_id> text;
  for (std::size_t i = 0; i < 5 + number % 40; ++i) text.push_back(static_cast<token_id>(next.below(vocabulary)));
  const dynamic_chain chains[] = {
      {decant::repetition_penalty(1.3), decant::top_k(40), decant::top_p(0.9), decant::temperature(0.8)},
      {decant::temperature(1.7)},
      {decant::min_p(0.05), decant::xtc(0.5, 0.01)},
      {},
      {decant::frequency_penalty(0.5), decant::top_p(0.99)},
  };
  const any_sampler samplers[] = {decant::multinomial{}, decant::mirostat(4, 0.3), decant::greedy{}};
  return {logits, text, any_decoder(chains[number % 5], samplers[number % 3]), decant::draw_stream(number, 7)};
}

/// Three steps of some requests in one batch, in the given order: the outcomes by request.
template <class E>
std::vector<std::vector<token_id>> run(std::vector<request> requests, const std::vector<std::size_t>& order,
                                       E&& executor) {
  std::vector<std::vector<token_id>> tokens(requests.size());
  for (int step = 0; step < 3; ++step) {
    std::vector<row> rows;
    for (const std::size_t r : order) {
      request& each = requests[r];
      rows.push_back({&each.decoder, each.logits, decant::context_after(each.text, 2, each.draws)});
    }
    decant::step_batch(std::span(rows), executor);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      REQUIRE(rows[i].outcome.status == row_status::ok);
      REQUIRE(rows[i].failure == nullptr);
      tokens[order[i]].push_back(rows[i].outcome.token);
      requests[order[i]].text.push_back(rows[i].outcome.token);
    }
  }
  return tokens;
}

TEST_CASE("a row's tokens do not depend on place, neighbours, executor or threads", "[generate][batch]") {
  std::vector<request> requests;
  for (std::uint64_t r = 0; r < 30; ++r) requests.push_back(make_request(r));
  std::vector<std::size_t> order(requests.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;

  std::vector<std::vector<token_id>> alone(requests.size());
  for (std::size_t r = 0; r < requests.size(); ++r) alone[r] = run(requests, {r}, decant::serial_executor{})[r];
  CHECK(run(requests, order, decant::serial_executor{}) == alone);
  std::reverse(order.begin(), order.end());
  CHECK(run(requests, order, decant::serial_executor{}) == alone);
  for (const std::size_t threads : std::initializer_list<std::size_t>{1, 2, 7}) {
    decant::thread_pool pool(threads);
    std::rotate(order.begin(), order.begin() + 11, order.end());
    CHECK(run(requests, order, pool) == alone);
  }
}

TEST_CASE("a seeded row does not care whether its neighbours are seeded (vllm#51226, TGI#326)", "[generate][batch]") {
  std::vector<request> same(9, make_request(1));
  for (std::size_t r = 1; r < same.size(); ++r) same[r].draws = decant::draw_stream(r);
  const auto tokens = run(same, {8, 0, 3, 4}, decant::serial_executor{});
  CHECK(tokens[0] == run({same[0]}, {0}, decant::serial_executor{})[0]);
}

TEST_CASE("a bad row and a decoder that throws concern nobody else, and accept nothing", "[generate][batch]") {
  std::vector<request> requests;
  for (std::uint64_t r = 0; r < 6; ++r) requests.push_back(make_request(r));
  requests[1].logits.assign(vocabulary, decant::gone);
  requests[3].logits[17] = std::numeric_limits<float>::quiet_NaN();
  const dynamic_chain throws{
      [](decant::candidates&, const decant::step_context&) { throw std::runtime_error("user's own"); }};
  requests[4].decoder = any_decoder(throws, decant::mirostat());
  decant::thread_pool pool(2);
  for (const bool threaded : {false, true}) {
    std::vector<request> copies = requests;
    std::vector<row> rows;
    for (request& each : copies) {
      rows.push_back({&each.decoder, each.logits, decant::context_after(each.text, 0, each.draws)});
    }
    if (threaded) {
      decant::step_batch(std::span(rows), pool);
    } else {
      decant::step_batch(std::span(rows));
    }
    CHECK(rows[1].outcome.status == row_status::empty);
    CHECK(rows[1].outcome.token == decant::no_token);
    CHECK(rows[3].outcome.status == row_status::not_finite);
    CHECK(rows[3].outcome.token == decant::no_token);
    CHECK(rows[4].outcome.token == decant::no_token);
    REQUIRE(rows[4].failure != nullptr);
    CHECK_THROWS_WITH(std::rethrow_exception(rows[4].failure), "user's own");
    CHECK(copies[4].decoder.sampler().as<decant::mirostat>()->mu() == decant::mirostat().mu());
    for (const std::size_t good : std::initializer_list<std::size_t>{0, 2, 5}) {
      request single = requests[good];
      const auto context = decant::context_after(single.text, 0, single.draws);
      CHECK(rows[good].outcome.token == single.decoder.step(single.logits, context));
      CHECK(rows[good].failure == nullptr);
      CHECK(copies[good].logits == requests[good].logits);
    }
  }
}

TEST_CASE("a batch that is run again forgets the outcomes before", "[generate][batch]") {
  request one = make_request(2);
  std::vector<row> rows{{&one.decoder, one.logits, decant::context_after(one.text, 0, one.draws)}};
  rows[0].outcome = {3, row_status::empty};
  decant::step_batch(std::span(rows));
  CHECK(rows[0].outcome.status == row_status::ok);
  decant::step_batch(std::span<row>());
}

std::string refusal(std::span<row> rows) {
  try {
    decant::step_batch(rows);
  } catch (const assertion_error& e) {
    return e.what();
  }
  return "";
}

TEST_CASE("misuse of a batch is found before anything runs", "[generate][batch]") {
  request one = make_request(1), two = make_request(2);
  const auto context = decant::context_after(one.text, 0, one.draws);
  std::vector<row> rows{{&one.decoder, one.logits, context}, {&one.decoder, two.logits, context}};
  CHECK(refusal(rows).starts_with("one decoder for two rows"));
  rows[1].decoder = nullptr;
  CHECK(refusal(rows).starts_with("a row of a batch needs a decoder"));
  CHECK(rows[0].outcome.token == decant::no_token);
  rows[1].decoder = &two.decoder;
  CHECK_NOTHROW(decant::step_batch(std::span(rows)));
  CHECK(rows[0].outcome.token != decant::no_token);
}

}  // namespace batch_test
