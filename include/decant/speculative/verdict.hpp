// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include <decant/core/draws.hpp>
#include <decant/core/law.hpp>
#include <decant/math/strict.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/residual.hpp>

// How verification rules are written. A rule is a function object
//
//     rule(drafted, target, decide, out)
//
// that reads a basic_draft<Law> and the laws target(node) of what follows each node (no_parent: the accepted tokens),
// asks `decide` for every chance it takes, and writes into `out` the nodes that it accepts, from the top down, and the
// law of the token after them. It knows nothing of models, rows and seeds: over doubles and a stream it decodes, over
// exact rationals and an oracle that branches it is proven. An empty law target(node) is a row from which nothing can
// be drawn: the draft ends there, and if that node is accepted the next law is empty too.

namespace decant {

/// What makes a rule's decisions. `chance(n, d, node)` is true with probability min(1, n / d), never for n = 0, and is
/// asked at most once a node; `pick(count, node)` is one of 0 .. count - 1, all equally likely.
template <class D, class Number>
concept Decisions = requires(D& decide, const Number& n, std::int32_t node, std::size_t count) {
  { decide.chance(n, n, node) } -> std::convertible_to<bool>;
  { decide.pick(count, node) } -> std::convertible_to<std::size_t>;
};

/// What a rule came to, and the room that rules work in: reused from round to round, it stops allocating.
template <class Law>
struct basic_verdict {
  std::vector<std::size_t> path;  ///< the nodes accepted, from the top down
  const Law* next = nullptr;      ///< the law of the token after them: one of the target's, or `rest`
  Law rest;                       ///< what is left of a target's law after rejections

  // Room for rules.
  std::deque<Law> room;
  std::vector<number_of<Law>> numbers;
  std::vector<double> keys;
  std::vector<std::size_t> order;
  struct node_state {
    std::int32_t next_child = no_node;  ///< the first that has not been tried
    bool own_target = false;            ///< whether what is left of the target's law there is in the room
    bool own_draft = false;             ///< likewise of the draft's
  };
  std::vector<node_state> nodes;

  void clear() {
    path.clear();
    next = nullptr;
  }

  /// The i-th law to work in; its content is whatever it was.
  [[nodiscard]] Law& workspace(std::size_t i) {
    if (room.size() <= i) room.resize(i + 1);
    return room[i];
  }
};

/// A verdict over laws of doubles.
using verdict = basic_verdict<law>;

/// Decisions from a stream: the acceptance child of a round. One uniform number a question, keyed by the node.
class stream_decisions {
 public:
  explicit stream_decisions(const draw_stream& draws) : draws_(draws) {}

  /// u * d < n with u strictly inside (0, 1): neither accepts a token of probability 0 nor rejects one with n >= d.
  [[nodiscard]] bool chance(double n, double d, std::int32_t node) const {
    if (!(n > 0)) return false;
    if (n >= d) return true;
    const auto index = static_cast<std::uint32_t>(node);
    if (draws_.hook() != nullptr) return draws_.chance(n / d, purpose::accept, index);
    return math::product(draws_.uniform(purpose::accept, index), d) < n;
  }

  [[nodiscard]] std::size_t pick(std::size_t count, std::int32_t node) const {
    const auto index = static_cast<std::uint32_t>(node + 1);
    const auto whole = static_cast<double>(count);
    if (draws_.hook() != nullptr) {
      return draws_.choose(std::vector<double>(count, 1.0), whole, purpose::sample, index);
    }
    // What choose would answer, without weights to go through.
    return std::min(count - 1, static_cast<std::size_t>(math::product(draws_.uniform(purpose::sample, index), whole)));
  }

 private:
  draw_stream draws_;
};

namespace detail {

/// Makes the residual of p against q the next law: p itself where nothing is left, which only rounding can do.
template <class Law>
void leave_residual(const Law& p, const number_of<Law>& scale, const Law& q, basic_verdict<Law>& out) {
  const bool some = residual(p, scale, q, out.rest) > number_of<Law>(0);
  out.next = some ? &out.rest : &p;
}

/// The law that the first of a node's children came from: the node's, or certainty where the draft is deterministic,
/// whatever laws may stand in it.
template <class Law>
const Law& first_draft_law(const basic_draft<Law>& drafted, std::int32_t node, Law& certain) {
  if (drafted.mode() != proposal::deterministic) return drafted.children_law(node);
  make_certain(certain, drafted.token(drafted.first_child(node)));
  return certain;
}

/// Goes down a tree by `choose(node, p)`: the child accepted, or no_node once that has made the
/// next law. Where there is nothing to choose, the target's own law is the next.
template <class Law, class Target, class Choose>
void walk_down(const basic_draft<Law>& drafted, Target& target, basic_verdict<Law>& out, Choose choose) {
  out.clear();
  for (std::int32_t node = no_parent;;) {
    const Law& p = target(node);
    if (drafted.first_child(node) == no_node || p.ids.empty()) {
      out.next = &p;
      return;
    }
    node = choose(node, p);
    if (node == no_node) return;
    out.path.push_back(static_cast<std::size_t>(node));
  }
}

/// Goes down the first path of a tree as long as `accepts(p, q, q's probability of the token, child)`; where it does
/// not, the residual of p against q is the next law.
template <class Law, class Target, class Accepts>
void accept_along_first_path(const basic_draft<Law>& drafted, Target& target, basic_verdict<Law>& out,
                             Accepts accepts) {
  using number = number_of<Law>;
  walk_down(drafted, target, out, [&](std::int32_t node, const Law& p) {
    const std::int32_t child = drafted.first_child(node);
    const Law& q = first_draft_law(drafted, node, out.workspace(0));
    const number drawn_with = probability_of(q, drafted.token(child));
    DECANT_ASSERT(drawn_with > number(0), "a drafted token that its law does not hold");
    if (accepts(p, q, drawn_with, child)) return child;
    leave_residual(p, number(1), q, out);
    return no_node;
  });
}

}  // namespace detail

}  // namespace decant
