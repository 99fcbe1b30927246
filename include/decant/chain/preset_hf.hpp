// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <decant/chain/preset.hpp>
#include <decant/chain/sampling_params.hpp>
#include <decant/chain/steps.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
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
#include <decant/processors/ties.hpp>
#include <decant/processors/token_list.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>

namespace decant::presets {

/// How Hugging Face transformers reads sampling parameters, in its modes without beams.
///
/// Order: sequence_bias, encoder_repetition_penalty, repetition_penalty, no_repeat_ngram_size,
/// encoder_no_repeat_ngram_size, bad_words, min_length, min_tokens, forced_bos_token_id, forced_eos,
/// remove_invalid_values, the decay of the length, suppress_tokens, begin_suppress_tokens, the user's processors; and
/// if do_sample: temperature (first), top_h, top_k, top_p, min_p, typical_p, epsilon_cutoff, eta_cutoff,
/// renormalize_logits.
/// Defaults: do_sample false, top_k 50; all else off. Off: top_k = 0, epsilon_cutoff and eta_cutoff at 0 or 1.
/// Readings: ties at a border stay (top_k, typical_p, the cutoffs; top_p keeps lower ids), top_h measures the first 100
/// tokens, sequences need one token of context more than they should, forcing and remove_invalid_values bring tokens
/// back. min_keep is min_tokens_to_keep.
/// Errors: as preset; and a parameter of sampling without do_sample, which transformers only warns of: set do_sample.
struct hf_rules {
  static constexpr std::string_view name = "hf";

  [[nodiscard]] bool knows(std::string_view parameter) const {
    static constexpr auto known = std::to_array<std::string_view>({"do_sample",
                                                                   "min_keep",
                                                                   "repetition_penalty",
                                                                   "prompt_ignore_length",
                                                                   "encoder_repetition_penalty",
                                                                   "no_repeat_ngram_size",
                                                                   "encoder_no_repeat_ngram_size",
                                                                   "sequence_bias",
                                                                   "bad_words",
                                                                   "suppress_tokens",
                                                                   "begin_suppress_tokens",
                                                                   "eos_token_ids",
                                                                   "min_tokens",
                                                                   "min_length",
                                                                   "max_length",
                                                                   "forced_eos",
                                                                   "forced_bos_token_id",
                                                                   "exponential_decay_start",
                                                                   "exponential_decay_factor",
                                                                   "remove_invalid_values",
                                                                   "renormalize_logits"});
    return std::ranges::find(known, parameter) != known.end() || samples(parameter);
  }

  [[nodiscard]] std::optional<parameter_fault> validate(const sampling_params& p) const {
    if (!p.do_sample) {
      for (const given_parameter& given : given_parameters(p)) {
        if (!given.idle && samples(given.name)) {
          return parameter_fault{name, given.name, given.value, "needs do_sample = true"};
        }
      }
    }
    const auto unit = [](double x) { return x >= 0 && x <= 1; };
    const auto positive = [](double x) { return x > 0; };
    const auto count = [](double n) { return n >= 0; };
    constexpr std::string_view unit_rule = "must lie in [0, 1]", count_rule = "must be >= 0";
    return detail::first_broken(name,
                                {{"temperature", p.temperature, positive, "must be > 0; do_sample = false is greedy"},
                                 {"top_k", p.top_k, count, count_rule},
                                 {"top_p", p.top_p, unit, unit_rule},
                                 {"typical_p", p.typical_p, positive, "must be > 0"},
                                 {"top_h", p.top_h, [](double h) { return h > 0 && h <= 1; }, "must lie in (0, 1]"},
                                 {"no_repeat_ngram_size", p.no_repeat_ngram_size, count, count_rule},
                                 {"encoder_no_repeat_ngram_size", p.encoder_no_repeat_ngram_size, count, count_rule},
                                 {"min_keep", p.min_keep, [](double n) { return n >= 1; }, "must be >= 1"}});
  }

  [[nodiscard]] sampling_params normal(sampling_params p) const {
    p.do_sample = p.do_sample.value_or(false);
    p.top_k = p.top_k.value_or(50);
    p.min_keep = p.min_keep.value_or(1);
    if (p.epsilon_cutoff == 1) p.epsilon_cutoff = 0;
    if (p.eta_cutoff == 1) p.eta_cutoff = 0;
    return p;
  }

  [[nodiscard]] preset_plan plan(const sampling_params& given) const {
    const sampling_params p = normal(given);
    preset_plan out;
    out.add<sequence_bias>(p.sequence_bias, sequence_bias_options{.hf_prefix = true});
    out.add<encoder_repetition_penalty>(p.encoder_repetition_penalty, p.encoder_tokens);
    out.add<repetition_penalty>(p.repetition_penalty,
                                history_scope{.ignore_prompt_prefix = p.prompt_ignore_length.value_or(0)});
    out.add<no_repeat_ngram>(p.no_repeat_ngram_size);
    out.add<encoder_no_repeat_ngram>(p.encoder_no_repeat_ngram_size, p.encoder_tokens);
    out.add<bad_words>(p.bad_words, bad_words_options{.spared_end_tokens = p.eos_token_ids, .hf_prefix = true});
    out.add<min_length>(p.min_length, p.eos_token_ids);
    out.add<min_new_tokens>(p.min_tokens, p.eos_token_ids);
    out.add<forced_bos>(p.forced_bos_token_id, forced_bos_options{.begin_index = 1, .revive = true});
    if (p.forced_eos.value_or(false)) out.add<forced_eos>(p.max_length, p.eos_token_ids, forcing_options{true});
    if (p.remove_invalid_values.value_or(false)) out.add(remove_invalid_values({.revive = true}));
    if (p.exponential_decay_factor) {
      out.add(exponential_decay_length(p.exponential_decay_start.value_or(0), *p.exponential_decay_factor,
                                       p.eos_token_ids));
    }
    out.add<suppress_tokens>(p.suppress_tokens);
    add_begin_suppress(p, out);
    out.add_custom();
    if (!*p.do_sample) {
      out.end_with(greedy());
      return out;
    }
    const std::size_t keep = *p.min_keep;
    out.add<temperature>(p.temperature);
    out.add<top_h>(p.top_h, std::size_t{1}, top_h_rule::hf);
    out.add<top_k>(p.top_k, keep, ties::keep);
    out.add<top_p>(p.top_p, keep);
    out.add<min_p>(p.min_p, keep);
    out.add<typical>(p.typical_p, keep, ties::keep);
    out.add<epsilon_cutoff>(p.epsilon_cutoff, keep, ties::keep);
    out.add<eta_cutoff>(p.eta_cutoff, keep, ties::keep);
    if (p.renormalize_logits.value_or(false)) out.add(renormalise());
    return out;
  }

 private:
  /// Whether a parameter has a meaning with do_sample only.
  static bool samples(std::string_view parameter) {
    static constexpr auto known = std::to_array<std::string_view>(
        {"temperature", "top_h", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff"});
    return std::ranges::find(known, parameter) != known.end();
  }

  /// Where a forced token comes first after a prompt of one token, the output begins with the one after it.
  static void add_begin_suppress(const sampling_params& p, preset_plan& out) {
    if (!p.forced_bos_token_id || p.begin_suppress_tokens.empty()) {
      return out.add<suppress_at_begin>(p.begin_suppress_tokens);
    }
    out.add(named(detail::counted_text(suppress_at_begin::name, p.begin_suppress_tokens.size()),
                  [ban = suppress_tokens(p.begin_suppress_tokens)](candidates& row, const step_context& context) {
                    const std::size_t forced = context.prompt_size <= 1 ? 1 : 0;
                    if (context.output().size() == forced) ban(row, context);
                  }));
  }
};

/// Hugging Face's processors of these parameters: `presets::hf decoder({.do_sample = true, .top_p = 0.9});`.
using hf = preset<hf_rules>;

}  // namespace decant::presets
