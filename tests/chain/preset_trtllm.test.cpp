// SPDX-License-Identifier: MIT
#include <decant/chain/preset_trtllm.hpp>

#include <string>
#include <vector>

#include "chain/presets.hpp"
#include "support/catch.hpp"

namespace preset_trtllm_test {

using namespace presets_test;
using decant::sampling_params;
using decant::presets::trtllm;

TEST_CASE("trtllm is greedy as long as nothing about sampling is given") {
  check_same(trtllm(), by_hand({}, decant::greedy()));
  sampling_params p;
  p.presence_penalty = 1;
  CHECK(trtllm(p).describe() == "presence_penalty(1) | greedy");
  CHECK(trtllm({.temperature = 1}).describe() == "multinomial");
  CHECK(trtllm({.top_p = 0.5}).describe() == "top_p(0.5) | multinomial");
  CHECK(trtllm({.top_k = 0}).describe() == "multinomial");
  CHECK(trtllm({.min_p = 0.1}).describe() == "min_p(0.1) | multinomial");
  CHECK(trtllm({.temperature = 0, .top_p = 0.5}).describe() == "greedy");
}

TEST_CASE("trtllm has TensorRT-LLM's order, min_p before top_k and top_p") {
  sampling_params p{.temperature = 0.7, .top_k = 30, .top_p = 0.9, .min_p = 0.02};
  p.logit_bias = {{4, 1.5}};
  p.repetition_penalty = 1.2;
  p.prompt_ignore_length = 2;
  p.frequency_penalty = 0.3;
  p.presence_penalty = 0.4;
  p.min_tokens = 10;
  p.eos_token_ids = {2};
  p.no_repeat_ngram_size = 3;
  p.bad_words = {{7}};
  check_same(trtllm(p),
             by_hand({decant::logit_bias({{4, 1.5}}), decant::repetition_penalty(1.2, {.ignore_prompt_prefix = 2}),
                      decant::frequency_penalty(0.3), decant::presence_penalty(0.4), decant::min_new_tokens(10, {2}),
                      decant::no_repeat_ngram(3), decant::bad_words(p.bad_words), decant::temperature(0.7),
                      decant::min_p(0.02), decant::top_k(30), decant::top_p(0.9)}));
}

TEST_CASE("trtllm takes a min_tokens below 1 for none") {
  sampling_params p;
  p.min_tokens = -3;
  CHECK(trtllm(p).describe() == "greedy");
}

TEST_CASE("trtllm draws with seed 0 unless another is given") {
  sampling_params p;
  CHECK(trtllm(p).seed() == 0U);
  p.seed = 7;
  CHECK(trtllm(p).seed() == 7U);
}

TEST_CASE("trtllm rejects bad numbers under its own name") {
  CHECK(complaint<trtllm>({.top_k = -1}) == "trtllm: top_k = -1 must be >= 0");
  CHECK(complaint<trtllm>({.top_p = 0}) == "trtllm: top_p = 0 must lie in (0, 1]");
  CHECK(complaint<trtllm>({.min_p = 1.5}) == "trtllm: min_p = 1.5 must lie in [0, 1]");
  CHECK(complaint<trtllm>({.temperature = -1}) == "trtllm: temperature = -1 must be a finite number >= 0");
  CHECK(complaint<trtllm>({.typical_p = 0.5}) == "trtllm: typical_p = 0.5 is not a parameter that it has");
  sampling_params p;
  p.seed = -1;
  CHECK(complaint<trtllm>(p) == "trtllm: seed = -1 must be >= 0");
  p = {};
  p.no_repeat_ngram_size = -1;
  CHECK(complaint<trtllm>(p) == "trtllm: no_repeat_ngram_size = -1 must be >= 0");
}

}  // namespace preset_trtllm_test
