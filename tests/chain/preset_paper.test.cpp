// SPDX-License-Identifier: MIT
#include <decant/chain/preset_paper.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "chain/presets.hpp"
#include "support/catch.hpp"

namespace preset_paper_test {

using namespace presets_test;
using decant::sampling_params;
using decant::presets::paper;

TEST_CASE("paper without parameters draws from the model") { check_same(paper(), by_hand({})); }

TEST_CASE("paper has every truncation, temperature before them") {
  sampling_params p{.temperature = 1.5, .top_k = 40, .top_p = 0.98, .min_p = 0.001, .typical_p = 0.99};
  p.smoothing_factor = 0.1;
  p.smoothing_curve = 1.5;
  p.top_n_sigma = 3;
  p.tail_free = 0.99;
  p.top_a = 0.001;
  p.epsilon_cutoff = 1e-4;
  p.eta_cutoff = 1e-4;
  p.top_h = 0.95;
  p.xtc_probability = 0.5;
  p.xtc_threshold = 0.2;
  p.min_keep = 2;
  p.renormalize_logits = true;
  check_same(paper(p), by_hand({decant::temperature(1.5), decant::quadratic(0.1, 1.5),
                                decant::top_n_sigma(3, 2, decant::deviation::unbiased), decant::top_k(40, 2),
                                decant::tail_free(0.99, 2), decant::top_a(0.001, 2), decant::typical(0.99, 2),
                                decant::top_p(0.98, 2), decant::min_p(0.001, 2), decant::epsilon_cutoff(1e-4, 2),
                                decant::eta_cutoff(1e-4, 2), decant::top_h(0.95, 2), decant::xtc(0.5, 0.2, {}, 2),
                                decant::renormalise()}));
}

TEST_CASE("paper has every processor, in its order") {
  static const std::vector<std::string> texts{"a", "b", "c", "\n", "d", "e", "f", "g", "h", "i"};
  sampling_params p;
  p.remove_invalid_values = true;
  p.encoder_tokens = {4, 7};
  p.encoder_repetition_penalty = 1.3;
  p.repetition_penalty = 1.2;
  p.prompt_ignore_length = 1;
  p.frequency_penalty = 0.2;
  p.presence_penalty = 0.3;
  p.penalty_last_n = 6;
  p.dry_multiplier = 0.8;
  p.dry_penalty_last_n = 8;
  p.dry_sequence_breakers = std::vector<std::string>{"\n"};
  p.bytes = {[](token_id id) -> std::string_view { return texts[static_cast<std::size_t>(id)]; }, 10};
  p.no_repeat_ngram_size = 4;
  p.encoder_no_repeat_ngram_size = 3;
  p.logit_bias = {{1, 0.5}};
  p.sequence_bias = {{{1, 4}, 2.0}};
  p.bad_words = {{9}};
  p.suppress_tokens = {8};
  p.begin_suppress_tokens = {7};
  p.allowed_token_ids = {0, 1, 2, 3, 4, 5};
  p.eos_token_ids = {0};
  p.ignore_eos = true;
  p.min_length = 3;
  p.min_tokens = 2;
  p.exponential_decay_factor = 1.1;
  p.forced_bos_token_id = 3;
  p.forced_eos = true;
  p.max_length = 40;
  const decant::history_scope scope{.window = 6};
  check_same(paper(p), by_hand({decant::remove_invalid_values(),
                                decant::encoder_repetition_penalty(1.3, p.encoder_tokens),
                                decant::repetition_penalty(1.2, decant::penalty_form::ctrl_paper,
                                                           {.window = 6, .ignore_prompt_prefix = 1}),
                                decant::frequency_penalty(0.2, scope),
                                decant::presence_penalty(0.3, scope),
                                decant::dry({.range = 8}, decant::sequence_breakers({"\n"}, p.bytes)),
                                decant::no_repeat_ngram(4),
                                decant::encoder_no_repeat_ngram(3, p.encoder_tokens),
                                decant::logit_bias({{1, 0.5}}),
                                decant::sequence_bias({{{1, 4}, 2.0}}),
                                decant::bad_words(p.bad_words),
                                decant::suppress_tokens({8}),
                                decant::suppress_tokens({0}),
                                decant::suppress_at_begin({7}),
                                decant::allowed_tokens({0, 1, 2, 3, 4, 5}),
                                decant::min_length(3, {0}),
                                decant::min_new_tokens(2, {0}),
                                decant::exponential_decay_length(0, 1.1, {0}),
                                decant::forced_bos(3),
                                decant::forced_eos(40, {0})}));
}

TEST_CASE("paper's repetition penalty is that of CTRL, which raises negative logits") {
  sampling_params p;
  p.repetition_penalty = 2;
  std::vector<float> row(10, -2.0F);
  const decant::law law = paper(p).law_of(row, after_text());
  CHECK(law.probability(5) > law.probability(0));
}

TEST_CASE("paper's windows of 0 see nothing, those of -1 everything") {
  sampling_params p;
  p.presence_penalty = 1;
  p.penalty_last_n = 0;
  p.dry_multiplier = 1;
  p.dry_penalty_last_n = 0;
  CHECK(paper(p).describe() == "multinomial");
  p.penalty_last_n = p.dry_penalty_last_n = -1;
  CHECK(paper(p).describe() == "presence_penalty(1) | dry(1, 1.75, 2) | multinomial");
  p.penalty_last_n = -2;
  CHECK(complaint<paper>(p) == "paper: penalty_last_n = -2 must be >= -1");
}

TEST_CASE("paper ends with the sampler that is asked for") {
  CHECK(paper({.do_sample = false}).describe() == "greedy");
  CHECK(paper({.temperature = 0}).describe() == "temperature(0) | multinomial");
  sampling_params p;
  p.mirostat = 1;
  check_same(paper(p), by_hand({}, decant::mirostat_v1(3, 0.1)));
  p.mirostat = 2;
  p.mirostat_tau = 4;
  p.mirostat_eta = 0.2;
  check_same(paper(p), by_hand({}, decant::mirostat(4, 0.2)));
  p.adaptive_target = 0.3;
  CHECK(complaint<paper>(p) == "paper: adaptive_target = 0.3 excludes mirostat");
  p.mirostat = 0;
  p.adaptive_decay = 0.5;
  check_same(paper(p), by_hand({}, decant::adaptive_p(0.3, 0.5)));
}

TEST_CASE("paper's dynamic temperature moves around the temperature") {
  sampling_params p;
  p.dynamic_temperature_range = 0.4;
  check_same(paper(p), by_hand({decant::dynamic_temperature(1 - 0.4, 1 + 0.4)}));
  p.temperature = 0.3;
  p.dynamic_temperature_exponent = 2;
  check_same(paper(p), by_hand({decant::dynamic_temperature(0, 0.3 + 0.4, 2)}));
}

}  // namespace preset_paper_test
