// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <decant/chain/preset.hpp>
#include <decant/chain/sampling_params.hpp>
#include <decant/processors/allowed_tokens.hpp>
#include <decant/processors/encoder_no_repeat_ngram.hpp>
#include <decant/processors/forced_bos.hpp>
#include <decant/processors/forced_eos.hpp>
#include <decant/processors/history.hpp>
#include <decant/processors/min_length.hpp>
#include <decant/processors/min_new_tokens.hpp>
#include <decant/processors/no_repeat_ngram.hpp>
#include <decant/processors/remove_invalid_values.hpp>
#include <decant/processors/renormalise.hpp>
#include <decant/processors/suppress_at_begin.hpp>
#include <decant/processors/suppress_tokens.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>

namespace decant::presets {

/// Every parameter as the paper that proposed it defines it, in the order in which the papers stand on each other.
///
/// Order: remove_invalid_values; repetition (encoder_repetition_penalty, repetition_penalty, frequency_penalty,
/// presence_penalty, DRY, n-grams); biases and bans (logit_bias, sequence_bias, bad_words, suppress_tokens, ignore_eos,
/// begin_suppress_tokens, allowed_token_ids); length (min_length, min_tokens, its decay, forced tokens); the user's
/// processors; temperature, which the truncations' papers take for part of the model; smoothing, top_n_sigma, top_k,
/// tail_free, top_a, typical_p, top_p, min_p, epsilon_cutoff, eta_cutoff, top_h, XTC; renormalize_logits.
/// Defaults: all off; beside what is on, xtc_threshold 0.1, dry_base 1.75, dry_allowed_length 2, mirostat_tau 3,
/// mirostat_eta 0.1, adaptive_decay 0.9. Off values are decant's: top_n_sigma = 0 keeps the maximum.
/// Readings: the repetition penalty divides negative logits too, as in CTRL, and so raises them; top_n_sigma has the
/// unbiased deviation of the authors' code; mirostat measures the row as it came; ties go to the lower id. Beside
/// mirostat or adaptive_p, truncations are allowed, but decide instead of them.
/// Errors: as preset; and mirostat beside adaptive_target.
struct paper_rules {
  static constexpr std::string_view name = "paper";

  [[nodiscard]] bool knows(std::string_view) const { return true; }

  [[nodiscard]] std::optional<parameter_fault> validate(const sampling_params& p) const {
    const auto window = [](double n) { return n >= -1; };
    constexpr std::string_view window_rule = "must be >= -1";
    const bool steered = p.mirostat.value_or(0) != 0;
    return detail::first_broken(name, {{"penalty_last_n", p.penalty_last_n, window, window_rule},
                                       {"dry_penalty_last_n", p.dry_penalty_last_n, window, window_rule},
                                       {"adaptive_target", p.adaptive_target,
                                        [steered](double x) { return !steered || x < 0; }, "excludes mirostat"}});
  }

  [[nodiscard]] sampling_params normal(sampling_params p) const {
    p.xtc_threshold = p.xtc_threshold.value_or(0.1);
    p.dry_base = p.dry_base.value_or(1.75);
    p.dry_allowed_length = p.dry_allowed_length.value_or(2);
    p.mirostat_tau = p.mirostat_tau.value_or(3);
    p.mirostat_eta = p.mirostat_eta.value_or(0.1);
    p.adaptive_decay = p.adaptive_decay.value_or(0.9);
    p.min_keep = std::max<std::size_t>(p.min_keep.value_or(1), 1);
    return p;
  }

  [[nodiscard]] preset_plan plan(const sampling_params& given) const {
    const sampling_params p = normal(given);
    preset_plan out;
    if (p.remove_invalid_values.value_or(false)) out.add(remove_invalid_values());
    add_repetition(p, out);
    out.add<logit_bias>(p.logit_bias);
    out.add<sequence_bias>(p.sequence_bias);
    out.add<bad_words>(p.bad_words);
    out.add<suppress_tokens>(p.suppress_tokens);
    if (p.ignore_eos.value_or(false)) out.add<suppress_tokens>(p.eos_token_ids);
    out.add<suppress_at_begin>(p.begin_suppress_tokens);
    out.add<allowed_tokens>(p.allowed_token_ids);
    out.add<min_length>(p.min_length, p.eos_token_ids);
    out.add<min_new_tokens>(p.min_tokens, p.eos_token_ids);
    if (p.exponential_decay_factor) {
      out.add(exponential_decay_length(p.exponential_decay_start.value_or(0), *p.exponential_decay_factor,
                                       p.eos_token_ids));
    }
    out.add<forced_bos>(p.forced_bos_token_id);
    if (p.forced_eos.value_or(false)) out.add<forced_eos>(p.max_length, p.eos_token_ids);
    out.add_custom();
    add_truncations(p, out);
    if (p.renormalize_logits.value_or(false)) out.add(renormalise());
    if (!p.do_sample.value_or(true)) {
      out.end_with(greedy());
    } else if (p.mirostat == 1) {
      out.end_with(mirostat_v1(*p.mirostat_tau, *p.mirostat_eta));
    } else if (p.mirostat == 2) {
      out.end_with(mirostat(*p.mirostat_tau, *p.mirostat_eta));
    } else if (p.adaptive_target.value_or(-1) >= 0) {
      out.end_with(adaptive_p(*p.adaptive_target, *p.adaptive_decay));
    }
    return out;
  }

 private:
  static std::size_t window(std::int64_t last_n) { return last_n < 0 ? 0 : static_cast<std::size_t>(last_n); }

  static void add_repetition(const sampling_params& p, preset_plan& out) {
    out.add<encoder_repetition_penalty>(p.encoder_repetition_penalty, p.encoder_tokens);
    const std::int64_t last_n = p.penalty_last_n.value_or(-1);
    if (last_n != 0) {
      out.add<repetition_penalty>(
          p.repetition_penalty, penalty_form::ctrl_paper,
          history_scope{.window = window(last_n), .ignore_prompt_prefix = p.prompt_ignore_length.value_or(0)});
      out.add<frequency_penalty>(p.frequency_penalty, history_scope{.window = window(last_n)});
      out.add<presence_penalty>(p.presence_penalty, history_scope{.window = window(last_n)});
    }
    const std::int64_t dry_last_n = p.dry_penalty_last_n.value_or(-1);
    if (p.dry_multiplier.value_or(0) != 0 && dry_last_n != 0) {
      const dry_options options{.multiplier = *p.dry_multiplier,
                                .base = *p.dry_base,
                                .allowed_length = static_cast<std::size_t>(*p.dry_allowed_length),
                                .range = window(dry_last_n)};
      out.add(dry(options, p.dry_sequence_breakers ? sequence_breakers(*p.dry_sequence_breakers, p.bytes)
                                                   : sequence_breakers()));
    }
    out.add<no_repeat_ngram>(p.no_repeat_ngram_size);
    out.add<encoder_no_repeat_ngram>(p.encoder_no_repeat_ngram_size, p.encoder_tokens);
  }

  static void add_truncations(const sampling_params& p, preset_plan& out) {
    const std::size_t keep = *p.min_keep;
    if (p.dynamic_temperature_range.value_or(0) > 0) {
      const double middle = p.temperature.value_or(1), range = *p.dynamic_temperature_range;
      out.add(dynamic_temperature(std::max(0.0, middle - range), middle + range,
                                  p.dynamic_temperature_exponent.value_or(1)));
    } else {
      out.add<temperature>(p.temperature);
    }
    out.add<quadratic>(p.smoothing_factor, p.smoothing_curve.value_or(1));
    out.add<top_n_sigma>(p.top_n_sigma, keep, deviation::unbiased);
    out.add<top_k>(p.top_k, keep);
    out.add<tail_free>(p.tail_free, keep);
    out.add<top_a>(p.top_a, keep);
    out.add<typical>(p.typical_p, keep);
    out.add<top_p>(p.top_p, keep);
    out.add<min_p>(p.min_p, keep);
    out.add<epsilon_cutoff>(p.epsilon_cutoff, keep);
    out.add<eta_cutoff>(p.eta_cutoff, keep);
    out.add<top_h>(p.top_h, keep);
    if (p.xtc_probability) out.add(xtc(*p.xtc_probability, *p.xtc_threshold, {}, keep));
  }
};

/// The papers' own definitions with these parameters: `presets::paper decoder({.top_n_sigma = 1, .temperature = 2});`.
using paper = preset<paper_rules>;

}  // namespace decant::presets
