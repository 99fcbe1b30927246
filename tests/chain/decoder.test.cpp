// SPDX-License-Identifier: MIT
#include <decant/chain/decoder.hpp>

#include "support/catch.hpp"

#include <decant/testing/counting_allocator.hpp>
#include "chain/policies.hpp"

#include <decant/chain/any.hpp>
#include <decant/chain/compose.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

#include "math/bits.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace decoder_test {

using namespace chain_policies;
using decant::greedy;
using decant::multinomial;
using decant::no_token;
using decant::row_status;
using decant::temperature;
using decant::top_k;
using decant::top_p;
using ids = std::vector<token_id>;
const std::vector<token_id> none;
const float nan_value = test_bits::float_of(0x7FC00000U), infinity = test_bits::float_of(0x7F800000U);

static_assert(decant::Decoder<decant::decoder<top_k, greedy>>);
static_assert(!decant::Decoder<decant::chain<top_k>> && !decant::Decoder<greedy>);

TEST_CASE("a step decides a token from any kind of row", "[chain][decoder]") {
  auto decoding = top_k(3) | greedy{};
  std::vector<float> in_place{1, 3, 2};
  const std::vector<float> constant{1, 3, 2};
  const std::vector<decant::bfloat16> wide{{0x3F80}, {0x4040}, {0x4000}};
  float array[] = {1, 3, 2, 100};
  CHECK(decoding.step(in_place, at(none)) == 1);
  CHECK(decoding.step(constant, at(none)) == 1);
  CHECK(decoding.step(wide, at(none)) == 1);
  CHECK(decoding.step(std::span(array).first(3), at(none)) == 1);
  CHECK(decoding.step(array, at(none)) == 3);
  CHECK(decoding.step(std::vector<float>{1, 3, 2}, at(none)) == 1);  // lives through the call
  CHECK(in_place == constant);
}

TEST_CASE("a step draws what its law says, and the law is that of step", "[chain][decoder]") {
  auto decoding = top_k(4) | temperature(0.7) | multinomial{};
  const auto law = decoding.law_of(known_logits, at(none));
  CHECK(law.size() == 4);
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const token_id token = decoding.step(known_logits, at(none, seed));
    CHECK(token == decant::draw(law, at(none, seed).draws));
    CHECK(law.probability(token) > 0);
  }
  decant::law out;
  decoding.law_of(known_logits, at(none), out);
  CHECK(out == law);
  CHECK((top_k(4) | greedy{}).law_of(known_logits, at(none)).probability(0) == 1);
}

TEST_CASE("temperature 2 over {2, 1, 0} is softmax of the half (Kimi-Audio PR161)", "[chain][decoder]") {
  const std::vector<float> logits{2, 1, 0};
  const auto law = (temperature(2) | multinomial{}).law_of(logits, at(none));
  const double sum = std::exp(1.0) + std::exp(0.5) + 1;
  CHECK(law.probability(0) == Approx(std::exp(1.0) / sum).epsilon(1e-6));
  CHECK(law.probability(1) == Approx(std::exp(0.5) / sum).epsilon(1e-6));
  CHECK(law.probability(2) == Approx(1 / sum).epsilon(1e-6));
}

TEST_CASE("temperature 0 and temperatures near it (ggml#37, TensorRT-LLM#15715)", "[chain][decoder]") {
  const std::vector<float> rising{1, 3, 2}, large{1000, 999, -1000}, last{999, 1000, -1000};
  for (const double t : {0.0, 1e-12, 1e-38, 1e-45, 1e-300, 5e-324}) {
    CAPTURE(t);
    auto drawing = temperature(t) | multinomial{};
    auto noisy = temperature(t) | decant::gumbel{};
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CHECK(drawing.step(rising, at(none, seed)) == 1);
      CHECK(drawing.step(large, at(none, seed)) == 0);
      CHECK(drawing.step(last, at(none, seed)) == 1);
      CHECK(noisy.step(rising, at(none, seed)) == 1);
      CHECK(noisy.step(large, at(none, seed)) == 0);
      CHECK(noisy.step(last, at(none, seed)) == 1);
    }
    const auto law = drawing.law_of(large, at(none));
    double sum = 0;
    for (const token_id id : law.ids) sum += law.probability(id);
    CHECK(sum == Approx(1));
    CHECK(law.probability(0) == 1);
  }
}

TEST_CASE("a bad row: step throws, try_step says why, nothing is accepted", "[chain][decoder]") {
  auto decoding = no_repeat{} | top_k(3) | counting_argmax{};
  auto without_state = top_k(3) | multinomial{};
  struct bad_row {
    std::vector<float> logits;
    row_status status;
  };
  const bad_row rows[] = {
      {{nan_value, 1, 2}, row_status::not_finite},       {{1, nan_value, 2}, row_status::not_finite},
      {{1, 2, nan_value}, row_status::not_finite},       {{1, infinity, 2}, row_status::not_finite},
      {{decant::gone, decant::gone}, row_status::empty}, {{decant::gone}, row_status::empty}};
  for (const bad_row& bad : rows) {
    auto logits = bad.logits;
    const auto outcome = decoding.try_step(logits, at(none));
    CHECK(outcome.token == no_token);
    CHECK(outcome.status == bad.status);
    CHECK(without_state.try_step(logits, at(none)).status == bad.status);
    CHECK(without_state.try_step(logits, at(none)).token == no_token);
    CHECK_THROWS_AS(decoding.step(logits, at(none)), decant::decode_error);
    try {
      (void)without_state.step(logits, at(none));
      FAIL("no error");
    } catch (const decant::decode_error& error) {
      CHECK(error.status() == bad.status);
    }
    CHECK(without_state.law_of(logits, at(none)).empty());
    CHECK(decoding.sampler().count == 0);
    CHECK(std::get<0>(decoding.processor().processors()).accepted().empty());
    for (std::size_t i = 0; i < logits.size(); ++i)
      CHECK(test_bits::bits_of(logits[i]) == test_bits::bits_of(bad.logits[i]));
  }
  CHECK(decoding.step(known_logits, at(none)) == 0);
  CHECK(decoding.sampler().count == 1);
}

TEST_CASE("a row that the chain empties is empty, not token 0", "[chain][decoder]") {
  auto decoding = decant::no_repeat_ngram(1) | greedy{};
  const ids all{0, 1, 2, 3, 4, 5};
  CHECK(decoding.try_step(known_logits, at(all)).status == row_status::empty);
  CHECK(decoding.try_step(known_logits, at(all)).token == no_token);
  CHECK_THROWS_AS(decoding.step(known_logits, at(all)), decant::decode_error);
}

TEST_CASE("an empty row is misuse", "[chain][decoder]") {
  auto decoding = top_k(3) | greedy{};
  const std::vector<float> no_logits;
  CHECK_THROWS_AS(decoding.step(no_logits, at(none)), assertion_error);
}

TEST_CASE("a processor that throws leaves the row restored and the decoder usable", "[chain][decoder]") {
  std::vector<float> logits{1, 2, 3};
  auto decoding = decant::presence_penalty(-50) | thrower{} | greedy{};
  const ids history{1};
  CHECK_THROWS_AS(decoding.step(logits, at(history)), std::runtime_error);
  CHECK(logits == std::vector<float>{1, 2, 3});
  CHECK_THROWS_AS(decoding.law_of(logits, at(history)), std::runtime_error);
  CHECK(logits == std::vector<float>{1, 2, 3});
  CHECK_THROWS_AS(decoding.explain(logits, at(history), 2), std::runtime_error);
  CHECK(logits == std::vector<float>{1, 2, 3});
  candidates other;
  CHECK_NOTHROW(other.bind(logits));
  other.release();
  bool armed = true;
  auto sometimes = decant::presence_penalty(-50) | [&armed](candidates& row, const step_context&) {
    row.ban(2);
    if (armed) throw std::runtime_error("once");
  } | greedy{};
  CHECK_THROWS_AS(sometimes.step(logits, at(none)), std::runtime_error);
  armed = false;
  CHECK(sometimes.step(logits, at(none)) == 1);
  CHECK(logits == std::vector<float>{1, 2, 3});
}

TEST_CASE("a step accepts its token with its exact probabilities", "[chain][decoder]") {
  // The record's second number is about what the sampler narrows to: greedy leaves one token.
  auto by_greedy = top_k(4) | no_repeat{} | greedy{};
  CHECK(by_greedy.step(known_logits, at(none)) == 0);
  const double four = known_p[0] + known_p[1] + known_p[2] + known_p[3];
  const auto& records = std::get<1>(by_greedy.processor().processors()).records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].log_prob_before == Approx(std::log(known_p[0] / four)).margin(1e-6));
  CHECK(records[0].log_prob_after == Approx(0).margin(1e-12));
  CHECK(by_greedy.step(known_logits, at(none)) == 1);  // 0 is banned now
  CHECK(records[1].log_prob_before == Approx(std::log(known_p[1] / (four - known_p[0]))).margin(1e-6));

  auto by_draw = temperature(0.5) | no_repeat{} | multinomial{};
  const double sharp[] = {0.829213426, 0.112221834, 0.041284106, 0.015187574, 0.002055415, 0.000037646};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    auto fresh = by_draw;
    const token_id token = fresh.step(known_logits, at(none, seed));
    const auto& record = std::get<1>(fresh.processor().processors()).records().back();
    CHECK(record.log_prob_before == Approx(std::log(sharp[token])).margin(1e-5));
    CHECK(record.log_prob_after == Approx(record.log_prob_before).margin(1e-9));
  }
}

TEST_CASE("log-probabilities in records are right at low temperatures too", "[chain][decoder]") {
  for (const double t : {1e-2, 1e-4, 1e-6, 1e-9, 1e-12, 1e-38, 1e-200}) {
    CAPTURE(t);
    auto decoding = temperature(t) | counting_argmax{};
    const std::vector<float> logits{19.7F, 3.1F, 20.3F, -5};
    CHECK(decoding.step(logits, at(none)) == 2);
    CHECK(decoding.sampler().last.log_prob_before == Approx(0).margin(1e-5));
    CHECK(decoding.sampler().last.log_prob_after == Approx(0).margin(1e-5));
    const std::vector<float> even{-17.3F, -17.3F, -40};
    auto halves = temperature(t) | counting_argmax{};
    CHECK(halves.step(even, at(none)) == 0);
    CHECK(halves.sampler().last.log_prob_before == Approx(std::log(0.5)).margin(1e-5));
  }
}

TEST_CASE("log-probabilities in records are right for large logits too", "[chain][decoder]") {
  for (const float level : {1e3F, 1e6F, 1e9F, -1e9F, 3e38F}) {
    CAPTURE(level);
    auto decoding = top_k(0) | counting_argmax{};
    const std::vector<float> even{level, level, level, level};
    CHECK(decoding.step(even, at(none)) == 0);
    CHECK(decoding.sampler().last.log_prob_before == Approx(std::log(0.25)).margin(1e-6));
  }
}

TEST_CASE("log-probability before is before the sampler, also if the sampler changes the logits", "[chain][decoder]") {
  struct sharpening : counting_argmax {
    token_id operator()(candidates& row, const step_context&) const {
      row.affine(2);
      return row.argmax();
    }
  };
  auto decoding = top_k(0) | sharpening{};
  CHECK(decoding.step(known_logits, at(none)) == 0);
  CHECK(decoding.sampler().last.log_prob_before == Approx(std::log(known_p[0])).margin(1e-6));
  CHECK(decoding.sampler().last.log_prob_after == Approx(std::log(0.829213426)).margin(1e-6));
}

TEST_CASE("accept then rollback is the identity, also for tokens that were not drawn", "[chain][decoder]") {
  auto decoding = no_repeat{} | greedy{};
  const token_id fresh = decoding.step(known_logits, at(none));
  CHECK(fresh == 0);
  CHECK(decoding.law_of(known_logits, at(none)).probability(1) == 1);
  decoding.accept(3);
  decoding.accept(1);
  decoding.accept(1);
  decoding.rollback(3);
  CHECK(decoding.law_of(known_logits, at(none)).probability(1) == 1);
  decoding.rollback(1);
  CHECK(decoding.law_of(known_logits, at(none)).probability(0) == 1);
  decoding.accept(0);
  decoding.accept(1);
  decoding.reset();
  CHECK(decoding.law_of(known_logits, at(none)).probability(0) == 1);
}

TEST_CASE("copying a decoder forks it", "[chain][decoder]") {
  auto decoding = no_repeat{} | greedy{};
  CHECK(decoding.step(known_logits, at(none)) == 0);
  auto fork = decoding;
  CHECK(fork.step(known_logits, at(none)) == 1);
  CHECK(fork.step(known_logits, at(none)) == 0);
  CHECK(decoding.step(known_logits, at(none)) == 1);
  decoding = fork;
  CHECK(decoding.step(known_logits, at(none)) == 1);
}

TEST_CASE("asking for laws and explanations never changes what is drawn (llama.cpp PR5564)", "[chain][decoder]") {
  test_bits::splitmix next(91);
  auto quiet =
      no_repeat{} | decant::repetition_penalty(1.2) | top_k(40) | top_p(0.9) | temperature(0.8) | multinomial{};
  auto asked = quiet;
  ids history{0};
  for (std::uint64_t step = 0; step < 60; ++step) {
    std::vector<float> logits(100);
    for (float& z : logits) z = static_cast<float>(next.between(-5, 5));
    const auto context = decant::context_after(history, 1, decant::draw_stream(7));
    (void)asked.law_of(logits, context);
    (void)asked.explain(logits, context, static_cast<token_id>(step));
    const token_id token = quiet.step(logits, context);
    CHECK(asked.step(logits, context) == token);
    (void)asked.law_of(logits, context);
    history.push_back(token);
  }
}

TEST_CASE("asking for a law accepts nothing and keeps the row", "[chain][decoder]") {
  auto decoding = no_repeat{} | greedy{};
  std::vector<float> logits{1, 2};
  for (int i = 0; i < 5; ++i) CHECK(decoding.law_of(logits, at(none)).probability(1) == 1);
  CHECK(logits == std::vector<float>{1, 2});
}

TEST_CASE("one request's penalties do not touch another's row (TGI#1810)", "[chain][decoder]") {
  std::vector<float> batch{1, 2, 3, 1, 2, 3};
  const ids history{2, 2, 2};
  auto penalised = decant::frequency_penalty(5) | greedy{};
  auto plain = top_k(0) | greedy{};
  CHECK(penalised.step(std::span(batch).first(3), at(history)) == 1);
  CHECK(plain.step(std::span(batch).last(3), at(history)) == 2);
  CHECK(batch == std::vector<float>{1, 2, 3, 1, 2, 3});
}

TEST_CASE("the same seed draws the same tokens alone and between other requests (vllm#51226)", "[chain][decoder]") {
  auto decoding = temperature(1.5) | multinomial{};
  auto shared = decoding;
  test_bits::splitmix next(92);
  for (std::size_t step = 0; step < 50; ++step) {
    const ids history(step, 0);
    const auto mine = decant::context_after(history, 0, decant::draw_stream(42, 3));
    const token_id alone = decoding.step(known_logits, mine);
    for (int other = 0; other < 7; ++other)
      (void)shared.step(known_logits, decant::context_after(history, 0, decant::draw_stream(next(), next())));
    CHECK(shared.step(known_logits, mine) == alone);
  }
}

TEST_CASE("an erased sampler without a law steps as it does bare", "[chain][decoder]") {
  const auto second = [](candidates& row, const step_context&) -> token_id {
    return row.status() == row_status::ok ? row.descending(2).back().id : no_token;
  };
  auto bare = top_k(3) | second;
  auto erased = top_k(3) | decant::any_sampler(second);
  CHECK(bare.step(known_logits, at(none)) == 1);
  CHECK(erased.step(known_logits, at(none)) == 1);
  CHECK(bare.explain(known_logits, at(none), 5).step == "top_k(3)");
  CHECK(bare.explain(known_logits, at(none), 1).survives);
  CHECK_NOTHROW(erased.explain(known_logits, at(none), 1));
  CHECK(erased.explain(known_logits, at(none), 5).step == "top_k(3)");
}

TEST_CASE("in steady state a decoder allocates nothing", "[chain][decoder]") {
  std::vector<float> logits(9000);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i * 37 % 101) / 16;
  const std::vector<token_id> history{3, 4, 3, 5, 3, 4};
  const auto allocations_in_steady_state = [&](auto decoding) {
    decant::law law;
    std::size_t before = 0;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      if (seed == 20) before = decant::testing::allocations();
      const auto context = decant::context_after(history, 2, decant::draw_stream(seed));
      if (decoding.step(logits, context) < 0) return std::size_t{1000};
      if (decoding.step(std::as_const(logits), context) < 0) return std::size_t{1000};
      decoding.law_of(logits, context, law);
    }
    return decant::testing::allocations() - before;
  };
  const std::size_t start = decant::testing::allocations();
  ::operator delete(::operator new(1));
  REQUIRE(decant::testing::allocations() > start);
  const auto penalties =
      decant::chain(decant::repetition_penalty(1.1), decant::frequency_penalty(0.1), decant::no_repeat_ngram(3));
  CHECK(allocations_in_steady_state(penalties | top_k(40) | top_p(0.9) | temperature(0.7) | multinomial{}) == 0);
  CHECK(allocations_in_steady_state(temperature(0.7) | multinomial{}) == 0);
  CHECK(allocations_in_steady_state(top_p(0.97) | multinomial{}) == 0);
  CHECK(allocations_in_steady_state(decant::decode_with(decant::gumbel{})) == 0);
  CHECK(allocations_in_steady_state(decant::dynamic_chain{penalties, top_p(0.9)} |
                                    decant::any_sampler(decant::greedy{})) == 0);
}

TEST_CASE("a token chosen elsewhere is recorded and reported as one of the decoder's own", "[chain][decoder]") {
  const std::vector<float> logits{2, 1, 0.5F, 0, -1, -3};
  const std::vector<token_id> history{3, 4};
  auto own = temperature(0.7) | decant::mirostat(1.5, 0.5);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto told = own;
    const auto context = decant::context_after(history, 2, decant::draw_stream(seed));
    decant::token_log_probs expected, report;
    const decant::log_prob_options options{.top = 2, .mode = decant::log_prob_mode::processed_log_probs};
    const token_id token = own.try_step(logits, context, options, expected).token;
    told.report_on(logits, context, token, options, report);
    CHECK(report == expected);
    const decant::step_record record = told.record_of(logits, context, token);
    told.accept(token, record);
    CHECK(told.sampler().mu() == own.sampler().mu());
  }
}

}  // namespace decoder_test
