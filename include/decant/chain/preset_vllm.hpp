// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <decant/chain/preset.hpp>
#include <decant/chain/sampling_params.hpp>
#include <decant/processors/allowed_tokens.hpp>
#include <decant/processors/min_new_tokens.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>

namespace decant::presets {

/// How vLLM reads sampling parameters.
///
/// Order: allowed_token_ids, bad_words, min_tokens, logit_bias, the user's processors, repetition_penalty,
/// frequency_penalty, presence_penalty; then, unless greedy: temperature, min_p, top_k, top_p.
/// Defaults: all off. Off: top_k = 0 or -1, top_p = 1, min_p = 0, seed = -1. Readings: a temperature below 10^-5 is
/// greedy, and switches min_p, top_k and top_p off; any other below 0.01 is 0.01. The repetition penalty sees prompt
/// and output, the other two the output alone. Ties go to the lower id.
/// Errors: as preset, with vLLM's own ranges: temperature in [0, 2], top_p in (0, 1], min_p in [0, 1], top_k >= -1,
/// frequency_penalty and presence_penalty in [-2, 2].
struct vllm_rules {
  static constexpr std::string_view name = "vllm";

  [[nodiscard]] bool knows(std::string_view parameter) const {
    static constexpr auto known = std::to_array<std::string_view>(
        {"temperature", "top_k", "top_p", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty",
         "logit_bias", "bad_words", "allowed_token_ids", "eos_token_ids", "min_tokens", "seed"});
    return std::ranges::find(known, parameter) != known.end();
  }

  [[nodiscard]] std::optional<parameter_fault> validate(const sampling_params& p) const {
    const auto two = [](double x) { return x >= -2 && x <= 2; };
    constexpr std::string_view two_rule = "must lie in [-2, 2]";
    return detail::first_broken(
        name, {{"temperature", p.temperature, [](double t) { return t >= 0 && t <= 2; }, "must lie in [0, 2]"},
               {"top_k", p.top_k, [](double k) { return k >= -1; }, "must be >= -1"},
               {"top_p", p.top_p, [](double x) { return x > 0 && x <= 1; }, "must lie in (0, 1]"},
               {"frequency_penalty", p.frequency_penalty, two, two_rule},
               {"presence_penalty", p.presence_penalty, two, two_rule}});
  }

  [[nodiscard]] sampling_params normal(sampling_params p) const {
    if (!p.temperature) return p;
    if (*p.temperature >= greedy_below) {
      p.temperature = std::max(*p.temperature, 0.01);
    } else {
      p.temperature = 0;
      p.top_k.reset();
      p.top_p.reset();
      p.min_p.reset();
    }
    return p;
  }

  [[nodiscard]] preset_plan plan(const sampling_params& given) const {
    const sampling_params p = normal(given);
    preset_plan out;
    out.add<allowed_tokens>(p.allowed_token_ids);
    out.add<bad_words>(p.bad_words);
    out.add<min_new_tokens>(p.min_tokens, p.eos_token_ids);
    out.add<logit_bias>(p.logit_bias);
    out.add_custom();
    out.add<repetition_penalty>(p.repetition_penalty);
    out.add<frequency_penalty>(p.frequency_penalty);
    out.add<presence_penalty>(p.presence_penalty);
    if (p.temperature == 0) {
      out.end_with(greedy());
      return out;
    }
    out.add<temperature>(p.temperature);
    out.add<min_p>(p.min_p);
    out.add<top_k>(p.top_k);
    out.add<top_p>(p.top_p);
    return out;
  }

 private:
  static constexpr double greedy_below = 1e-5;
};

/// vLLM's sampler with these parameters: `presets::vllm decoder({.temperature = 0.7, .top_k = -1});`.
using vllm = preset<vllm_rules>;

}  // namespace decant::presets
