// SPDX-License-Identifier: MIT
#include <decant/chain/preset_vllm.hpp>

#include <limits>
#include <string>
#include <vector>

#include "chain/presets.hpp"
#include "support/catch.hpp"

namespace preset_vllm_test {

using namespace presets_test;
using decant::sampling_params;
using decant::presets::vllm;

TEST_CASE("vllm without parameters draws from the model") { check_same(vllm(), by_hand({})); }

TEST_CASE("vllm has vLLM's order, min_p before top_k and top_p") {
  sampling_params p{.temperature = 0.7, .top_k = 30, .top_p = 0.9, .min_p = 0.02};
  p.allowed_token_ids = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  p.bad_words = {{8, 5}, {7}};
  p.min_tokens = 10;
  p.eos_token_ids = {2, 3};
  p.logit_bias = {{4, 1.5}};
  p.repetition_penalty = 1.2;
  p.frequency_penalty = 0.3;
  p.presence_penalty = 0.4;
  check_same(vllm(p),
             by_hand({decant::allowed_tokens({0, 1, 2, 3, 4, 5, 6, 7, 8}), decant::bad_words({{8, 5}, {7}}),
                      decant::min_new_tokens(10, {2, 3}), decant::logit_bias({{4, 1.5}}),
                      decant::repetition_penalty(1.2), decant::frequency_penalty(0.3), decant::presence_penalty(0.4),
                      decant::temperature(0.7), decant::min_p(0.02), decant::top_k(30), decant::top_p(0.9)}));
}

TEST_CASE("vllm's off values leave nothing") {
  for (const std::int64_t k : {std::int64_t{-1}, std::int64_t{0}}) {
    CHECK(vllm({.temperature = 1, .top_k = k, .top_p = 1, .min_p = 0}).describe() == "multinomial");
  }
  const auto row = some_row(50, 1);
  CHECK(left(vllm({.top_k = 2'147'483'647}), row).size() == 50);
  CHECK(left(vllm({.top_k = 51}), row).size() == 50);
  CHECK(left(vllm({.top_k = 1}), row).size() == 1);
}

TEST_CASE("vllm is greedy below its least temperature, with no truncation, and never colder than 0.01") {
  for (const double t : {0.0, 1e-300, 9e-6}) {
    check_same(vllm({.temperature = t, .top_k = 5, .top_p = 0.5, .min_p = 0.5}), by_hand({}, decant::greedy()));
  }
  for (const double t : {1e-5, 0.005, 0.01})
    CHECK(vllm({.temperature = t}).describe() == "temperature(0.01) | multinomial");
  CHECK(vllm({.temperature = 0.02}).describe() == "temperature(0.02) | multinomial");
}

TEST_CASE("vllm's frequency and presence see the output alone, repetition the prompt too") {
  const std::vector<float> row(10, 1.0F);
  sampling_params p;
  p.presence_penalty = 1;
  // 8 stands in the prompt alone, 3 in the output alone.
  decant::law law = vllm(p).law_of(row, after_text());
  CHECK(law.probability(8) == law.probability(0));
  CHECK(law.probability(3) < law.probability(0));
  p = {};
  p.repetition_penalty = 2;
  law = vllm(p).law_of(row, after_text());
  CHECK(law.probability(8) < law.probability(0));
  CHECK(law.probability(8) == law.probability(3));
}

TEST_CASE("vllm bans all ends until min_tokens") {
  sampling_params p;
  p.min_tokens = 7;
  p.eos_token_ids = {1, 4};
  const std::vector<float> row(6, 1.0F);
  CHECK(vllm(p).law_of(row, after_text()).ids == std::vector<token_id>{0, 2, 3, 5});  // the output has 6 tokens
  p.min_tokens = 6;
  CHECK(vllm(p).law_of(row, after_text()).ids.size() == 6);
}

TEST_CASE("vllm has vLLM's ranges") {
  CHECK(complaint<vllm>({.temperature = -0.1}) == "vllm: temperature = -0.1 must lie in [0, 2]");
  CHECK(complaint<vllm>({.temperature = 2.5}) == "vllm: temperature = 2.5 must lie in [0, 2]");
  CHECK(complaint<vllm>({.temperature = std::numeric_limits<double>::infinity()}) ==
        "vllm: temperature = inf must lie in [0, 2]");
  CHECK(complaint<vllm>({.top_k = -2}) == "vllm: top_k = -2 must be >= -1");
  CHECK(complaint<vllm>({.top_p = 0}) == "vllm: top_p = 0 must lie in (0, 1]");
  CHECK(complaint<vllm>({.min_p = 1.5}) == "vllm: min_p = 1.5 must lie in [0, 1]");
  sampling_params p;
  p.presence_penalty = 2.5;
  CHECK(complaint<vllm>(p) == "vllm: presence_penalty = 2.5 must lie in [-2, 2]");
  p = {};
  p.frequency_penalty = -2.5;
  CHECK(complaint<vllm>(p) == "vllm: frequency_penalty = -2.5 must lie in [-2, 2]");
  p = {};
  p.repetition_penalty = 0;
  CHECK(complaint<vllm>(p) == "vllm: repetition_penalty = 0 must be a finite number > 0");
  p = {};
  p.min_tokens = -1;
  CHECK(complaint<vllm>(p) == "vllm: min_tokens = -1 must be >= 0");
  p = {};
  p.mirostat = 2;
  CHECK(complaint<vllm>(p) == "vllm: mirostat = 2 is not a parameter that it has");
}

TEST_CASE("vllm's seed of -1 asks for a random one") {
  sampling_params p;
  CHECK_FALSE(vllm(p).seed().has_value());
  p.seed = -1;
  CHECK_FALSE(vllm(p).seed().has_value());
  p.seed = 0;
  CHECK(vllm(p).seed() == 0U);
}

}  // namespace preset_vllm_test
