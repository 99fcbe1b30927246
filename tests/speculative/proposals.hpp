// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include <decant/core/context.hpp>
#include <decant/core/draws.hpp>
#include <decant/speculative/draft.hpp>

namespace drafter_tests {

using decant::token_id;
using ids = std::vector<token_id>;

/// A request about a text, all of it prompt. The text must outlive it.
inline decant::draft_request request_after(const ids& text, std::size_t max_depth, std::size_t max_nodes = 64) {
  decant::draft_request request;
  request.context = decant::context_after(text, text.size(), decant::draw_stream(1).child(2));
  request.draws = decant::draw_stream(1).child(3).at(text.size());
  request.max_depth = max_depth;
  request.max_nodes = max_nodes;
  return request;
}

template <class D>
decant::draft proposed(D& drafter, const decant::draft_request& request) {
  decant::draft out;
  drafter.propose(request, out);
  return out;
}

inline ids tokens_of(const decant::draft& drafted) { return {drafted.tokens().begin(), drafted.tokens().end()}; }

/// What a drafter proposes as a chain.
template <class D>
ids chain_after(D& drafter, const ids& text, std::size_t max_depth = 32) {
  return tokens_of(proposed(drafter, request_after(text, max_depth)));
}

}  // namespace drafter_tests
