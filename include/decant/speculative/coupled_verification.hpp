// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <decant/speculative/draft.hpp>

namespace decant {

/// Coupled verification: decides every token as plain decoding would, and goes on in the draft as long as it holds that
/// token.
///
/// Effect: `decide_token(node)` is the token that follows a node; where a child has it, the child is accepted and asked
/// next. Returns the first token that the draft does not hold: no_token where nothing can be drawn. What comes out is
/// token for token what decide_token gives without a draft, so that drafts of every mode are fine as long as they do
/// not depend on its random numbers; with a greedy decoder this is greedy verification. For deterministic drafts it is
/// also the best that can be done: a token is accepted with p(x), all children together with the sum of theirs.
/// O(children) a node. No parameters, no off value, no errors.
/// Reference: Leviathan, Kalman, Matias, 2023, arXiv 2211.17192 (greedy); Saxena, "Prompt lookup decoding", 2023.
template <class Law, class DecideToken>
token_id verify_coupled(const basic_draft<Law>& drafted, DecideToken&& decide_token, std::vector<std::size_t>& path) {
  path.clear();
  for (std::int32_t node = no_parent;;) {
    const token_id token = decide_token(node);
    node = drafted.child_with(node, token);
    if (node == no_node) return token;
    path.push_back(static_cast<std::size_t>(node));
  }
}

/// As a rule for the driver: the request's own stream decides, and the tokens are those of plain decoding with that
/// seed. Deterministic drafts are verified so under every rule; this asks for it where tokens were drawn too, for
/// reproducible output at the price of fewer accepted tokens.
struct coupled_verification {};

}  // namespace decant
