// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <decant/speculative/draft.hpp>
#include <decant/speculative/residual.hpp>
#include <decant/speculative/verdict.hpp>

namespace decant {

namespace detail {

/// One traversal of a tree: what is left of it, and of the laws of nodes that have lost a child.
template <class Law, class Target, class Decide>
class traversal {
 public:
  using number = number_of<Law>;

  traversal(const basic_draft<Law>& drafted, Target& target, Decide& decide, basic_verdict<Law>& out)
      : drafted_(drafted), target_(target), decide_(decide), out_(out) {
    out_.clear();
    out_.numbers.assign(drafted.size() + 1, number(1));
    out_.nodes.assign(drafted.size() + 1, {});
    at(no_parent).next_child = drafted.first_child(no_parent);
  }

  void run() {
    std::int32_t node = descend(no_parent);
    while (node != no_parent && !decide_.chance(acceptance(node), number(1), node)) {
      out_.path.pop_back();
      const std::int32_t parent = drafted_.parent(node);
      reject_next_child(parent);
      node = descend(parent);
    }
    out_.next = &target_law(node);
  }

 private:
  using node_state = typename basic_verdict<Law>::node_state;

  // The room: one law to write into, then two a node.
  static constexpr std::size_t spare = 0;
  [[nodiscard]] static std::size_t place(std::int32_t node) { return static_cast<std::size_t>(node) + 1; }
  [[nodiscard]] Law& room_for_target(std::int32_t node) { return out_.workspace(1 + 2 * place(node)); }
  [[nodiscard]] Law& room_for_draft(std::int32_t node) { return out_.workspace(2 + 2 * place(node)); }

  [[nodiscard]] node_state& at(std::int32_t node) { return out_.nodes[place(node)]; }
  [[nodiscard]] number& acceptance(std::int32_t node) { return out_.numbers[place(node)]; }

  [[nodiscard]] const Law& target_law(std::int32_t node) {
    return at(node).own_target ? room_for_target(node) : target_(node);
  }

  /// The law that a node's next child came from.
  [[nodiscard]] const Law& draft_law(std::int32_t node) {
    if (drafted_.mode() == proposal::deterministic) {
      Law& certain = room_for_draft(node);
      make_certain(certain, drafted_.token(at(node).next_child));
      return certain;
    }
    return at(node).own_draft ? room_for_draft(node) : drafted_.children_law(node);
  }

  /// Goes down from a node to the first leaf of what is left of the tree.
  std::int32_t descend(std::int32_t node) {
    while (at(node).next_child != no_node) {
      const Law& p = target_law(node);
      if (p.ids.empty()) break;
      const std::int32_t child = at(node).next_child;
      const token_id token = drafted_.token(child);
      const number drawn_with = probability_of(draft_law(node), token);
      DECANT_ASSERT(drawn_with > number(0), "a drafted token that its law does not hold");
      const number a = acceptance(node) * probability_of(p, token) / drawn_with;
      if (a < number(1)) acceptance(child) = a;
      at(child).next_child = drafted_.first_child(child);
      out_.path.push_back(static_cast<std::size_t>(child));
      node = child;
    }
    return node;
  }

  /// Takes the next child out of the tree; what its rejection says goes into its parent's laws and acceptance.
  void reject_next_child(std::int32_t node) {
    const std::int32_t child = at(node).next_child;
    const number a = acceptance(node);
    Law& rest = out_.workspace(spare);
    const number s = residual(target_law(node), a, draft_law(node), rest);
    if (node != no_parent && a < number(1)) acceptance(node) = s / (s + (number(1) - a));
    if (s > number(0)) {  // else p stays: only rounding leads here with a chance left
      std::swap(rest, room_for_target(node));
      at(node).own_target = true;
    }
    at(node).next_child = drafted_.next_sibling(child);
    if (drafted_.mode() == proposal::without_replacement && at(node).next_child != no_node) {
      Law& left = room_for_draft(node);
      if (!at(node).own_draft) left = drafted_.children_law(node);
      at(node).own_draft = true;
      remove_token(left, drafted_.token(child));
    }
  }

  const basic_draft<Law>& drafted_;
  Target& target_;
  Decide& decide_;
  basic_verdict<Law>& out_;
};

}  // namespace detail

/// Traversal verification: judges a tree from its leaves, path by path as a whole, and gives up a leaf at a time.
///
/// Effect: along a path a = min(1, a p / q), as in block verification. The first leaf, in the order of the draft, is
/// accepted with probability a; if not, it is taken out, at its parent p becomes the positive part of a p - q
/// renormalised, a becomes s / (s + 1 - a) with s the mass of that part, and the next leaf is tried. Lossless in every
/// mode of drafting; on a chain it is block verification, on a tree of depth 1 recursive rejection, on others it
/// accepts more than going down from the root does. One residual a leaf rejected, O(log size) a node entered; reads the
/// target's laws all over the tree. No parameters, no off value; a drafted token that its law does not hold is misuse.
/// Reference: Weng, Mei, Qiu, Chen, Liu, Tian, Shi, "Traversal verification for speculative tree decoding",
/// NeurIPS 2025, arXiv 2505.12398.
struct traversal_verification {
  template <class Law, class Target, class Decide>
  void operator()(const basic_draft<Law>& drafted, Target&& target, Decide&& decide, basic_verdict<Law>& out) const {
    detail::traversal<Law, std::remove_reference_t<Target>, std::remove_reference_t<Decide>>(drafted, target, decide,
                                                                                             out)
        .run();
  }
};

}  // namespace decant
