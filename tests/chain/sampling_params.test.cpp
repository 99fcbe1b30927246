// SPDX-License-Identifier: MIT
#include <decant/chain/sampling_params.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace sampling_params_test {

using decant::given_parameter;
using decant::given_parameters;
using decant::sampling_params;

/// Every parameter, at a value that asks for something where there is one.
sampling_params everything() {
  sampling_params p;
  p.do_sample = false;
  p.temperature = p.dynamic_temperature_range = p.dynamic_temperature_exponent = 0.5;
  p.top_k = 3;
  p.top_p = p.min_p = p.typical_p = p.top_n_sigma = p.xtc_probability = p.xtc_threshold = 0.5;
  p.epsilon_cutoff = p.eta_cutoff = p.top_h = p.top_a = p.tail_free = p.smoothing_factor = p.smoothing_curve = 0.5;
  p.min_keep = 2;
  p.repetition_penalty = p.frequency_penalty = p.presence_penalty = p.encoder_repetition_penalty = 0.5;
  p.penalty_last_n = 4;
  p.prompt_ignore_length = 1;
  p.dry_multiplier = p.dry_base = 0.5;
  p.dry_allowed_length = p.dry_penalty_last_n = 2;
  p.dry_sequence_breakers = std::vector<std::string>{"\n"};
  p.no_repeat_ngram_size = p.encoder_no_repeat_ngram_size = 2;
  p.logit_bias = {{1, 2.0}};
  p.sequence_bias = {{{1}, 2.0}};
  p.bad_words = {{1}};
  p.suppress_tokens = p.begin_suppress_tokens = p.allowed_token_ids = p.eos_token_ids = {1};
  p.ignore_eos = p.forced_eos = p.remove_invalid_values = p.renormalize_logits = true;
  p.min_tokens = p.min_length = p.max_length = p.exponential_decay_start = 7;
  p.forced_bos_token_id = 0;
  p.exponential_decay_factor = 1.5;
  p.mirostat = 2;
  p.mirostat_tau = p.mirostat_eta = p.adaptive_target = p.adaptive_decay = 0.5;
  p.seed = 1;
  return p;
}

std::set<std::string> idle_names(const sampling_params& p) {
  std::set<std::string> names;
  for (const given_parameter& each : given_parameters(p)) {
    if (each.idle) names.insert(std::string(each.name));
  }
  return names;
}

TEST_CASE("parameters that are not given are not listed") { CHECK(given_parameters({}).empty()); }

TEST_CASE("every parameter is listed once") {
  std::set<std::string> names;
  for (const given_parameter& each : given_parameters(everything())) names.insert(std::string(each.name));
  CHECK(given_parameters(everything()).size() == 55);
  CHECK(names.size() == 55);
}

TEST_CASE("what asks for something by itself is not idle, what only shapes another parameter is") {
  CHECK(idle_names(everything()) ==
        std::set<std::string>{"dynamic_temperature_exponent", "xtc_threshold", "smoothing_curve", "dry_base",
                              "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers", "eos_token_ids",
                              "max_length", "exponential_decay_start", "renormalize_logits", "mirostat_tau",
                              "mirostat_eta", "adaptive_decay", "seed"});
}

TEST_CASE("parameters at their off values are idle") {
  sampling_params p;
  p.do_sample = true;
  p.temperature = p.top_p = p.typical_p = p.top_h = p.tail_free = 1.0;
  p.epsilon_cutoff = p.eta_cutoff = 1.0;
  p.repetition_penalty = p.encoder_repetition_penalty = p.exponential_decay_factor = 1.0;
  p.top_k = -1;
  p.min_p = p.xtc_probability = p.top_a = p.smoothing_factor = p.dynamic_temperature_range = 0.0;
  p.top_n_sigma = -1.0;
  p.frequency_penalty = p.presence_penalty = p.dry_multiplier = 0.0;
  p.min_keep = 1;
  p.penalty_last_n = -1;
  p.prompt_ignore_length = 0;
  p.no_repeat_ngram_size = p.encoder_no_repeat_ngram_size = p.min_tokens = p.min_length = 0;
  p.ignore_eos = p.forced_eos = p.remove_invalid_values = false;
  p.mirostat = 0;
  p.adaptive_target = -1.0;
  const auto all = given_parameters(p);
  CHECK(all.size() == 33);
  CHECK(idle_names(p).size() == 33);
  p.top_n_sigma = std::numeric_limits<double>::infinity();
  CHECK(idle_names(p).size() == 33);
}

TEST_CASE("a parameter that is not a number is never idle") {
  sampling_params p;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  p.temperature = p.dynamic_temperature_range = p.dynamic_temperature_exponent = nan;
  p.top_p = p.min_p = p.typical_p = p.top_n_sigma = p.xtc_probability = p.xtc_threshold = nan;
  p.epsilon_cutoff = p.eta_cutoff = p.top_h = p.top_a = p.tail_free = p.smoothing_factor = p.smoothing_curve = nan;
  p.repetition_penalty = p.frequency_penalty = p.presence_penalty = p.encoder_repetition_penalty = nan;
  p.dry_multiplier = p.dry_base = p.exponential_decay_factor = nan;
  p.mirostat_tau = p.mirostat_eta = p.adaptive_target = p.adaptive_decay = nan;
  CHECK(given_parameters(p).size() == 27);
  CHECK(idle_names(p).empty());
}

TEST_CASE("numbers are listed with their value and lists with their length") {
  sampling_params p;
  p.top_k = -1;
  p.bad_words = {{1, 2}, {3}};
  const auto all = given_parameters(p);
  REQUIRE(all.size() == 2);
  CHECK((all[0].name == "top_k" && all[0].value == -1 && all[0].idle));
  CHECK((all[1].name == "bad_words" && all[1].value == 2 && !all[1].idle));
}

}  // namespace sampling_params_test
