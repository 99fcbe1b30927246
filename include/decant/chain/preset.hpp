// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/chain/any.hpp>
#include <decant/chain/decoder.hpp>
#include <decant/chain/sampling_params.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/processors/bad_words.hpp>
#include <decant/processors/dry.hpp>
#include <decant/processors/dynamic_temperature.hpp>
#include <decant/processors/encoder_repetition_penalty.hpp>
#include <decant/processors/epsilon_cutoff.hpp>
#include <decant/processors/eta_cutoff.hpp>
#include <decant/processors/exponential_decay_length.hpp>
#include <decant/processors/frequency_penalty.hpp>
#include <decant/processors/logit_bias.hpp>
#include <decant/processors/min_p.hpp>
#include <decant/processors/presence_penalty.hpp>
#include <decant/processors/quadratic.hpp>
#include <decant/processors/repetition_penalty.hpp>
#include <decant/processors/sequence_bias.hpp>
#include <decant/processors/sequence_breakers.hpp>
#include <decant/processors/tail_free.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_a.hpp>
#include <decant/processors/top_h.hpp>
#include <decant/processors/top_n_sigma.hpp>
#include <decant/processors/top_p.hpp>
#include <decant/processors/typical.hpp>
#include <decant/processors/xtc.hpp>
#include <decant/samplers/adaptive_p.hpp>
#include <decant/samplers/mirostat.hpp>
#include <decant/samplers/mirostat_v1.hpp>
#include <decant/samplers/multinomial.hpp>

namespace decant {

/// A chain and a sampler as a preset's rules put them together. Steps at their off value are left out.
class preset_plan {
 public:
  /// A step, unless it is off.
  template <LogitsProcessor P>
  void add(P processor) {
    if (!is_off(processor)) steps_.push_back(std::move(processor));
  }

  /// P(parameter, rest...), if the parameter was given.
  template <class P, class T, class... Rest>
  void add(const std::optional<T>& parameter, const Rest&... rest) {
    if (parameter) add(P(*parameter, rest...));
  }

  /// P(list, rest...), if there is anything in the list.
  template <class P, class T, class... Rest>
  void add(const std::vector<T>& entries, const Rest&... rest) {
    if (!entries.empty()) add(P(entries, rest...));
  }

  /// Here the user's own processors run. Every plan has one such place.
  void add_custom() {
    custom_ = steps_.size();
    steps_.push_back(dynamic_chain());
  }

  void end_with(any_sampler sampler) { sampler_ = std::move(sampler); }

  [[nodiscard]] dynamic_chain& steps() { return steps_; }
  [[nodiscard]] any_sampler& sampler() { return sampler_; }
  [[nodiscard]] any_processor& custom() { return steps_[custom_]; }
  [[nodiscard]] std::size_t custom_index() const { return custom_; }

 private:
  dynamic_chain steps_;
  any_sampler sampler_ = multinomial();
  std::size_t custom_ = 0;
};

/// How a peer reads parameters: its name, which parameters it has, the ranges that it documents, what they are in
/// decant's own convention with the peer's defaults filled in (`normal`), and the plan, which is only asked for
/// parameters that have passed.
template <class R>
concept PresetRules =
    std::copyable<R> && requires(const R& rules, const sampling_params& params, std::string_view parameter) {
      { R::name } -> std::convertible_to<std::string_view>;
      { rules.knows(parameter) } -> std::same_as<bool>;
      { rules.validate(params) } -> std::same_as<std::optional<parameter_fault>>;
      { rules.normal(params) } -> std::same_as<sampling_params>;
      { rules.plan(params) } -> std::same_as<preset_plan>;
    };

namespace detail {

/// A parameter's name, its value, whether it may be so, and what it must be.
struct parameter_rule {
  template <class T, class Predicate>
  parameter_rule(std::string_view parameter, const std::optional<T>& given, Predicate holds, std::string_view text)
      : name(parameter), value(given ? static_cast<double>(*given) : 0), kept(!given || holds(value)), rule(text) {}

  std::string_view name;
  double value;
  bool kept;
  std::string_view rule;
};

template <class T>
double number(const std::optional<T>& given) {
  return given ? static_cast<double>(*given) : 0;
}

inline std::optional<parameter_fault> not_negative(std::int64_t value) {
  if (value >= 0) return {};
  return parameter_fault{{}, {}, static_cast<double>(value), "must be >= 0"};
}

inline std::optional<parameter_fault> first_broken(std::string_view peer, std::initializer_list<parameter_rule> rules) {
  for (const parameter_rule& each : rules) {
    if (!each.kept) return parameter_fault{peer, each.name, each.value, each.rule};
  }
  return {};
}

/// What decant's own policies have against parameters in their convention, under the parameters' names.
inline std::optional<parameter_fault> fault_of_policies(std::string_view peer, const sampling_params& p) {
  std::optional<parameter_fault> found;
  const auto check = [&](std::string_view parameter, const auto& given, auto validate) {
    if (found || !given) return;
    found = validate(*given);
    if (found) found->policy = peer, found->parameter = parameter;
  };
  const auto check_list = [&](std::string_view parameter, const auto& entries, auto validate) {
    check(parameter, entries.empty() ? nullptr : &entries, validate);
  };
  check("temperature", p.temperature, [](double x) { return temperature::validate(x); });
  check("dynamic_temperature_exponent", p.dynamic_temperature_exponent,
        [](double x) { return dynamic_temperature::validate(1, 1, x); });
  check("top_p", p.top_p, [](double x) { return top_p::validate(x); });
  check("min_p", p.min_p, [](double x) { return min_p::validate(x); });
  check("typical_p", p.typical_p, [](double x) { return typical::validate(x); });
  check("top_n_sigma", p.top_n_sigma, [](double x) { return top_n_sigma::validate(x); });
  check("xtc_probability", p.xtc_probability, [](double x) { return xtc::validate(x); });
  check("xtc_threshold", p.xtc_threshold, [](double x) { return xtc::validate(0, x); });
  check("epsilon_cutoff", p.epsilon_cutoff, [](double x) { return epsilon_cutoff::validate(x); });
  check("eta_cutoff", p.eta_cutoff, [](double x) { return eta_cutoff::validate(x); });
  check("top_h", p.top_h, [](double x) { return top_h::validate(x); });
  check("top_a", p.top_a, [](double x) { return top_a::validate(x); });
  check("tail_free", p.tail_free, [](double x) { return tail_free::validate(x); });
  check("smoothing_factor", p.smoothing_factor, [](double x) { return quadratic::validate(x); });
  check("smoothing_curve", p.smoothing_curve, [](double x) { return quadratic::validate(0, x); });
  check("repetition_penalty", p.repetition_penalty, [](double x) { return repetition_penalty::validate(x); });
  check("frequency_penalty", p.frequency_penalty, [](double x) { return frequency_penalty::validate(x); });
  check("presence_penalty", p.presence_penalty, [](double x) { return presence_penalty::validate(x); });
  check("encoder_repetition_penalty", p.encoder_repetition_penalty,
        [](double x) { return encoder_repetition_penalty::validate(x, {}); });
  check("dry_multiplier", p.dry_multiplier, [](double x) { return dry::validate({.multiplier = x}); });
  check("dry_base", p.dry_base, [](double x) { return dry::validate({.base = x}); });
  check("dry_allowed_length", p.dry_allowed_length, not_negative);
  check("dry_sequence_breakers", p.dry_sequence_breakers,
        [](const auto& strings) { return sequence_breakers::validate(strings, {}); });
  check_list("logit_bias", p.logit_bias, [](const auto& entries) { return logit_bias::validate(entries); });
  check_list("sequence_bias", p.sequence_bias, [](const auto& entries) { return sequence_bias::validate(entries); });
  check_list("bad_words", p.bad_words, [](const auto& entries) { return bad_words::validate(entries); });
  check("min_tokens", p.min_tokens, not_negative);
  check("min_length", p.min_length, not_negative);
  check("max_length", p.max_length, not_negative);
  check("exponential_decay_start", p.exponential_decay_start, not_negative);
  check("exponential_decay_factor", p.exponential_decay_factor,
        [](double x) { return exponential_decay_length::validate(0, x, {}); });
  check("mirostat", p.mirostat, [](int version) -> std::optional<parameter_fault> {
    if (version >= 0 && version <= 2) return {};
    return parameter_fault{{}, {}, static_cast<double>(version), "must be 0, 1 or 2"};
  });
  check("mirostat_tau", p.mirostat_tau, [](double x) { return mirostat::validate(x); });
  check("mirostat_eta", p.mirostat_eta, [](double x) { return mirostat::validate(5, x); });
  check("adaptive_target", p.adaptive_target, [](double x) { return adaptive_p::validate(x); });
  // What needs another parameter to mean anything.
  const auto needs = [&](std::string_view parameter, bool wanted, double value, bool there, std::string_view rule) {
    if (!found && wanted && !there) found = parameter_fault{peer, parameter, value, rule};
  };
  constexpr std::string_view ends = "needs eos_token_ids", source = "needs encoder_tokens";
  const auto at_work = [](const auto& given) { return given.value_or(0) > 0; };
  needs("min_tokens", at_work(p.min_tokens), number(p.min_tokens), !p.eos_token_ids.empty(), ends);
  needs("min_length", at_work(p.min_length), number(p.min_length), !p.eos_token_ids.empty(), ends);
  needs("ignore_eos", p.ignore_eos.value_or(false), 1, !p.eos_token_ids.empty(), ends);
  needs("forced_eos", p.forced_eos.value_or(false), 1, !p.eos_token_ids.empty(), ends);
  needs("forced_eos", p.forced_eos.value_or(false), 1, p.max_length.has_value(), "needs max_length");
  needs("exponential_decay_factor", p.exponential_decay_factor.value_or(1) != 1, number(p.exponential_decay_factor),
        !p.eos_token_ids.empty(), ends);
  needs("encoder_repetition_penalty", p.encoder_repetition_penalty.value_or(1) != 1,
        number(p.encoder_repetition_penalty), !p.encoder_tokens.empty(), source);
  needs("encoder_no_repeat_ngram_size", at_work(p.encoder_no_repeat_ngram_size), number(p.encoder_no_repeat_ngram_size),
        !p.encoder_tokens.empty(), source);
  needs("dry_sequence_breakers", p.dry_sequence_breakers && !p.dry_sequence_breakers->empty(),
        p.dry_sequence_breakers ? static_cast<double>(p.dry_sequence_breakers->size()) : 0, p.bytes.size() > 0,
        "needs bytes");
  return found;
}

}  // namespace detail

/// A decoder made of parameters by the rules of a peer: its order, its off values, its defaults. `describe()` prints
/// the chain that is in force.
///
/// A parameter that the peer does not have is an error unless it asks for nothing: none is silently ignored. Parameters
/// can be changed between any two tokens; what mirostat, adaptive_p and the user's processors have learnt stays.
/// `custom` runs where the peer lets its users' processors run. Building allocates; steps do not.
/// Errors: parameter_error names the preset and the parameter; `preset::make` gives the same as an error value.
template <class Rules>
class preset : public decoder<dynamic_chain, any_sampler>, public made_or_error<preset<Rules>> {
  static_assert(PresetRules<Rules>, "decant: a preset needs rules: name, knows, validate, normal and plan");

 public:
  explicit preset(sampling_params params = {}, Rules rules = {}, dynamic_chain custom = {})
      : preset(planned(params, rules), std::move(params), std::move(rules)) {
    processor()[custom_] = any_processor(std::move(custom));
  }

  /// The names of all parameters that are given, ask for something, and that the peer does not have.
  static std::vector<std::string_view> unknown(const sampling_params& params, const Rules& rules = {}) {
    std::vector<std::string_view> names;
    for (const given_parameter& given : given_parameters(params)) {
      if (!given.idle && !rules.knows(given.name)) names.push_back(given.name);
    }
    return names;
  }

  static std::optional<parameter_fault> validate(const sampling_params& params, const Rules& rules = {},
                                                 const dynamic_chain& = {}) {
    for (const given_parameter& given : given_parameters(params)) {
      if (math::is_nan(given.value)) return parameter_fault{Rules::name, given.name, given.value, "must be a number"};
      if (!given.idle && !rules.knows(given.name)) {
        return parameter_fault{Rules::name, given.name, given.value, "is not a parameter that it has"};
      }
    }
    if (const auto fault = rules.validate(params)) return fault;
    return detail::fault_of_policies(Rules::name, rules.normal(params));
  }

  /// Other parameters from the next token on; state stays. If they are bad, nothing has changed. A later rollback may
  /// not reach back beyond the assignment that switched mirostat or adaptive_p on.
  void assign(sampling_params params) {
    detail::raise_if(validate(params, rules_));
    take(std::move(params));
  }

  /// The same with the error as a value.
  [[nodiscard]] std::optional<error> try_assign(sampling_params params) {
    if (const auto fault = validate(params, rules_)) {
      return error{error_code::bad_parameter, std::string(fault->policy) + "." + std::string(fault->parameter),
                   fault->text()};
    }
    take(std::move(params));
    return {};
  }

  /// The parameters as they were given.
  [[nodiscard]] const sampling_params& params() const { return params_; }
  [[nodiscard]] const Rules& rules() const { return rules_; }

  /// The seed to draw with; absent where the peer would make one up.
  [[nodiscard]] std::optional<std::uint64_t> seed() const {
    const auto seed = rules_.normal(params_).seed;
    if (!seed || *seed < 0) return {};
    return static_cast<std::uint64_t>(*seed);
  }

 private:
  preset(preset_plan&& plan, sampling_params&& params, Rules&& rules)
      : decoder(std::move(plan.steps()), std::move(plan.sampler())),
        params_(std::move(params)),
        rules_(std::move(rules)),
        custom_(plan.custom_index()) {}

  static preset_plan planned(const sampling_params& params, const Rules& rules) {
    detail::raise_if(validate(params, rules));
    return rules.plan(params);
  }

  void take(sampling_params&& params) {
    preset_plan plan = rules_.plan(params);
    plan.custom() = std::move(processor()[custom_]);
    go_on<mirostat>(plan.sampler());
    go_on<mirostat_v1>(plan.sampler());
    go_on<adaptive_p>(plan.sampler());
    custom_ = plan.custom_index();
    processor() = std::move(plan.steps());
    sampler() = std::move(plan.sampler());
    params_ = std::move(params);
  }

  template <class S>
  void go_on(any_sampler& with) {
    S* const next = with.as<S>();
    const S* const before = sampler().template as<S>();
    if (next != nullptr && before != nullptr) next->continue_from(*before);
  }

  sampling_params params_;
  Rules rules_;
  std::size_t custom_;
};

}  // namespace decant
