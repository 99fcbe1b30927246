// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <decant/core/token.hpp>
#include <decant/math/scalar.hpp>
#include <decant/processors/logit_bias.hpp>
#include <decant/processors/sequence_bias.hpp>
#include <decant/processors/vocabulary_bytes.hpp>

namespace decant {

/// What a request may ask of sampling, under the names of the field; a preset turns it into a decoder.
///
/// What is absent has the default of the preset that reads it. What a value means, and which ones are off, is the
/// preset's matter too: `top_k = -1` is a number here. Nothing is checked here.
struct sampling_params {
  std::optional<bool> do_sample{};  ///< false: take the most probable token

  std::optional<double> temperature{};
  std::optional<double> dynamic_temperature_range{};     ///< how far the temperature moves with the entropy, both ways
  std::optional<double> dynamic_temperature_exponent{};  ///< how it follows; 1 if absent

  std::optional<std::int64_t> top_k{};
  std::optional<double> top_p{};
  std::optional<double> min_p{};
  std::optional<double> typical_p{};
  std::optional<double> top_n_sigma{};
  std::optional<double> xtc_probability{};
  std::optional<double> xtc_threshold{};  ///< 0.1 if absent
  std::optional<double> epsilon_cutoff{};
  std::optional<double> eta_cutoff{};
  std::optional<double> top_h{};
  std::optional<double> top_a{};
  std::optional<double> tail_free{};
  std::optional<double> smoothing_factor{};  ///< of quadratic sampling
  std::optional<double> smoothing_curve{};   ///< 1 if absent
  std::optional<std::size_t> min_keep{};     ///< truncations keep at least so many tokens

  std::optional<double> repetition_penalty{};
  std::optional<double> frequency_penalty{};
  std::optional<double> presence_penalty{};
  std::optional<std::int64_t> penalty_last_n{};       ///< these three see so many last tokens; 0: none, -1: all
  std::optional<std::size_t> prompt_ignore_length{};  ///< the repetition penalty does not see so many first tokens
  std::optional<double> encoder_repetition_penalty{};

  std::optional<double> dry_multiplier{};
  std::optional<double> dry_base{};
  std::optional<std::int64_t> dry_allowed_length{};
  std::optional<std::int64_t> dry_penalty_last_n{};  ///< 0: none, -1: all
  std::optional<std::vector<std::string>> dry_sequence_breakers{};
  vocabulary_bytes bytes{};  ///< what tokens stand for: needed by dry_sequence_breakers

  std::optional<std::int64_t> no_repeat_ngram_size{};
  std::optional<std::int64_t> encoder_no_repeat_ngram_size{};
  std::vector<token_id> encoder_tokens{};  ///< the source text of the two parameters that speak of an encoder

  std::vector<token_bias> logit_bias{};
  std::vector<sequence_with_bias> sequence_bias{};
  std::vector<std::vector<token_id>> bad_words{};
  std::vector<token_id> suppress_tokens{};
  std::vector<token_id> begin_suppress_tokens{};
  std::vector<token_id> allowed_token_ids{};  ///< empty: all

  std::vector<token_id> eos_token_ids{};     ///< what min_tokens and its like speak of
  std::optional<bool> ignore_eos{};          ///< bans them at every step
  std::optional<std::int64_t> min_tokens{};  ///< no end before the output has so many tokens
  std::optional<std::int64_t> min_length{};  ///< the same with the prompt counted
  std::optional<std::int64_t> max_length{};  ///< prompt and output; only for forced_eos
  std::optional<bool> forced_eos{};          ///< the last token that max_length leaves room for must be an end
  std::optional<token_id> forced_bos_token_id{};
  std::optional<std::int64_t> exponential_decay_start{};  ///< from this length of the output on,
  std::optional<double> exponential_decay_factor{};       ///< ends become more likely by this factor a token

  std::optional<bool> remove_invalid_values{};
  std::optional<bool> renormalize_logits{};

  std::optional<int> mirostat{};  ///< the version, 1 or 2; 0: off
  std::optional<double> mirostat_tau{};
  std::optional<double> mirostat_eta{};
  std::optional<double> adaptive_target{};
  std::optional<double> adaptive_decay{};

  std::optional<std::int64_t> seed{};
};

/// One parameter that was given: its name, its value (for a list, its length), and whether it asks for nothing.
struct given_parameter {
  std::string_view name;
  double value;
  bool idle;  ///< at a value that every peer takes for off, or an accessory of another parameter
};

/// All parameters that were given, in the order of the struct, but for `bytes` and `encoder_tokens`.
[[nodiscard]] inline std::vector<given_parameter> given_parameters(const sampling_params& p) {
  std::vector<given_parameter> out;
  const auto number = [&](std::string_view name, const auto& parameter, auto idle) {
    if (parameter) out.push_back({name, static_cast<double>(*parameter), idle(static_cast<double>(*parameter))});
  };
  const auto list = [&](std::string_view name, const auto& entries) {
    if (!entries.empty()) out.push_back({name, static_cast<double>(entries.size()), false});
  };
  // Written so that NaN is never idle.
  const auto at = [](double value) { return [value](double x) { return x == value; }; };
  const auto at_most = [](double limit) { return [limit](double x) { return x <= limit; }; };
  const auto from = [](double limit) { return [limit](double x) { return x >= limit; }; };
  const auto outside_unit = [](double x) { return x <= 0 || x >= 1; };
  const auto accessory = [](double x) { return !math::is_nan(x); };
  const auto never = [](double) { return false; };

  number("do_sample", p.do_sample, at(1));
  number("temperature", p.temperature, at(1));
  number("dynamic_temperature_range", p.dynamic_temperature_range, at_most(0));
  number("dynamic_temperature_exponent", p.dynamic_temperature_exponent, accessory);
  number("top_k", p.top_k, at_most(0));
  number("top_p", p.top_p, from(1));
  number("min_p", p.min_p, at_most(0));
  number("typical_p", p.typical_p, from(1));
  number("top_n_sigma", p.top_n_sigma, [](double x) { return x <= 0 || (x > 0 && !math::is_finite(x)); });
  number("xtc_probability", p.xtc_probability, at_most(0));
  number("xtc_threshold", p.xtc_threshold, accessory);
  number("epsilon_cutoff", p.epsilon_cutoff, outside_unit);
  number("eta_cutoff", p.eta_cutoff, outside_unit);
  number("top_h", p.top_h, from(1));
  number("top_a", p.top_a, at_most(0));
  number("tail_free", p.tail_free, from(1));
  number("smoothing_factor", p.smoothing_factor, at(0));
  number("smoothing_curve", p.smoothing_curve, accessory);
  number("min_keep", p.min_keep, at_most(1));
  number("repetition_penalty", p.repetition_penalty, at(1));
  number("frequency_penalty", p.frequency_penalty, at(0));
  number("presence_penalty", p.presence_penalty, at(0));
  number("penalty_last_n", p.penalty_last_n, at_most(-1));
  number("prompt_ignore_length", p.prompt_ignore_length, at(0));
  number("encoder_repetition_penalty", p.encoder_repetition_penalty, at(1));
  number("dry_multiplier", p.dry_multiplier, at(0));
  number("dry_base", p.dry_base, accessory);
  number("dry_allowed_length", p.dry_allowed_length, accessory);
  number("dry_penalty_last_n", p.dry_penalty_last_n, accessory);
  if (p.dry_sequence_breakers) {
    out.push_back({"dry_sequence_breakers", static_cast<double>(p.dry_sequence_breakers->size()), true});
  }
  number("no_repeat_ngram_size", p.no_repeat_ngram_size, at_most(0));
  number("encoder_no_repeat_ngram_size", p.encoder_no_repeat_ngram_size, at_most(0));
  list("logit_bias", p.logit_bias);
  list("sequence_bias", p.sequence_bias);
  list("bad_words", p.bad_words);
  list("suppress_tokens", p.suppress_tokens);
  list("begin_suppress_tokens", p.begin_suppress_tokens);
  list("allowed_token_ids", p.allowed_token_ids);
  if (!p.eos_token_ids.empty()) {
    out.push_back({"eos_token_ids", static_cast<double>(p.eos_token_ids.size()), true});
  }
  number("ignore_eos", p.ignore_eos, at(0));
  number("min_tokens", p.min_tokens, at_most(0));
  number("min_length", p.min_length, at_most(0));
  number("max_length", p.max_length, accessory);
  number("forced_eos", p.forced_eos, at(0));
  number("forced_bos_token_id", p.forced_bos_token_id, never);
  number("exponential_decay_start", p.exponential_decay_start, accessory);
  number("exponential_decay_factor", p.exponential_decay_factor, at(1));
  number("remove_invalid_values", p.remove_invalid_values, at(0));
  number("renormalize_logits", p.renormalize_logits, accessory);
  number("mirostat", p.mirostat, at(0));
  number("mirostat_tau", p.mirostat_tau, accessory);
  number("mirostat_eta", p.mirostat_eta, accessory);
  number("adaptive_target", p.adaptive_target, [](double x) { return x < 0; });
  number("adaptive_decay", p.adaptive_decay, accessory);
  number("seed", p.seed, accessory);
  return out;
}

}  // namespace decant
