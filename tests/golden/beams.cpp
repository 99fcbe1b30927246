// SPDX-License-Identifier: MIT
#include "golden/beams.hpp"

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <decant/generate/stateless.hpp>
#include <decant/processors/no_repeat_ngram.hpp>
#include <decant/search/beam_search.hpp>
#include <decant/search/required_phrases.hpp>

#include "golden/rows.hpp"

namespace conformance {

namespace {

using decant::token_id;

using row_table = std::vector<std::vector<float>>;

row_table to_table(const json& question) {
  row_table table;
  for (const json& row : question.at("table")) table.push_back(to_row(row));
  return table;
}

decant::early_stopping to_early_stopping(const json& value) {
  if (value == "never") return decant::early_stopping::exact;
  if (!value.is_boolean()) throw std::runtime_error("not a way to stop: " + value.dump());
  return value.get<bool>() ? decant::early_stopping::first_n : decant::early_stopping::heuristic;
}

decant::beam_options to_options(const json& question) {
  const auto width = question.at("num_beams").get<std::size_t>();
  decant::beam_options options{
      .width = width,
      .n_best = width,
      .max_new_tokens = question.at("max_new_tokens").get<std::size_t>(),
      .end_tokens = to_ids(question.at("eos_token_id")),
      .length_penalty = decant::length_penalty::power(question.at("length_penalty").get<double>()),
      .early_stopping = to_early_stopping(question.at("early_stopping")),
  };
  options.processors.push_back(decant::no_repeat_ngram(question.value("no_repeat_ngram_size", 0)));
  return options;
}

std::vector<token_id> with_prompt(std::vector<token_id> prompt, const decant::hypothesis& found) {
  prompt.insert(prompt.end(), found.tokens.begin(), found.tokens.end());
  return prompt;
}

decant::beam_result search(const json& question, const decant::beam_options& options) {
  decant::stateless model([table = to_table(question)](std::span<const token_id> tokens) {
    return table.at(static_cast<std::size_t>(tokens.back()));
  });
  return decant::beam_search(model, question.at("prompt").get<std::vector<token_id>>(), options);
}

answer lists_of(const json& question, const decant::beam_result& found) {
  json sequences = json::array(), scores = json::array();
  for (const decant::hypothesis& one : found.hypotheses) {
    sequences.push_back(with_prompt(question.at("prompt"), one));
    scores.push_back(one.score);
  }
  return {.values = {{"/sequences", sequences}, {"/scores", scores}}};
}

answer compute_beams(const json& question) {
  const decant::beam_result found = search(question, to_options(question));
  answer all = lists_of(question, found);
  all.values["/steps"] = found.steps;
  return all;
}

answer compute_diverse_beams(const json& question) {
  decant::beam_options options = to_options(question);
  options.diversity = {.groups = question.at("num_beam_groups").get<std::size_t>(),
                       .strength = question.at("diversity_penalty").get<double>(),
                       .counts = decant::penalty::in_score,
                       .ended_choice = question.at("pad_token_id").get<token_id>()};
  if (options.early_stopping == decant::early_stopping::heuristic) {
    options.early_stopping = decant::early_stopping::heuristic_with_ended;
  }
  const decant::beam_result found = search(question, options);
  json groups(std::vector<json>(options.diversity.groups, json::array()));
  for (const decant::hypothesis& one : found.hypotheses) {
    groups[one.group].push_back({{"sequence", with_prompt(question.at("prompt"), one)}, {"score", one.score}});
  }
  answer all = lists_of(question, found);
  all.values["/groups"] = groups;
  return all;
}

answer compute_phrases(const json& question) {
  std::vector<decant::phrase_choice> phrases;
  for (const json& phrase : question.at("phrases")) phrases.push_back({{phrase.get<std::vector<token_id>>()}});
  decant::required_phrases constraint(phrases);
  for (const token_id token : question.at("sequence").get<std::vector<token_id>>()) constraint.accept(token);
  return {.values = {{"/contains_all", constraint.finished()}}};
}

}  // namespace

family beam_family() {
  return {.name = "beam search",
          .fields = {"num_beams"},
          .expectations = {"sequences", "scores", "steps"},
          .compute = compute_beams};
}

family diverse_beam_family() {
  return {.name = "diverse beam search",
          .fields = {"num_beams", "num_beam_groups"},
          .expectations = {"sequences", "scores", "groups"},
          .compute = compute_diverse_beams};
}

family phrase_family() {
  return {.name = "phrase constraints",
          .fields = {"phrases", "sequence"},
          .expectations = {"contains_all"},
          .compute = compute_phrases};
}

}  // namespace conformance
