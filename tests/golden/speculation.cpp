// SPDX-License-Identifier: MIT
#include "golden/speculation.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <decant/chain.hpp>
#include <decant/core/law.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/speculative/ensemble_verification.hpp>
#include <decant/speculative/speculate.hpp>
#include <decant/speculative/token_verification.hpp>

namespace conformance {

namespace {

using decant::draft;
using decant::law;
using decant::no_parent;
using decant::token_id;

law law_of(const json& probabilities) {
  law out;
  for (std::size_t id = 0; id < probabilities.size(); ++id) {
    const double p = probabilities[id].get<double>();
    if (!(p > 0)) continue;
    out.ids.push_back(static_cast<token_id>(id));
    out.weights.push_back(p);
    out.total += p;
  }
  return out;
}

std::vector<double> dense(const law& from, std::size_t size) {
  std::vector<double> out(size);
  for (std::size_t id = 0; id < size; ++id) out[id] = from.probability(static_cast<token_id>(id));
  return out;
}

/// Decides by numbers that were given, one a node.
struct given_numbers {
  std::vector<double> uniforms;
  [[nodiscard]] bool chance(double n, double d, std::int32_t node) const {
    return uniforms[static_cast<std::size_t>(node)] * d < n;
  }
};

answer compute_sampling(const json& question) {
  std::vector<law> target;
  for (const json& row : question.at("target_probs")) target.push_back(law_of(row));
  draft drafted;
  drafted.clear(decant::proposal::with_replacement);
  std::int32_t node = no_parent;
  for (std::size_t i = 0; i < question.at("draft_tokens").size(); ++i) {
    drafted.children_law(node) = law_of(question.at("draft_probs").at(i));
    node = drafted.add(question.at("draft_tokens").at(i).get<token_id>(), node);
  }
  const auto law_after = [&](std::int32_t n) -> const law& { return target[static_cast<std::size_t>(n + 1)]; };
  const given_numbers decide{question.at("uniforms").get<std::vector<double>>()};
  decant::verdict found;
  if (const json& weight = question.at("ensemble_weight"); weight.is_null()) {
    decant::token_verification{}(drafted, law_after, decide, found);
  } else {
    decant::ensemble_verification(weight.get<double>())(drafted, law_after, decide, found);
  }
  // Hugging Face counts the tokens that come out, less one: a stop token at the end of the draft has none after it.
  const bool ends = question.at("stop_hit_on_last_draft").get<bool>() && found.path.size() == drafted.size();
  if (ends) return {.values = {{"/n_accepted", found.path.size() - 1}, {"/next_token_dist", nullptr}}};
  return {.values = {{"/n_accepted", found.path.size()},
                     {"/next_token_dist", dense(*found.next, question.at("target_probs").at(0).size())}}};
}

/// Takes both ways of a chance, one a run, and knows how likely it was.
struct both_ways {
  bool accept;
  double* probability;
  [[nodiscard]] bool chance(double n, double d, std::int32_t) const {
    *probability = std::min(1.0, n / d);
    return accept;
  }
};

answer compute_marginal(const json& question) {
  const law p = law_of(question.at("p")), q = law_of(question.at("q"));
  const std::size_t size = question.at("p").size();
  std::vector<double> marginal(size);
  double accepted = 0;
  decant::verdict found;
  for (std::size_t i = 0; i < q.size(); ++i) {
    const double drawn = q.weights[i] / q.total;
    draft drafted;
    drafted.clear(decant::proposal::with_replacement);
    drafted.children_law(no_parent) = q;
    drafted.add(q.ids[i]);
    double chance = 0;
    const auto run = [&](bool accept) {
      decant::token_verification{}(
          drafted, [&](std::int32_t) -> const law& { return p; }, both_ways{accept, &chance}, found);
    };
    run(true);
    accepted += drawn * chance;
    marginal[static_cast<std::size_t>(q.ids[i])] += drawn * chance;
    run(false);
    if (!(chance < 1)) continue;
    const std::vector<double> rest = dense(*found.next, size);
    for (std::size_t id = 0; id < size; ++id) marginal[id] += drawn * (1 - chance) * rest[id];
  }
  return {.values = {{"/expected_accept_rate", accepted}, {"/marginal", marginal}}};
}

/// Proposes what it was given, once.
struct given_draft {
  std::vector<token_id> tokens;
  void propose(const decant::draft_request& request, draft& out) {
    std::int32_t node = no_parent;
    for (std::size_t i = 0; i < std::min(tokens.size(), request.max_depth); ++i) node = out.add(tokens[i], node);
    tokens.clear();
  }
};

/// "eos=7" among a case's tags.
std::vector<token_id> stop_tokens_of(const json& question) {
  std::vector<token_id> stops;
  for (const json& tag : question.value("tags", json::array())) {
    const auto text = tag.get<std::string>();
    if (text.starts_with("eos=")) stops.push_back(std::stoi(text.substr(4)));
  }
  if (question.at("stop_hit_on_last_draft").get<bool>()) {
    stops.push_back(question.at("draft_tokens").back().get<token_id>());
  }
  return stops;
}

answer compute_assisted(const json& question) {
  const auto argmax = question.at("target_argmax").get<std::vector<token_id>>();
  constexpr std::size_t vocabulary = 16;
  decant::stateless target([&](std::span<const token_id> tokens) {
    std::vector<float> row(vocabulary, 0.0F);
    row[static_cast<std::size_t>(argmax[std::min(tokens.size(), argmax.size()) - 1])] = 1;
    return row;
  });
  given_draft drafter{question.at("draft_tokens").get<std::vector<token_id>>()};
  std::size_t of_first_round = 0;
  const decant::speculation_options how{.length = decant::draft_length::fixed(drafter.tokens.size()),
                                        .on_round = [&](const decant::round_outcome& outcome) {
                                          if (of_first_round == 0) of_first_round = outcome.accepted() + 1;
                                        }};
  const std::vector<token_id> prompt{0};
  const auto out =
      decant::speculate(target, prompt, drafter, decant::decode_with(decant::greedy{}),
                        {.max_new_tokens = argmax.size(), .stop_tokens = stop_tokens_of(question), .seed = 1}, how);
  std::vector<token_id> emitted = out.tokens;
  emitted.resize(std::min(emitted.size(), of_first_round));
  return {.values = {{"/n_accepted", emitted.size() - 1}, {"/emitted", emitted}}};
}

}  // namespace

family speculative_sampling_family() {
  return {.name = "speculative sampling",
          .fields = {"target_probs", "draft_probs"},
          .expectations = {"n_accepted", "next_token_dist"},
          .compute = compute_sampling};
}

family speculative_marginal_family() {
  return {.name = "speculative marginal",
          .fields = {"p", "q"},
          .expectations = {"expected_accept_rate", "marginal"},
          .compute = compute_marginal};
}

family assisted_greedy_family() {
  return {.name = "assisted greedy",
          .fields = {"target_argmax", "draft_tokens"},
          .expectations = {"n_accepted", "emitted"},
          .compute = compute_assisted};
}

}  // namespace conformance
