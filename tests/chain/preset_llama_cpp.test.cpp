// SPDX-License-Identifier: MIT
#include <decant/chain/preset_llama_cpp.hpp>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <decant/chain/compose.hpp>

#include "chain/presets.hpp"
#include "support/catch.hpp"

namespace preset_llama_cpp_test {

using namespace presets_test;
using decant::sampling_params;
using decant::presets::llama_cpp;
using decant::presets::llama_cpp_rules;

/// Everything that llama.cpp switches on by itself, off.
sampling_params nothing() { return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0}; }

llama_cpp_rules in_order(const std::string& names) { return {.order = *decant::llama_cpp_order::from_names(names)}; }

std::string bytes_of(token_id id) { return id == 3 ? "\n" : std::string(1, static_cast<char>('a' + id % 26)); }

decant::vocabulary_bytes some_bytes() {
  static std::vector<std::string> texts;
  for (token_id id = static_cast<token_id>(texts.size()); id < 10; ++id) texts.push_back(bytes_of(id));
  return {[](token_id id) -> std::string_view { return texts[static_cast<std::size_t>(id)]; }, 10};
}

TEST_CASE("llama_cpp without parameters has llama.cpp's defaults, temperature last") {
  check_same(llama_cpp(),
             by_hand({decant::top_k(40), decant::top_p(0.95), decant::min_p(0.05), decant::temperature(0.8)}));
}

TEST_CASE("llama_cpp has all stages in llama.cpp's order") {
  sampling_params p{.temperature = 0.7, .top_k = 30, .top_p = 0.9, .min_p = 0.02, .typical_p = 0.95};
  p.top_n_sigma = 2;
  p.xtc_probability = 0.5;
  p.repetition_penalty = 1.1;
  p.frequency_penalty = 0.2;
  p.presence_penalty = 0.3;
  p.dry_multiplier = 0.8;
  p.logit_bias = {{4, 1.5}};
  p.suppress_tokens = {6};
  p.eos_token_ids = {2};
  p.ignore_eos = true;
  const decant::history_scope scope{.window = 64, .prompt = true};
  check_same(llama_cpp(p),
             by_hand({decant::logit_bias({{4, 1.5}}), decant::suppress_tokens({6}), decant::suppress_tokens({2}),
                      decant::repetition_penalty(1.1, scope), decant::frequency_penalty(0.2, scope),
                      decant::presence_penalty(0.3, scope), decant::dry({.range = 64}), decant::top_n_sigma(2),
                      decant::top_k(30), decant::typical(0.95), decant::top_p(0.9), decant::min_p(0.02),
                      decant::xtc(0.5), decant::temperature(0.7)}));
  CHECK(llama_cpp(p).describe() ==
        "logit_bias(1 token) | suppress_tokens(1 token) | suppress_tokens(1 token) | "
        "repetition_penalty(1.1, window = 64) | frequency_penalty(0.2, window = 64, prompt = true) | "
        "presence_penalty(0.3, window = 64, prompt = true) | dry(0.8, 1.75, 2, range = 64) | top_n_sigma(2) | "
        "top_k(30) | typical(0.95) | top_p(0.9) | min_p(0.02) | xtc(0.5, 0.1) | temperature(0.7) | multinomial");
}

TEST_CASE("llama_cpp takes another order from its text, and then keeps other tokens") {
  sampling_params p{.temperature = 5, .min_p = 0.1};
  const llama_cpp last(p, in_order("min_p;temperature")), first(p, in_order("temperature;min_p"));
  CHECK(last.describe() == "min_p(0.1) | temperature(5) | multinomial");
  CHECK(first.describe() == "temperature(5) | min_p(0.1) | multinomial");
  // 0.1 of the maximum is 2.3 below it; after division by 5, 11.5.
  const std::vector<float> row{10, 8, 7, 0, -2};
  CHECK(left(last, row) == std::vector<token_id>{0, 1});
  CHECK(left(first, row) == std::vector<token_id>{0, 1, 2, 3});
  check_same(first, by_hand({decant::temperature(5), decant::min_p(0.1)}));
}

TEST_CASE("llama_cpp runs a stage twice where the order has it twice") {
  CHECK(llama_cpp({.temperature = 2}, in_order("temp;temp")).describe() ==
        "temperature(2) | temperature(2) | multinomial");
}

TEST_CASE("llama_cpp's off values leave nothing of a stage") {
  CHECK(llama_cpp(nothing()).describe() == "multinomial");
  for (const std::int64_t k : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{-40}}) {
    auto p = nothing();
    p.top_k = k;
    CHECK(llama_cpp(p).describe() == "multinomial");
  }
  auto p = nothing();
  p.top_n_sigma = 0;
  p.min_p = -1;
  p.typical_p = 1;
  p.xtc_probability = 0;
  p.dynamic_temperature_range = 0;
  p.dry_multiplier = 0;
  p.mirostat = 0;
  p.adaptive_target = -1;
  CHECK(llama_cpp(p).describe() == "multinomial");
  p.top_n_sigma = -1;
  p.xtc_probability = 0.5;
  p.xtc_threshold = 0.6;
  p.repetition_penalty = 1.5;
  p.penalty_last_n = 0;
  p.dry_multiplier = 1;
  p.dry_penalty_last_n = 0;
  CHECK(llama_cpp(p).describe() == "multinomial");
  p.dry_penalty_last_n = 8;
  p.dry_base = 0.5;
  CHECK(llama_cpp(p).describe() == "multinomial");
}

TEST_CASE("llama_cpp keeps one token at min_p above 1, top_p 0 and typical_p 0") {
  const std::vector<float> row{1, 2, 2, 0};
  auto p = nothing();
  p.min_p = 1.5;
  CHECK(llama_cpp(p).describe() == "min_p(1.5) | multinomial");
  CHECK(left(llama_cpp(p), row) == std::vector<token_id>{1});
  p.min_keep = 3;
  CHECK(left(llama_cpp(p), row) == std::vector<token_id>{0, 1, 2});
  p = nothing();
  p.min_p = 1;
  CHECK(left(llama_cpp(p), row) == std::vector<token_id>{1, 2});
  for (const double zero : {0.0, -0.5}) {
    p = nothing();
    p.top_p = zero;
    CHECK(left(llama_cpp(p), row) == std::vector<token_id>{1});
    p = nothing();
    p.typical_p = zero;
    CHECK(left(llama_cpp(p), row).size() == 1);
  }
}

TEST_CASE("llama_cpp is greedy at a temperature of 0 or less, at its place in the chain") {
  const std::vector<float> row{1, 3, 2};
  for (const double t : {0.0, -1.0}) {
    auto p = nothing();
    p.temperature = t;
    CHECK(llama_cpp(p).describe() == "temperature(0) | multinomial");
    CHECK(left(llama_cpp(p), row) == std::vector<token_id>{1});
    p.xtc_probability = 1;
    CHECK(left(llama_cpp(p), row) == std::vector<token_id>{2});  // XTC has removed the best one: 0.09 < 0.1 <= 0.24
  }
}

TEST_CASE("llama_cpp's dynamic temperature goes to both sides, and not below 0") {
  auto p = nothing();
  p.temperature = 0.8;
  p.dynamic_temperature_range = 0.5;
  p.dynamic_temperature_exponent = 2;
  check_same(llama_cpp(p), by_hand({decant::dynamic_temperature(0.8 - 0.5, 0.8 + 0.5, 2)}));
  p.dynamic_temperature_range = 1;
  check_same(llama_cpp(p), by_hand({decant::dynamic_temperature(0, 1.8, 2)}));
}

TEST_CASE("llama_cpp's penalties see the last 64 tokens, or all of them") {
  auto p = nothing();
  p.presence_penalty = 1;
  p.penalty_last_n = -1;
  CHECK(llama_cpp(p).describe() == "presence_penalty(1, prompt = true) | multinomial");
  p.penalty_last_n = 2;
  const std::vector<float> row(10, 0.0F);
  const decant::law law = llama_cpp(p).law_of(row, after_text());  // the last two are 5 and 1
  CHECK(law.probability(5) == law.probability(1));
  CHECK(law.probability(5) < law.probability(2));
  CHECK(law.probability(2) == law.probability(0));
}

TEST_CASE("llama_cpp's DRY breaks at the usual strings once it knows the tokens' bytes") {
  auto p = nothing();
  p.dry_multiplier = 1;
  p.bytes = some_bytes();
  CHECK(llama_cpp(p).describe() == "dry(1, 1.75, 2, range = 64, breakers = 4) | multinomial");
  p.dry_sequence_breakers = std::vector<std::string>{};
  CHECK(llama_cpp(p).describe() == "dry(1, 1.75, 2, range = 64) | multinomial");
  p.bytes = {};
  p.dry_sequence_breakers = std::vector<std::string>{"\n"};
  CHECK(complaint<llama_cpp>(p) == "llama_cpp: dry_sequence_breakers = 1 needs bytes");
}

TEST_CASE("llama_cpp's mirostat leaves only biases and the temperature before it") {
  sampling_params p{.temperature = 0.7};
  p.mirostat = 2;
  p.logit_bias = {{1, 1.0}};
  check_same(llama_cpp(p), by_hand({decant::logit_bias({{1, 1.0}}), decant::temperature(0.7)},
                                   decant::mirostat(5, 0.1, decant::mirostat_surprise::llama_cpp)));
  p.mirostat = 1;
  p.mirostat_tau = 3;
  p.mirostat_eta = 0.2;
  check_same(llama_cpp(p), by_hand({decant::logit_bias({{1, 1.0}}), decant::temperature(0.7)},
                                   decant::mirostat_v1(3, 0.2, decant::mirostat_surprise::llama_cpp)));
  p.top_k = 20;
  CHECK(complaint<llama_cpp>(p) == "llama_cpp: top_k = 20 has no effect beside mirostat");
  p.top_k = 0;
  CHECK(complaint<llama_cpp>(p).empty());
  p.mirostat = 3;
  CHECK(complaint<llama_cpp>(p) == "llama_cpp: mirostat = 3 must be 0, 1 or 2");
}

TEST_CASE("llama_cpp's adaptive_p draws in place of the plain draw, where the order has it") {
  auto p = nothing();
  p.adaptive_target = 0.4;
  CHECK(complaint<llama_cpp>(p) == "llama_cpp: adaptive_target = 0.4 has no stage in the order");
  check_same(llama_cpp(p, in_order("adaptive_p;temperature")), by_hand({}, decant::adaptive_p(0.4)));
  CHECK(llama_cpp({}, in_order("adaptive_p")).describe() == "multinomial");
}

TEST_CASE("llama_cpp says which parameter has no stage in the order") {
  CHECK(complaint<llama_cpp>({.min_p = 0.1}, in_order("top_k")) == "llama_cpp: min_p = 0.1 has no stage in the order");
  CHECK(complaint<llama_cpp>({.top_k = 5}, in_order("top_k")).empty());
  CHECK(llama_cpp({}, in_order("top_k")).describe() == "top_k(40) | multinomial");
}

TEST_CASE("llama_cpp rejects bad numbers under its own name") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(complaint<llama_cpp>({.min_p = nan}) == "llama_cpp: min_p = nan must be a number");
  sampling_params p;
  p.repetition_penalty = 0;
  CHECK(complaint<llama_cpp>(p) == "llama_cpp: repetition_penalty = 0 must be a finite number > 0");
  p = {};
  p.penalty_last_n = -2;
  CHECK(complaint<llama_cpp>(p) == "llama_cpp: penalty_last_n = -2 must be >= -1");
  p = {};
  p.dry_multiplier = -1;
  CHECK(complaint<llama_cpp>(p) == "llama_cpp: dry_multiplier = -1 must be a finite number >= 0");
  p = {};
  p.ignore_eos = true;
  CHECK(complaint<llama_cpp>(p) == "llama_cpp: ignore_eos = 1 needs eos_token_ids");
  p = {};
  p.top_h = 0.4;
  CHECK(complaint<llama_cpp>(p) == "llama_cpp: top_h = 0.4 is not a parameter that it has");
}

TEST_CASE("llama_cpp's seed of 2^32 - 1 asks for a random one") {
  sampling_params p;
  CHECK_FALSE(llama_cpp(p).seed().has_value());
  p.seed = 0xFFFFFFFF;
  CHECK_FALSE(llama_cpp(p).seed().has_value());
  p.seed = -1;
  CHECK_FALSE(llama_cpp(p).seed().has_value());
  p.seed = 42;
  CHECK(llama_cpp(p).seed() == 42U);
}

}  // namespace preset_llama_cpp_test
