// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <decant/speculative/draft.hpp>
#include <decant/speculative/residual.hpp>
#include <decant/speculative/verdict.hpp>

namespace decant {

/// Block verification: judges a drafted chain as a whole, and never accepts fewer tokens on average than token by
/// token.
///
/// Effect: a_i = min(1, a_{i-1} p / q) runs along the path; the first i tokens are accepted with probability a_i for
/// the whole draft, else s / (s + 1 - a_i) with s the mass of the positive part of a_i p - q, each i with a chance of
/// its own, the largest that succeeds winning; the next token then comes from that positive part, renormalised.
/// Lossless; for one drafted token it is token verification, and no lossless rule that sees one chain accepts more.
/// Reads the first path of a tree, and a deterministic draft as one that was certain. O(log size) a drafted token, one
/// pass over p for each that is tried (from the end; none where a_i = 1), and one residual. No parameters, no off
/// value; a drafted token that its law does not hold is misuse. Reference: Sun, Mendlovic, Leviathan, Aharoni, Ro,
/// Beirami, Suresh, "Block verification accelerates speculative decoding", ICLR 2025, arXiv 2403.10444.
struct block_verification {
  template <class Law, class Target, class Decide>
  void operator()(const basic_draft<Law>& drafted, Target&& target, Decide&& decide, basic_verdict<Law>& out) const {
    using number = number_of<Law>;
    out.clear();
    std::vector<number>& ratio = out.numbers;  // a_0 = 1, a_1 ...
    ratio.assign(1, number(1));
    std::int32_t node = no_parent;
    for (std::int32_t child; (child = drafted.first_child(node)) != no_node; node = child) {
      const Law& p = target(node);
      if (p.ids.empty()) break;
      const Law& q = detail::first_draft_law(drafted, node, out.workspace(0));
      const number drawn_with = probability_of(q, drafted.token(child));
      DECANT_ASSERT(drawn_with > number(0), "a drafted token that its law does not hold");
      const number a = ratio.back() * probability_of(p, drafted.token(child)) / drawn_with;
      ratio.push_back(a < number(1) ? a : number(1));
      out.path.push_back(static_cast<std::size_t>(child));
    }
    // The largest i that succeeds, from the end: where one does, the others need not be asked.
    for (bool whole = true; !out.path.empty(); whole = false) {
      node = static_cast<std::int32_t>(out.path.back());
      const number a = ratio.back();
      const Law& p = target(node);
      if (whole) {
        out.next = &p;
        if (decide.chance(a, number(1), node)) return;
      } else {
        const Law& q = detail::first_draft_law(drafted, node, out.workspace(0));
        const number s = a < number(1) ? excess(p, a, q) : number(1);
        if (decide.chance(s, s + (number(1) - a), node)) return detail::leave_residual(p, a, q, out);
      }
      out.path.pop_back();
      ratio.pop_back();
    }
    const Law& p = target(no_parent);
    if (drafted.empty() || p.ids.empty()) {
      out.next = &p;
    } else {
      detail::leave_residual(p, number(1), detail::first_draft_law(drafted, no_parent, out.workspace(0)), out);
    }
  }
};

}  // namespace decant
