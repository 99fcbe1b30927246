// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include <decant/speculative/draft.hpp>
#include <decant/speculative/residual.hpp>
#include <decant/speculative/verdict.hpp>

namespace decant {

namespace detail {

/// Tries the children of a node one after another against what is left of the target's law. The one accepted, or
/// no_node with the law of the next token left in `out`.
template <class Law, class Decide>
std::int32_t reject_in_turn(const basic_draft<Law>& drafted, std::int32_t node, const Law& target, Decide& decide,
                            basic_verdict<Law>& out) {
  using number = number_of<Law>;
  const proposal mode = drafted.mode();
  const Law* p = &target;
  const Law* q = &drafted.children_law(node);
  Law& own = out.workspace(0);
  for (std::int32_t child = drafted.first_child(node); child != no_node; child = drafted.next_sibling(child)) {
    const token_id token = drafted.token(child);
    if (mode == proposal::deterministic) {
      make_certain(own, token);
      q = &own;
    }
    const number drawn_with = probability_of(*q, token);
    DECANT_ASSERT(drawn_with > number(0), "a drafted token that its law does not hold");
    if (decide.chance(probability_of(*p, token), drawn_with, child)) return child;
    // Also where the token had been rejected before and cannot come: an independent draw that failed says something
    // about p - q all the same.
    if (residual(*p, number(1), *q, out.rest) > number(0)) p = &out.rest;
    if (mode == proposal::without_replacement && drafted.next_sibling(child) != no_node) {
      if (q != &own) own = *q;
      remove_token(own, token);
      q = &own;
    }
  }
  out.next = p;
  return no_node;
}

}  // namespace detail

/// Recursive rejection: at each node the children are tried in turn, each against what the rejected ones left of the
/// target's law; the first accepted is walked into.
///
/// Effect: child x is accepted with probability min(1, p(x) / q(x)); a rejection replaces p by the positive part of
/// p - q, renormalised, and, where children were drawn without replacement, q by q without x. A deterministic child has
/// q = 1: accepted with p(x), else p goes on without it. Lossless in every mode. One child a node makes it token
/// verification. Looks at target(node) only as far as it accepts.
/// One residual a rejection, O(log size) an acceptance. No parameters, no off value; a drafted token that its law does
/// not hold is misuse.
/// Reference: Miao et al., "SpecInfer: accelerating large language model serving with tree-based speculative inference
/// and verification", ASPLOS 2024, arXiv 2305.09781; without replacement: Jeon, Gagrani, Goel, Park, Lee, Lott,
/// "Recursive speculative decoding", 2024, arXiv 2402.14160.
struct recursive_rejection {
  template <class Law, class Target, class Decide>
  void operator()(const basic_draft<Law>& drafted, Target&& target, Decide&& decide, basic_verdict<Law>& out) const {
    detail::walk_down(drafted, target, out, [&](std::int32_t node, const Law& p) {
      return detail::reject_in_turn(drafted, node, p, decide, out);
    });
  }
};

}  // namespace decant
