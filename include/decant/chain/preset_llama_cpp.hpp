// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/chain/llama_cpp_order.hpp>
#include <decant/chain/preset.hpp>
#include <decant/chain/sampling_params.hpp>
#include <decant/chain/steps.hpp>
#include <decant/processors/dry.hpp>
#include <decant/processors/history.hpp>
#include <decant/processors/suppress_tokens.hpp>
#include <decant/processors/top_k.hpp>

namespace decant::presets {

/// How llama.cpp reads sampling parameters.
///
/// Order: the user's processors; logit_bias, suppress_tokens, ignore_eos; then the stages of `order`, by default
/// temperature last. mirostat leaves only the first group and the temperature.
/// Defaults: temperature 0.8, top_k 40, top_p 0.95, min_p 0.05, penalty_last_n 64, dry_base 1.75, dry_allowed_length 2,
/// dry_penalty_last_n 64, the usual breakers if bytes are given, xtc_threshold 0.1, mirostat_tau 5, mirostat_eta 0.1,
/// adaptive_decay 0.9; all else off.
/// Off: top_k <= 0, top_p >= 1, min_p <= 0, typical_p >= 1, top_n_sigma <= 0, dynamic_temperature_range <= 0,
/// penalty_last_n = 0, dry_penalty_last_n = 0, dry_base < 1, adaptive_target < 0. Readings: temperature <= 0 is greedy
/// at its place in the chain; min_p > 1, top_p <= 0, typical_p <= 0 keep one token; penalty_last_n = -1 sees all; the
/// penalties see the prompt too. Ties go to the lower id.
/// Errors: as preset; and where a parameter is at work whose stage is not in the order, or which mirostat replaces.
struct llama_cpp_rules {
  static constexpr std::string_view name = "llama_cpp";

  llama_cpp_order order{};

  [[nodiscard]] bool knows(std::string_view parameter) const {
    static constexpr auto known = std::to_array<std::string_view>({"temperature",
                                                                   "dynamic_temperature_range",
                                                                   "dynamic_temperature_exponent",
                                                                   "top_k",
                                                                   "top_p",
                                                                   "min_p",
                                                                   "typical_p",
                                                                   "top_n_sigma",
                                                                   "xtc_probability",
                                                                   "xtc_threshold",
                                                                   "min_keep",
                                                                   "repetition_penalty",
                                                                   "frequency_penalty",
                                                                   "presence_penalty",
                                                                   "penalty_last_n",
                                                                   "dry_multiplier",
                                                                   "dry_base",
                                                                   "dry_allowed_length",
                                                                   "dry_penalty_last_n",
                                                                   "dry_sequence_breakers",
                                                                   "logit_bias",
                                                                   "suppress_tokens",
                                                                   "eos_token_ids",
                                                                   "ignore_eos",
                                                                   "mirostat",
                                                                   "mirostat_tau",
                                                                   "mirostat_eta",
                                                                   "adaptive_target",
                                                                   "adaptive_decay",
                                                                   "seed"});
    return std::ranges::find(known, parameter) != known.end();
  }

  [[nodiscard]] std::optional<parameter_fault> validate(const sampling_params& p) const {
    const auto window = [](double n) { return n >= -1; };
    constexpr std::string_view window_rule = "must be >= -1";
    if (auto fault = detail::first_broken(name, {{"penalty_last_n", p.penalty_last_n, window, window_rule},
                                                 {"dry_penalty_last_n", p.dry_penalty_last_n, window, window_rule}})) {
      return fault;
    }
    const bool steered = p.mirostat.value_or(0) != 0;
    for (const given_parameter& given : given_parameters(p)) {
      const auto stage = stage_of(given.name);
      if (given.idle || !stage) continue;
      if (steered && given.name != "temperature") {
        return parameter_fault{name, given.name, given.value, "has no effect beside mirostat"};
      }
      if (!steered && !order.contains(*stage)) {
        return parameter_fault{name, given.name, given.value, "has no stage in the order"};
      }
    }
    return {};
  }

  [[nodiscard]] sampling_params normal(sampling_params p) const {
    p.temperature = std::max(0.0, p.temperature.value_or(0.8));
    drop_unless(p.dynamic_temperature_range, p.dynamic_temperature_range.value_or(0) > 0);
    p.top_k = p.top_k.value_or(40);
    p.top_p = std::max(0.0, p.top_p.value_or(0.95));
    p.min_p = std::max(0.0, p.min_p.value_or(0.05));
    drop_unless(p.min_p, *p.min_p <= 1);  // see plan
    if (p.typical_p) p.typical_p = std::max(0.0, *p.typical_p);
    drop_unless(p.top_n_sigma, p.top_n_sigma.value_or(0) > 0);
    if (p.xtc_probability) p.xtc_probability = std::max(0.0, *p.xtc_probability);
    p.xtc_threshold = p.xtc_threshold.value_or(0.1);
    p.min_keep = std::max<std::size_t>(p.min_keep.value_or(0), 1);
    p.penalty_last_n = p.penalty_last_n.value_or(64);
    p.dry_penalty_last_n = p.dry_penalty_last_n.value_or(64);
    p.dry_base = p.dry_base.value_or(1.75);
    if (*p.dry_base < 1 || *p.dry_penalty_last_n == 0) {
      p.dry_base.reset();
      p.dry_multiplier.reset();
    }
    p.dry_allowed_length = p.dry_allowed_length.value_or(2);
    if (!p.dry_sequence_breakers && p.bytes.size() > 0) p.dry_sequence_breakers = sequence_breakers::usual();
    p.mirostat_tau = p.mirostat_tau.value_or(5);
    p.mirostat_eta = p.mirostat_eta.value_or(0.1);
    p.adaptive_decay = p.adaptive_decay.value_or(0.9);
    drop_unless(p.seed, p.seed.value_or(-1) != 0xFFFFFFFF);
    return p;
  }

  [[nodiscard]] preset_plan plan(const sampling_params& given) const {
    const sampling_params p = normal(given);
    preset_plan out;
    out.add_custom();
    out.add<logit_bias>(p.logit_bias);
    out.add<suppress_tokens>(p.suppress_tokens);
    if (p.ignore_eos.value_or(false)) out.add<suppress_tokens>(p.eos_token_ids);
    if (p.mirostat.value_or(0) != 0) {
      out.add<temperature>(p.temperature);
      constexpr auto observed = mirostat_surprise::llama_cpp;
      if (*p.mirostat == 1) {
        out.end_with(mirostat_v1(*p.mirostat_tau, *p.mirostat_eta, observed));
      } else {
        out.end_with(mirostat(*p.mirostat_tau, *p.mirostat_eta, observed));
      }
      return out;
    }
    for (const llama_cpp_stage stage : order.stages()) add_stage(stage, given, p, out);
    if (order.contains(llama_cpp_stage::adaptive_p) && p.adaptive_target.value_or(-1) >= 0) {
      out.end_with(adaptive_p(*p.adaptive_target, *p.adaptive_decay));
    }
    return out;
  }

 private:
  template <class T>
  static void drop_unless(std::optional<T>& parameter, bool wanted) {
    if (!wanted) parameter.reset();
  }

  /// The stage that a parameter switches on.
  static std::optional<llama_cpp_stage> stage_of(std::string_view parameter) {
    using stage = llama_cpp_stage;
    static constexpr std::array<std::pair<std::string_view, stage>, 13> places{
        {{"temperature", stage::temperature},
         {"dynamic_temperature_range", stage::temperature},
         {"top_k", stage::top_k},
         {"top_p", stage::top_p},
         {"min_p", stage::min_p},
         {"typical_p", stage::typ_p},
         {"top_n_sigma", stage::top_n_sigma},
         {"xtc_probability", stage::xtc},
         {"repetition_penalty", stage::penalties},
         {"frequency_penalty", stage::penalties},
         {"presence_penalty", stage::penalties},
         {"dry_multiplier", stage::dry},
         {"adaptive_target", stage::adaptive_p}}};
    const auto found = std::ranges::find(places, parameter, &std::pair<std::string_view, stage>::first);
    if (found == places.end()) return {};
    return found->second;
  }

  static std::size_t window(std::int64_t last_n) { return last_n < 0 ? 0 : static_cast<std::size_t>(last_n); }

  static void add_temperature(const sampling_params& p, preset_plan& out) {
    if (!p.dynamic_temperature_range) return out.add<temperature>(p.temperature);
    const double low = std::max(0.0, *p.temperature - *p.dynamic_temperature_range);
    const double high = *p.temperature + *p.dynamic_temperature_range;
    out.add(dynamic_temperature(low, high, p.dynamic_temperature_exponent.value_or(1)));
  }

  static void add_stage(llama_cpp_stage stage, const sampling_params& given, const sampling_params& p,
                        preset_plan& out) {
    const std::size_t keep = *p.min_keep;
    switch (stage) {
      case llama_cpp_stage::penalties: {
        if (*p.penalty_last_n == 0) break;
        const history_scope scope{.window = window(*p.penalty_last_n), .prompt = true};
        out.add<repetition_penalty>(p.repetition_penalty, scope);
        out.add<frequency_penalty>(p.frequency_penalty, scope);
        out.add<presence_penalty>(p.presence_penalty, scope);
        break;
      }
      case llama_cpp_stage::dry: {
        if (p.dry_multiplier.value_or(0) == 0) break;  // or the breakers would be built for nothing
        const dry_options options{.multiplier = *p.dry_multiplier,
                                  .base = *p.dry_base,
                                  .allowed_length = static_cast<std::size_t>(*p.dry_allowed_length),
                                  .range = window(*p.dry_penalty_last_n)};
        out.add(dry(options, p.dry_sequence_breakers ? sequence_breakers(*p.dry_sequence_breakers, p.bytes)
                                                     : sequence_breakers()));
        break;
      }
      case llama_cpp_stage::top_n_sigma: out.add<top_n_sigma>(p.top_n_sigma); break;
      case llama_cpp_stage::top_k: out.add<top_k>(p.top_k); break;
      case llama_cpp_stage::typ_p: out.add<typical>(p.typical_p, keep); break;
      case llama_cpp_stage::top_p: out.add<top_p>(p.top_p, keep); break;
      case llama_cpp_stage::min_p:
        if (p.min_p) {
          out.add<min_p>(p.min_p, keep);
        } else {  // above 1 no token passes, so that min_keep decides alone
          out.add(named(detail::call_text("min_p", {*given.min_p}), top_k(static_cast<std::int64_t>(keep))));
        }
        break;
      case llama_cpp_stage::xtc:
        if (p.xtc_probability) out.add(xtc(*p.xtc_probability, *p.xtc_threshold, {}, keep));
        break;
      case llama_cpp_stage::temperature: add_temperature(p, out); break;
      case llama_cpp_stage::adaptive_p: break;  // it draws, so it ends the chain wherever it stands
    }
  }
};

/// llama.cpp's chain of these parameters: `presets::llama_cpp decoder({.temperature = 0.7});` or with an order,
/// `presets::llama_cpp decoder({.min_p = 0.1}, {.order = *order});`.
using llama_cpp = preset<llama_cpp_rules>;

}  // namespace decant::presets
