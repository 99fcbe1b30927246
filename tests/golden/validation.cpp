// SPDX-License-Identifier: MIT
#include "golden/validation.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <decant/chain/hf_validate.hpp>

#include "golden/rows.hpp"

namespace conformance {

namespace {

/// What an argument must be in Python. An integer for a float, or the other way round, is an error there that the type
/// of a C++ parameter makes impossible; `any_number` is converted.
enum class type : std::uint8_t { any_number, real, whole, ids, text };

/// Puts an argument in its place, if its type is the one that Python asks for.
using setter = void (*)(decant::hf::parameters&, const json&);

struct argument {
  std::string name;
  type wanted;
  setter set;
};

/// The arguments of a processor's constructor in their order; further ones, if any, say nothing about its rules.
using signature = std::vector<argument>;

#define DECANT_GOLDEN_ARGUMENT(kind, name, cpp_type)                                                        \
  argument {                                                                                                \
    #name, type::kind, [](decant::hf::parameters& given, const json& x) { given.name = x.get<cpp_type>(); } \
  }

const std::map<std::string, signature>& signatures() {
  const argument end_tokens{"eos_token_id", type::ids,
                            [](decant::hf::parameters& given, const json& x) { given.eos_token_id = to_ids(x); }};
  const argument ignored{"", type::any_number, [](decant::hf::parameters&, const json&) {}};
  const argument least_kept = DECANT_GOLDEN_ARGUMENT(whole, min_tokens_to_keep, std::int64_t);
  static const std::map<std::string, signature> all = {
      {"temperature", {DECANT_GOLDEN_ARGUMENT(real, temperature, double)}},
      {"top_k", {DECANT_GOLDEN_ARGUMENT(whole, top_k, std::int64_t), least_kept}},
      {"top_p", {DECANT_GOLDEN_ARGUMENT(any_number, top_p, double), least_kept}},
      {"min_p", {DECANT_GOLDEN_ARGUMENT(any_number, min_p, double), least_kept}},
      {"typical_p", {DECANT_GOLDEN_ARGUMENT(any_number, typical_p, double), least_kept}},
      {"epsilon_cutoff", {DECANT_GOLDEN_ARGUMENT(any_number, epsilon_cutoff, double), least_kept}},
      {"eta_cutoff", {DECANT_GOLDEN_ARGUMENT(any_number, eta_cutoff, double), least_kept}},
      {"top_h", {DECANT_GOLDEN_ARGUMENT(any_number, top_h, double)}},
      {"repetition_penalty",
       {DECANT_GOLDEN_ARGUMENT(real, repetition_penalty, double),
        DECANT_GOLDEN_ARGUMENT(whole, prompt_ignore_length, std::int64_t)}},
      {"no_repeat_ngram_size", {DECANT_GOLDEN_ARGUMENT(whole, no_repeat_ngram_size, std::int64_t)}},
      {"min_length", {DECANT_GOLDEN_ARGUMENT(whole, min_length, std::int64_t), end_tokens}},
      {"min_new_tokens",
       {DECANT_GOLDEN_ARGUMENT(whole, prompt_length_to_skip, std::int64_t),
        DECANT_GOLDEN_ARGUMENT(whole, min_new_tokens, std::int64_t), end_tokens}},
      {"forced_eos_token_id", {ignored, end_tokens}},
      {"exponential_decay_length_penalty", {ignored, end_tokens, ignored}},
      {"classifier_free_guidance", {DECANT_GOLDEN_ARGUMENT(any_number, guidance_scale, double)}},
      {"diversity_penalty",
       {DECANT_GOLDEN_ARGUMENT(real, diversity_penalty, double), DECANT_GOLDEN_ARGUMENT(whole, num_beams, std::int64_t),
        DECANT_GOLDEN_ARGUMENT(whole, num_beam_groups, std::int64_t)}},
      {"watermark_kgw",
       {ignored, ignored, DECANT_GOLDEN_ARGUMENT(any_number, greenlist_ratio, double),
        DECANT_GOLDEN_ARGUMENT(text, seeding_scheme, std::string)}},
  };
  return all;
}

#undef DECANT_GOLDEN_ARGUMENT

bool has_type(const json& value, type wanted) {
  switch (wanted) {
    case type::real: return value.is_number_float();
    case type::whole: return value.is_number_integer();
    case type::any_number: return value.is_number();
    case type::ids: return value.is_number_integer() || value.is_array();
    case type::text: return value.is_string();
  }
  return false;
}

answer compute_validation(const json& question) {
  const json& args = question.at("args");
  if (args.is_string()) return {.not_applicable = "arguments of Python's types, written in Python"};
  const auto processor = question.at("processor").get<std::string>();
  const auto found = signatures().find(processor);
  if (found == signatures().end()) throw std::runtime_error("the arguments of " + processor + " are not known");
  const signature& parameters = found->second;

  std::vector<std::pair<argument, json>> given;
  const json& by_place = args.at(0);
  given.reserve(by_place.size());
  for (std::size_t i = 0; i < by_place.size(); ++i) given.emplace_back(parameters.at(i), by_place.at(i));
  for (const auto& [name, value] : args.at(1).items()) {
    std::size_t i = 0;
    while (parameters.at(i).name != name) ++i;
    given.emplace_back(parameters.at(i), value);
  }

  decant::hf::parameters asked;
  for (const auto& [parameter, value] : given) {
    if (parameter.name.empty()) continue;
    if (!has_type(value, parameter.wanted)) {
      return {.not_applicable = parameter.name + " = " + value.dump() + " is about a type of Python's"};
    }
    parameter.set(asked, value);
  }
  return {.values = {{"/raises", decant::hf::validate(asked) ? json("ValueError") : json()}}};
}

}  // namespace

family validation_family() {
  return {.name = "parameters Hugging Face refuses",
          .fields = {"processor", "args", "raises"},
          .expectations = {"raises"},
          .compute = compute_validation};
}

}  // namespace conformance
