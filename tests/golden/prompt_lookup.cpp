// SPDX-License-Identifier: MIT
#include "golden/prompt_lookup.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <decant/core/token.hpp>
#include <decant/speculative/prompt_lookup.hpp>

namespace conformance {

namespace {

answer compute_candidates(const json& question) {
  using ids = std::vector<decant::token_id>;
  const auto tokens = question.at("input_ids").get<ids>();
  decant::prompt_lookup drafter({.max_ngram = question.at("max_matching_ngram_size").get<std::size_t>(),
                                 .max_tokens = question.at("num_output_tokens").get<std::size_t>(),
                                 .before_stop = true,
                                 .banned = question.at("banned").get<ids>()});
  ids stop_tokens;
  if (const json& stop = question.at("eos_token_id"); !stop.is_null()) stop_tokens.push_back(stop.get<int>());
  // As the driver asks: no more tokens than can be accepted, where the last place is for the target's own.
  const auto places = question.at("max_length").get<std::size_t>() - tokens.size();
  decant::draft_request request;
  request.context = decant::context_after(tokens, tokens.size(), {});
  request.max_depth = request.max_nodes = places - std::min<std::size_t>(places, 1);
  request.stop_tokens = stop_tokens;
  decant::draft out;
  drafter.propose(request, out);
  return {.values = {{"/candidates", ids(out.tokens().begin(), out.tokens().end())}}};
}

}  // namespace

family prompt_lookup_family() {
  return {.name = "prompt lookup",
          .fields = {"num_output_tokens", "max_matching_ngram_size"},
          .expectations = {"candidates"},
          .compute = compute_candidates};
}

}  // namespace conformance
