// SPDX-License-Identifier: MIT
#include "golden/contrastive.hpp"

#include <cstddef>
#include <vector>

#include <decant/search/contrastive_search.hpp>

namespace conformance {

namespace {

/// One step: the candidates' scores, and which of them is taken.
answer compute_contrastive(const json& question) {
  decant::degeneration_penalty seen;
  for (const json& state : question.at("context_hidden")) seen.add(state.get<std::vector<float>>());
  std::vector<decant::contrastive_candidate> looked_at;
  for (std::size_t i = 0; i < question.at("top_k_probs").size(); ++i) {
    looked_at.push_back({.probability = question.at("top_k_probs").at(i).get<double>(),
                         .similarity = seen(question.at("next_hidden").at(i).get<std::vector<float>>())});
  }
  answer result;
  result.values["/selected"] = decant::choose_contrastive(looked_at, question.at("alpha").get<double>());
  json scores = json::array();
  for (const auto& candidate : looked_at) scores.push_back(candidate.score);
  result.values["/scores"] = std::move(scores);
  return result;
}

}  // namespace

family contrastive_family() {
  return {.name = "contrastive search",
          .fields = {"context_hidden", "next_hidden"},
          .expectations = {"scores", "selected"},
          .compute = compute_contrastive};
}

}  // namespace conformance
