// SPDX-License-Identifier: MIT
#include "golden/processors.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/processors.hpp>
#include <decant/search/diversity.hpp>

#include "golden/rows.hpp"

namespace conformance {

namespace {

using decant::any_processor;
using decant::ties;
using decant::token_id;
using maker = any_processor (*)(const json&);

std::size_t least_kept(const json& params) { return params.value("min_tokens_to_keep", std::size_t{1}); }

double number(const json& params, const char* name) { return params.at(name).get<double>(); }

std::int64_t whole(const json& params, const char* name) { return params.at(name).get<std::int64_t>(); }

std::vector<decant::sequence_with_bias> to_biases(const json& values) {
  std::vector<decant::sequence_with_bias> biases;
  for (const json& value : values) {
    const json& bias = value.at(1);
    biases.push_back({to_ids(value.at(0)), bias.is_null() ? static_cast<double>(decant::gone) : bias.get<double>()});
  }
  return biases;
}

/// By Hugging Face's names, each with the options that make decant read it as Hugging Face does.
const std::map<std::string, maker>& makers() {
  static const std::map<std::string, maker> all = {
      {"bad_words_ids",
       [](const json& p) -> any_processor {
         return decant::bad_words(p.at("bad_words_ids").get<std::vector<std::vector<token_id>>>(),
                                  {.spared_end_tokens = to_ids(p.at("eos_token_id")), .hf_prefix = true});
       }},
      {"begin_suppress_tokens",
       [](const json& p) -> any_processor {
         return decant::suppress_at_begin(to_ids(p.at("begin_suppress_tokens")),
                                          {.begin_index = p.at("begin_index").get<std::size_t>()});
       }},
      {"diversity_penalty",
       [](const json& p) -> any_processor {
         return [strength = number(p, "penalty"), chosen = to_ids(p.at("previous_group_tokens"))](
                    decant::candidates& row, const decant::step_context& context) {
           std::vector<decant::token_dissimilarity> listed;
           decant::hamming_dissimilarity({.group = 1, .chosen = chosen, .context = context}, listed);
           for (const auto& [token, amount] : listed) row.add(token, static_cast<float>(strength * amount));
         };
       }},
      {"encoder_no_repeat_ngram_size",
       [](const json& p) -> any_processor {
         return decant::encoder_no_repeat_ngram(whole(p, "ngram_size"), to_ids(p.at("encoder_input_ids")));
       }},
      {"encoder_repetition_penalty",
       [](const json& p) -> any_processor {
         return decant::encoder_repetition_penalty(number(p, "penalty"), to_ids(p.at("encoder_input_ids")));
       }},
      {"epsilon_cutoff",
       [](const json& p) -> any_processor {
         return decant::epsilon_cutoff(number(p, "epsilon_cutoff"), least_kept(p), ties::keep);
       }},
      {"eta_cutoff",
       [](const json& p) -> any_processor {
         return decant::eta_cutoff(number(p, "eta_cutoff"), least_kept(p), ties::keep);
       }},
      {"exponential_decay_length_penalty",
       [](const json& p) -> any_processor {
         return decant::exponential_decay_length(whole(p, "start"), number(p, "factor"), to_ids(p.at("eos_token_id")));
       }},
      {"forced_bos_token_id",
       [](const json& p) -> any_processor {
         return decant::forced_bos(p.at("bos_token_id").get<token_id>(), {.begin_index = 1, .revive = true});
       }},
      {"forced_eos_token_id",
       [](const json& p) -> any_processor {
         return decant::forced_eos(whole(p, "max_length"), to_ids(p.at("eos_token_id")), {.revive = true});
       }},
      {"min_length",
       [](const json& p) -> any_processor {
         return decant::min_length(whole(p, "min_length"), to_ids(p.at("eos_token_id")));
       }},
      {"min_new_tokens",
       [](const json& p) -> any_processor {
         return decant::min_new_tokens(whole(p, "min_new_tokens"), to_ids(p.at("eos_token_id")));
       }},
      {"min_p", [](const json& p) -> any_processor { return decant::min_p(number(p, "min_p"), least_kept(p)); }},
      {"no_repeat_ngram_size",
       [](const json& p) -> any_processor { return decant::no_repeat_ngram(whole(p, "ngram_size")); }},
      {"prefix_allowed_tokens",
       [](const json& p) -> any_processor {
         return decant::prefix_allowed_tokens(
             [allowed = to_ids(p.at("allowed"))](const decant::step_context&) { return allowed; });
       }},
      {"remove_invalid_values",
       [](const json&) -> any_processor { return decant::remove_invalid_values({.revive = true}); }},
      {"renormalize_logits", [](const json&) -> any_processor { return decant::renormalise(); }},
      {"repetition_penalty",
       [](const json& p) -> any_processor {
         const json ignored = p.value("prompt_ignore_length", json());
         return decant::repetition_penalty(
             number(p, "penalty"), {.ignore_prompt_prefix = ignored.is_null() ? 0 : ignored.get<std::size_t>()});
       }},
      {"sequence_bias",
       [](const json& p) -> any_processor {
         return decant::sequence_bias(to_biases(p.at("sequence_bias")), {.hf_prefix = true});
       }},
      {"suppress_tokens",
       [](const json& p) -> any_processor { return decant::suppress_tokens(to_ids(p.at("suppress_tokens"))); }},
      {"temperature", [](const json& p) -> any_processor { return decant::temperature(number(p, "temperature")); }},
      {"top_h",
       [](const json& p) -> any_processor {
         return decant::top_h(number(p, "top_h"), least_kept(p), decant::top_h_rule::hf);
       }},
      {"top_k",
       [](const json& p) -> any_processor { return decant::top_k(whole(p, "top_k"), least_kept(p), ties::keep); }},
      {"top_p", [](const json& p) -> any_processor { return decant::top_p(number(p, "top_p"), least_kept(p)); }},
      {"typical_p",
       [](const json& p) -> any_processor {
         return decant::typical(number(p, "typical_p"), least_kept(p), ties::keep);
       }},
  };
  return all;
}

answer compute_processor(const json& question) {
  return processed(question, make_processor(question.at("processor").get<std::string>(), question.at("params")));
}

answer compute_pipeline(const json& question) {
  decant::dynamic_chain chain;
  for (const json& step : question.at("params").at("steps")) {
    chain.push_back(make_processor(step.at(0).get<std::string>(), step.at(1)));
  }
  return processed(question, std::move(chain));
}

}  // namespace

any_processor make_processor(const std::string& name, const json& params) {
  const auto found = makers().find(name);
  if (found == makers().end()) throw std::runtime_error("no processor is called " + name);
  return found->second(params);
}

answer processed(const json& question, any_processor processor) {
  const auto logits = to_row(question.at("logits"));
  const auto tokens = to_ids(question.at("input_ids"));
  const auto prompt = question.at("params").value("prompt_length", tokens.size());
  decant::candidates row;
  row.bind(std::span<const float>(logits));
  processor(row, decant::context_after(tokens, std::min(prompt, tokens.size()), decant::draw_stream(0)));
  return {.values = {{"/expected", from_row(row)}}};
}

family processor_family() {
  family result{.name = "processors",
                .fields = {"processor", "params", "input_ids", "logits"},
                .expectations = {"expected"},
                .compute = compute_processor};
  for (const auto& [name, make] : makers()) result.processors.push_back(name);
  return result;
}

family pipeline_family() {
  return {.name = "pipeline",
          .fields = {"processor", "params", "input_ids", "logits"},
          .processors = {"pipeline"},
          .expectations = {"expected"},
          .compute = compute_pipeline};
}

}  // namespace conformance
