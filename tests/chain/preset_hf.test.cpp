// SPDX-License-Identifier: MIT
#include <decant/chain/preset_hf.hpp>

#include <limits>
#include <string>
#include <vector>

#include "chain/presets.hpp"
#include "support/catch.hpp"

namespace preset_hf_test {

using namespace presets_test;
using decant::sampling_params;
using decant::ties;
using decant::presets::hf;

/// Sampling without the default top_k.
sampling_params plain() { return {.do_sample = true, .top_k = 0}; }

TEST_CASE("hf is greedy unless it is told to sample, and then has top_k 50") {
  check_same(hf(), by_hand({}, decant::greedy()));
  check_same(hf({.do_sample = true}), by_hand({decant::top_k(50, 1, ties::keep)}));
  CHECK(hf(plain()).describe() == "multinomial");
}

TEST_CASE("hf truncates in transformers' order, temperature first") {
  sampling_params p{.do_sample = true, .temperature = 0.7, .top_k = 30, .top_p = 0.9, .min_p = 0.02, .typical_p = 0.95};
  p.top_h = 0.9;
  p.epsilon_cutoff = 0.003;
  p.eta_cutoff = 0.006;
  check_same(hf(p), by_hand({decant::temperature(0.7), decant::top_h(0.9, 1, decant::top_h_rule::hf),
                             decant::top_k(30, 1, ties::keep), decant::top_p(0.9), decant::min_p(0.02),
                             decant::typical(0.95, 1, ties::keep), decant::epsilon_cutoff(0.003, 1, ties::keep),
                             decant::eta_cutoff(0.006, 1, ties::keep)}));
  p.renormalize_logits = true;
  CHECK(hf(p).describe() ==
        "temperature(0.7) | top_h(0.9) | top_k(30) | top_p(0.9) | min_p(0.02) | typical(0.95) | "
        "epsilon_cutoff(0.003) | eta_cutoff(0.006) | renormalise | multinomial");
}

TEST_CASE("hf runs processors in transformers' order, with its readings") {
  sampling_params p;
  p.encoder_tokens = {4, 7};
  p.sequence_bias = {{{1, 4}, 2.0}};
  p.encoder_repetition_penalty = 1.3;
  p.repetition_penalty = 1.2;
  p.prompt_ignore_length = 2;
  p.no_repeat_ngram_size = 3;
  p.encoder_no_repeat_ngram_size = 2;
  p.bad_words = {{9}, {2}};
  p.eos_token_ids = {2};
  p.min_length = 5;
  p.min_tokens = 20;
  p.exponential_decay_start = 2;
  p.exponential_decay_factor = 1.1;
  p.suppress_tokens = {6};
  p.begin_suppress_tokens = {7, 8};
  check_same(hf(p), by_hand({decant::sequence_bias({{{1, 4}, 2.0}}, {.hf_prefix = true}),
                             decant::encoder_repetition_penalty(1.3, p.encoder_tokens),
                             decant::repetition_penalty(1.2, {.ignore_prompt_prefix = 2}), decant::no_repeat_ngram(3),
                             decant::encoder_no_repeat_ngram(2, p.encoder_tokens),
                             decant::bad_words({{9}, {2}}, {.spared_end_tokens = {2}, .hf_prefix = true}),
                             decant::min_length(5, {2}), decant::min_new_tokens(20, {2}),
                             decant::exponential_decay_length(2, 1.1, {2}), decant::suppress_tokens({6}),
                             decant::suppress_at_begin({7, 8})},
                            decant::greedy()));
}

TEST_CASE("hf's forcing and repair of values bring tokens back, and stand before the other bans") {
  sampling_params p;
  p.forced_bos_token_id = 3;
  p.forced_eos = true;
  p.max_length = 10;
  p.eos_token_ids = {2};
  p.remove_invalid_values = true;
  check_same(hf(p),
             by_hand({decant::forced_bos(3, {.begin_index = 1, .revive = true}),
                      decant::forced_eos(10, {2}, {.revive = true}), decant::remove_invalid_values({.revive = true})},
                     decant::greedy()));
}

TEST_CASE("hf forbids beginnings one token later where a forced token comes first") {
  sampling_params p = plain();
  p.forced_bos_token_id = 3;
  p.begin_suppress_tokens = {1};
  hf decoder(p);
  CHECK(decoder.describe() ==
        "forced_bos(3, begin_index = 1, revive = true) | suppress_at_begin(1 token) | multinomial");
  const std::vector<float> row(5, 1.0F);
  const std::vector<token_id> text{4, 3, 2, 0};
  const auto left_after = [&](std::size_t size, std::size_t prompt) {
    return decoder.law_of(row, decant::context_after(std::span(text).first(size), prompt, decant::draw_stream(1))).ids;
  };
  const std::vector<token_id> all{0, 1, 2, 3, 4}, without{0, 2, 3, 4};
  CHECK(left_after(1, 1) == std::vector<token_id>{3});
  CHECK(left_after(2, 1) == without);
  CHECK(left_after(3, 1) == all);
  CHECK(left_after(2, 2) == without);
  CHECK(left_after(3, 2) == all);
}

TEST_CASE("hf keeps ties at the border of top_k and typical_p") {
  const std::vector<float> row{1, 2, 2, 2, 0};
  auto p = plain();
  p.top_k = 2;
  CHECK(left(hf(p), row) == std::vector<token_id>{1, 2, 3});
  p = plain();
  p.typical_p = 0.1;
  CHECK(left(hf(p), row).size() == 3);
}

TEST_CASE("hf hands min_keep to every truncation but top_h") {
  sampling_params p = plain();
  p.min_keep = 3;
  p.top_p = 0;
  const std::vector<float> row{4, 3, 2, 1, 0};
  CHECK(left(hf(p), row).size() == 3);
  p.top_p = 1;
  p.min_p = 1;
  CHECK(left(hf(p), row).size() == 3);
  p.min_p = 0;
  p.epsilon_cutoff = 0.99;
  CHECK(left(hf(p), row).size() == 3);
  p.epsilon_cutoff = 0;
  p.top_k = 1;
  CHECK(left(hf(p), row).size() == 3);
  p.top_k = 0;
  p.top_h = 0.01;
  CHECK(left(hf(p), row).size() == 1);
}

TEST_CASE("hf's off values leave nothing") {
  auto p = plain();
  p.temperature = p.top_p = p.typical_p = p.top_h = p.epsilon_cutoff = p.eta_cutoff = 1.0;
  p.min_p = 0;
  p.repetition_penalty = 1;
  p.no_repeat_ngram_size = 0;
  p.min_tokens = p.min_length = 0;
  CHECK(hf(p).describe() == "multinomial");
  p.epsilon_cutoff = p.eta_cutoff = 0.0;
  CHECK(hf(p).describe() == "multinomial");
}

TEST_CASE("hf finds parameters of sampling without do_sample, unless greedy is asked for") {
  CHECK(complaint<hf>({.temperature = 0.5}) == "hf: temperature = 0.5 needs do_sample = true");
  CHECK(complaint<hf>({.top_k = 5}) == "hf: top_k = 5 needs do_sample = true");
  CHECK(complaint<hf>({.temperature = 1, .top_p = 1}).empty());
  CHECK(hf({.do_sample = false, .temperature = 0.5, .top_k = 5}).describe() == "greedy");
}

TEST_CASE("hf rejects what transformers rejects") {
  CHECK(complaint<hf>({.do_sample = true, .temperature = 0}) ==
        "hf: temperature = 0 must be > 0; do_sample = false is greedy");
  CHECK(complaint<hf>({.do_sample = true, .top_k = -1}) == "hf: top_k = -1 must be >= 0");
  CHECK(complaint<hf>({.do_sample = true, .top_p = 1.5}) == "hf: top_p = 1.5 must lie in [0, 1]");
  CHECK(complaint<hf>({.do_sample = true, .min_p = 1.5}) == "hf: min_p = 1.5 must lie in [0, 1]");
  CHECK(complaint<hf>({.do_sample = true, .typical_p = 0}) == "hf: typical_p = 0 must be > 0");
  sampling_params p = plain();
  p.top_h = 0;
  CHECK(complaint<hf>(p) == "hf: top_h = 0 must lie in (0, 1]");
  p = plain();
  p.eta_cutoff = 1.5;
  CHECK(complaint<hf>(p) == "hf: eta_cutoff = 1.5 must lie in [0, 1]");
  p = plain();
  p.min_keep = 0;
  CHECK(complaint<hf>(p) == "hf: min_keep = 0 must be >= 1");
  p = plain();
  p.frequency_penalty = 0.5;
  CHECK(complaint<hf>(p) == "hf: frequency_penalty = 0.5 is not a parameter that it has");
  p = plain();
  p.no_repeat_ngram_size = -1;
  CHECK(complaint<hf>(p) == "hf: no_repeat_ngram_size = -1 must be >= 0");
  CHECK(complaint<hf>({.do_sample = true, .top_p = std::numeric_limits<double>::quiet_NaN()}) ==
        "hf: top_p = nan must be a number");
}

}  // namespace preset_hf_test
