// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/token.hpp>
#include <decant/search/beam_options.hpp>
#include <decant/search/beam_stream.hpp>

namespace decant {

/// Searches for the continuations of a prompt that a model finds most probable.
///
/// `beam_search(model, prompt, {.width = 5, .n_best = 3, .end_tokens = {2}, .length_penalty =
/// length_penalty::mean()})`. One search under many names: with `diversity` it is diverse beam search, with `sampling`
/// beam sampling, with a `constraint` constrained beam search. See beam for the algorithm, beam_options for what can be
/// set, beam_stream for single steps. Beams find neither the best output nor always a better one with a larger width. A
/// row that cannot be decoded ends its hypothesis and shows in the result's status. Errors: parameter_error for options
/// that break a rule.
template <BatchModel M>
[[nodiscard]] beam_result beam_search(M& model, std::span<const token_id> prompt, beam_options options = {}) {
  beam_stream<M> search(model, prompt, std::move(options));
  while (search.next()) {
  }
  return search.result();
}

/// The same for many prompts, each with its own options, in common passes. Results in the order of the requests, each
/// as it would be alone.
template <BatchModel M>
[[nodiscard]] std::vector<beam_result> beam_search(M& model, std::span<const beam_request> requests) {
  beam_stream<M> search(model, requests);
  while (search.next()) {
  }
  std::vector<beam_result> results;
  for (std::size_t i = 0; i < search.size(); ++i) results.push_back(search.result(i));
  return results;
}

}  // namespace decant
