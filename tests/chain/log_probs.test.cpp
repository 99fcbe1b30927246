// SPDX-License-Identifier: MIT
#include <decant/chain/log_probs.hpp>

#include "chain/policies.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <decant/chain.hpp>
#include <decant/core/law.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

namespace log_probs_test {

using namespace chain_policies;
using namespace decant;

const std::vector<token_id> none;
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

step_context at(std::uint64_t seed) { return context_after(none, 0, draw_stream(seed)); }

/// Natural logarithms of softmax, in double.
std::vector<double> log_softmax(const std::vector<double>& logits) {
  double sum = 0;
  for (const double z : logits) sum += std::exp(z);
  std::vector<double> out;
  for (const double z : logits) out.push_back(z - std::log(sum));
  return out;
}

template <class D, class Row>
token_log_probs reported(D decoding, Row& row, const log_prob_options& options, std::uint64_t seed = 1) {
  token_log_probs report;
  REQUIRE(decoding.try_step(row, at(seed), options, report).status == row_status::ok);
  return report;
}

const std::vector<float> row{1, 3, 2, 0};
const std::vector<double> raw = log_softmax({1, 3, 2, 0});

TEST_CASE("raw log-probabilities are those of the model's row, whatever the processors do", "[chain][log_probs]") {
  const auto decoding = temperature(0.5) | top_k(2) | greedy{};
  const token_log_probs report = reported(decoding, row, {.top = 3});
  CHECK(report.chosen.id == 1);
  CHECK(report.chosen.rank == 1);
  CHECK(report.chosen.value == Approx(raw[1]).epsilon(1e-9));
  REQUIRE(report.top.size() == 3);
  CHECK(report.top[0] == report.chosen);
  CHECK(report.top[1].id == 2);
  CHECK(report.top[2].id == 0);
  CHECK(report.top[2].value == Approx(raw[0]).epsilon(1e-9));
  CHECK(report.top[2].rank == 3);
}

TEST_CASE("raw logits are the numbers of the row", "[chain][log_probs]") {
  const token_log_probs report =
      reported(temperature(0.5) | greedy{}, row, {.top = 2, .mode = log_prob_mode::raw_logits});
  CHECK(report.chosen == ranked_token{1, 3, 1});
  CHECK(report.top == std::vector<ranked_token>{{1, 3, 1}, {2, 2, 2}});
}

TEST_CASE("processed numbers are those that the processors left", "[chain][log_probs]") {
  const auto decoding = temperature(0.5) | top_k(2) | greedy{};
  const double sum = std::exp(0.0) + std::exp(-2.0);
  const token_log_probs log_probs = reported(decoding, row, {.top = 2, .mode = log_prob_mode::processed_log_probs});
  CHECK(log_probs.top[0].value == Approx(-std::log(sum)).epsilon(1e-9));
  CHECK(log_probs.top[1].value == Approx(-2 - std::log(sum)).epsilon(1e-9));
  const token_log_probs logits = reported(decoding, row, {.top = 2, .mode = log_prob_mode::processed_logits});
  CHECK(logits.top == std::vector<ranked_token>{{1, 6, 1}, {2, 4, 2}});
}

TEST_CASE("temperature 0 processed is 0 and -inf (ollama#16196)", "[chain][log_probs]") {
  const token_log_probs report =
      reported(temperature(0) | multinomial{}, row, {.top = 3, .mode = log_prob_mode::processed_log_probs});
  CHECK(report.top == std::vector<ranked_token>{{1, 0, 1}, {0, minus_infinity, 2}, {2, minus_infinity, 3}});
}

TEST_CASE("more asked for than is left: removed tokens follow with -inf, by id (llama.cpp#7197)",
          "[chain][log_probs]") {
  for (const log_prob_mode mode : {log_prob_mode::processed_log_probs, log_prob_mode::processed_logits}) {
    const token_log_probs report = reported(top_k(1) | greedy{}, row, {.top = 100, .mode = mode});
    REQUIRE(report.top.size() == 4);
    CHECK(report.top[0].id == 1);
    CHECK(report.top[1] == ranked_token{0, minus_infinity, 2});
    CHECK(report.top[2] == ranked_token{2, minus_infinity, 3});
    CHECK(report.top[3] == ranked_token{3, minus_infinity, 4});
  }
}

TEST_CASE("top 0 gives the chosen token and no other (vLLM PR #30059)", "[chain][log_probs]") {
  const token_log_probs report = reported(chain() | greedy{}, row, {});
  CHECK(report.top.empty());
  CHECK(report.chosen.value == Approx(raw[1]).epsilon(1e-9));
}

TEST_CASE("the chosen token is there and ranked, in the top or not", "[chain][log_probs]") {
  const auto forced = named("force 3", [](candidates& c, const step_context&) { c.allow(std::vector<token_id>{3}); });
  const token_log_probs report = reported(forced | greedy{}, row, {.top = 2});
  CHECK(report.chosen.id == 3);
  CHECK(report.chosen.rank == 4);
  CHECK(report.chosen.value == Approx(raw[3]).epsilon(1e-9));
  CHECK(report.top[0].id == 1);
  CHECK(report.top[1].id == 2);
}

TEST_CASE("a token that the raw row does not have is last and has -inf", "[chain][log_probs]") {
  const std::vector<float> some_gone{gone, 1, gone, 2};
  const token_log_probs report = reported(forced_bos(2, {.begin_index = 0, .revive = true}) | greedy{}, some_gone, {});
  CHECK(report.chosen == ranked_token{2, minus_infinity, 4});
}

TEST_CASE("equal tokens are ranked by id", "[chain][log_probs]") {
  const std::vector<float> tied{1, 2, 2, 1};
  const token_log_probs report = reported(chain() | greedy{}, tied, {.top = 4, .mode = log_prob_mode::raw_logits});
  CHECK(report.top == std::vector<ranked_token>{{1, 2, 1}, {2, 2, 2}, {0, 1, 3}, {3, 1, 4}});
}

TEST_CASE("asking for log-probabilities never changes what is drawn, nor the state (llama.cpp PR5564)",
          "[chain][log_probs]") {
  std::vector<float> mutable_row;
  for (int i = 0; i < 300; ++i) {
    mutable_row.push_back(static_cast<float>(draw_stream(5).gumbel(purpose::user, static_cast<token_id>(i))));
  }
  const std::vector<float> before = mutable_row;
  const auto check = [&](const auto& decoding) {
    for (const log_prob_mode mode : {log_prob_mode::raw_log_probs, log_prob_mode::processed_log_probs,
                                     log_prob_mode::raw_logits, log_prob_mode::processed_logits}) {
      for (const std::size_t top : {std::size_t{0}, std::size_t{10}, std::size_t{1000}}) {
        auto plain = decoding, asked = decoding;
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
          token_log_probs report;
          const token_id expected = plain.step(mutable_row, at(seed));
          CHECK(asked.try_step(mutable_row, at(seed), {top, mode}, report).token == expected);
          CHECK(report.chosen.id == expected);
          CHECK(mutable_row == before);
        }
      }
    }
  };
  check(min_p(0.1) | frequency_penalty(0.5) | temperature(0.7) | multinomial{});
  check(top_k(5) | greedy{});
  check(temperature(1.5) | mirostat(3));
  check(no_repeat{} | gumbel{});
}

TEST_CASE("the report of a law's token is the law's logarithm", "[chain][log_probs]") {
  auto decoding = top_p(0.9) | temperature(0.7) | multinomial{};
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const law law = decoding.law_of(row, at(seed));
    const token_log_probs report = reported(decoding, row, {.mode = log_prob_mode::processed_log_probs}, seed);
    CHECK(report.chosen.value == Approx(law.log_probability(report.chosen.id)).margin(1e-6));
  }
}

TEST_CASE("bad rows: no token, no report; a raw row that is mended reports NaN", "[chain][log_probs]") {
  const float nan_value = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> broken{1, nan_value, 0};
  token_log_probs report{{1, 2, 3}, {{1, 2, 3}}};
  auto plain = top_k(2) | greedy{};
  CHECK(plain.try_step(broken, at(1), {.top = 2}, report).status == row_status::not_finite);
  CHECK(report == token_log_probs{});
  const token_log_probs mended = reported(suppress_tokens({1}) | greedy{}, broken, {.top = 2});
  CHECK(mended.chosen.id == 0);
  CHECK(mended.chosen.rank == 0);
  CHECK(std::isnan(mended.chosen.value));
  CHECK(mended.top.empty());
  const token_log_probs processed =
      reported(suppress_tokens({1}) | greedy{}, broken, {.top = 2, .mode = log_prob_mode::processed_logits});
  CHECK(processed.top == std::vector<ranked_token>{{0, 1, 1}, {2, 0, 2}});
}

}  // namespace log_probs_test
