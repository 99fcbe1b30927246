// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <decant/chain/preset.hpp>
#include <decant/chain/sampling_params.hpp>
#include <decant/processors/history.hpp>
#include <decant/processors/min_new_tokens.hpp>
#include <decant/processors/no_repeat_ngram.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>

namespace decant::presets {

/// How TensorRT-LLM reads sampling parameters.
///
/// Order: the user's processors, logit_bias, repetition_penalty, frequency_penalty, presence_penalty, min_tokens,
/// no_repeat_ngram_size, bad_words; then, unless greedy: temperature, min_p (before the other truncations), top_k,
/// top_p.
/// Defaults: greedy if temperature, top_k, top_p and min_p are all absent; seed 0; all else off. (min_p alone makes it
/// sample: beside a default of greedy it would have no effect.) Off: top_k = 0, top_p = 1, min_p = 0. Readings:
/// temperature = 0 is greedy; the repetition penalty sees prompt and output but for prompt_ignore_length tokens, the
/// other two the output alone. Ties go to the lower id.
/// Errors: as preset, with top_k >= 0, top_p in (0, 1] and temperature >= 0.
struct trtllm_rules {
  static constexpr std::string_view name = "trtllm";

  [[nodiscard]] bool knows(std::string_view parameter) const {
    static constexpr auto known = std::to_array<std::string_view>(
        {"temperature", "top_k", "top_p", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty",
         "prompt_ignore_length", "no_repeat_ngram_size", "logit_bias", "bad_words", "eos_token_ids", "min_tokens",
         "seed"});
    return std::ranges::find(known, parameter) != known.end();
  }

  [[nodiscard]] std::optional<parameter_fault> validate(const sampling_params& p) const {
    const auto count = [](double n) { return n >= 0; };
    return detail::first_broken(name,
                                {{"top_k", p.top_k, count, "must be >= 0"},
                                 {"top_p", p.top_p, [](double x) { return x > 0 && x <= 1; }, "must lie in (0, 1]"},
                                 {"no_repeat_ngram_size", p.no_repeat_ngram_size, count, "must be >= 0"},
                                 {"seed", p.seed, count, "must be >= 0"}});
  }

  [[nodiscard]] sampling_params normal(sampling_params p) const {
    p.do_sample = (p.temperature || p.top_k || p.top_p || p.min_p) && p.temperature != 0;
    p.min_tokens = std::max<std::int64_t>(p.min_tokens.value_or(0), 0);
    p.seed = p.seed.value_or(0);
    return p;
  }

  [[nodiscard]] preset_plan plan(const sampling_params& given) const {
    const sampling_params p = normal(given);
    preset_plan out;
    out.add_custom();
    out.add<logit_bias>(p.logit_bias);
    out.add<repetition_penalty>(p.repetition_penalty,
                                history_scope{.ignore_prompt_prefix = p.prompt_ignore_length.value_or(0)});
    out.add<frequency_penalty>(p.frequency_penalty);
    out.add<presence_penalty>(p.presence_penalty);
    out.add<min_new_tokens>(p.min_tokens, p.eos_token_ids);
    out.add<no_repeat_ngram>(p.no_repeat_ngram_size);
    out.add<bad_words>(p.bad_words);
    if (!*p.do_sample) {
      out.end_with(greedy());
      return out;
    }
    out.add<temperature>(p.temperature);
    out.add<min_p>(p.min_p);
    out.add<top_k>(p.top_k);
    out.add<top_p>(p.top_p);
    return out;
  }
};

/// TensorRT-LLM's sampler with these parameters: `presets::trtllm decoder({.top_k = 8, .top_p = 0.5});`.
using trtllm = preset<trtllm_rules>;

}  // namespace decant::presets
