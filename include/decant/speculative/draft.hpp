// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// How drafted tokens came about. This, and not whether laws are there, decides how they are verified: a token that was
/// the argmax of a law was not drawn from it.
enum class proposal : std::uint8_t {
  deterministic,        ///< anything that is not a draw of the round: an n-gram's continuation, the top k of a law
  with_replacement,     ///< children of a node are independent draws from its law
  without_replacement,  ///< each child is drawn from the law without the children before it
};

/// "There is no such node": what first_child and next_sibling answer.
inline constexpr std::int32_t no_node = -1;

/// Continuations of the accepted tokens, to be verified in one pass of the target: a token tree. A chain is a tree.
///
/// Nodes are numbered as they are added, parents before children; the children of a node keep that order, which for
/// draws is the order in which they were drawn. The root is no node: it stands for the accepted tokens and is named by
/// `no_parent`, as in TreeModel. Each node, and the root, has room for the law that its children were drawn from; where
/// the mode is not deterministic, every node with children must have it. `Law` is law, or one of exact numbers in a
/// proof. All calls are O(1) but depth and path_to; nothing allocates once the storage has grown. Misuse: a node that
/// is not there.
template <class Law>
class basic_draft {
 public:
  /// Starts anew and keeps all storage.
  void clear(proposal mode = proposal::deterministic) {
    mode_ = mode;
    tokens_.clear();
    parents_.clear();
    links_.resize(1);
    links_[0] = {};
    make_law(0);
  }

  basic_draft() { clear(); }

  [[nodiscard]] proposal mode() const noexcept { return mode_; }
  void set_mode(proposal mode) noexcept { mode_ = mode; }

  /// Adds a token after a node, or after the accepted tokens; returns its number.
  std::int32_t add(token_id token, std::int32_t parent = no_parent) {
    links& above = links_[place(parent)];
    const auto node = static_cast<std::int32_t>(tokens_.size());
    (above.last_child == no_node ? above.first_child : links_[place(above.last_child)].next_sibling) = node;
    above.last_child = node;
    tokens_.push_back(token);
    parents_.push_back(parent);
    links_.emplace_back();
    make_law(links_.size() - 1);
    return node;
  }

  /// The law that the children of a node are drawn from: empty until it is written. The reference stays valid until
  /// clear().
  [[nodiscard]] Law& children_law(std::int32_t node) { return laws_[place(node)]; }
  [[nodiscard]] const Law& children_law(std::int32_t node) const { return laws_[place(node)]; }

  [[nodiscard]] std::size_t size() const noexcept { return tokens_.size(); }
  [[nodiscard]] bool empty() const noexcept { return tokens_.empty(); }

  /// Flat, as TreeModel::score takes them.
  [[nodiscard]] std::span<const token_id> tokens() const noexcept { return tokens_; }
  [[nodiscard]] std::span<const std::int32_t> parents() const noexcept { return parents_; }

  [[nodiscard]] token_id token(std::int32_t node) const { return tokens_[real(node)]; }
  [[nodiscard]] std::int32_t parent(std::int32_t node) const { return parents_[real(node)]; }

  /// The child added first, of a node or of the root.
  [[nodiscard]] std::int32_t first_child(std::int32_t node) const { return links_[place(node)].first_child; }
  /// The next child of the same parent.
  [[nodiscard]] std::int32_t next_sibling(std::int32_t node) const { return links_[real(node) + 1].next_sibling; }

  [[nodiscard]] std::size_t child_count(std::int32_t node) const {
    std::size_t count = 0;
    for (std::int32_t c = first_child(node); c != no_node; c = next_sibling(c)) ++count;
    return count;
  }

  /// The first child with this token, or no_node.
  [[nodiscard]] std::int32_t child_with(std::int32_t node, token_id token) const {
    std::int32_t c = first_child(node);
    while (c != no_node && this->token(c) != token) c = next_sibling(c);
    return c;
  }

  /// How many tokens stand between the accepted ones and this node's, itself included: 0 for the root. O(depth).
  [[nodiscard]] std::size_t depth(std::int32_t node) const {
    std::size_t steps = 0;
    for (; node != no_parent; node = parent(node)) ++steps;
    return steps;
  }

  /// The depth of the deepest node. O(size).
  [[nodiscard]] std::size_t max_depth() const {
    std::size_t deepest = 0;
    // A deepest node has no children, and leaves are few.
    for (std::size_t i = 0; i < size(); ++i) {
      const auto node = static_cast<std::int32_t>(i);
      if (first_child(node) == no_node) deepest = std::max(deepest, depth(node));
    }
    return deepest;
  }

  /// Writes the nodes from below the root down to `node`, itself last. O(depth).
  void path_to(std::int32_t node, std::vector<std::size_t>& out) const {
    out.clear();
    for (; node != no_parent; node = parent(node)) out.push_back(static_cast<std::size_t>(node));
    std::reverse(out.begin(), out.end());
  }

  /// Leaves the first path alone: of each node the first child. That is a draft too, in every mode. O(size).
  void keep_first_path() {
    if (is_chain()) return;
    std::int32_t last = no_parent, kept = no_parent;
    for (std::int32_t node; (node = first_child(last)) != no_node; last = node) {
      ++kept;
      // A node's place on the path is never after its place in the tree.
      tokens_[static_cast<std::size_t>(kept)] = token(node);
      std::swap(laws_[place(kept)], laws_[place(node)]);
    }
    const std::size_t length = static_cast<std::size_t>(kept) + 1;
    tokens_.resize(length);
    parents_.resize(length);
    links_.resize(length + 1);
    for (std::int32_t node = no_parent; node <= kept; ++node) {
      const std::int32_t child = node < kept ? node + 1 : no_node;
      links_[place(node)] = {child, child, no_node};
      if (node != no_parent) parents_[static_cast<std::size_t>(node)] = node - 1;
    }
  }

  /// Whether no node has more than one child.
  [[nodiscard]] bool is_chain() const {
    for (std::size_t i = 0; i < size(); ++i) {
      if (parents_[i] != static_cast<std::int32_t>(i) - 1) return false;
    }
    return true;
  }

 private:
  struct links {
    std::int32_t first_child = no_node, last_child = no_node, next_sibling = no_node;
  };

  [[nodiscard]] std::size_t place(std::int32_t node) const {
    DECANT_ASSERT(node >= no_parent && static_cast<std::size_t>(node) + 1 <= tokens_.size(), "no such node");
    return static_cast<std::size_t>(node) + 1;
  }
  [[nodiscard]] std::size_t real(std::int32_t node) const {
    DECANT_ASSERT(node >= 0, "the root is no node");
    return place(node) - 1;
  }

  void make_law(std::size_t at) {
    if (laws_.size() <= at) laws_.resize(at + 1);
    laws_[at].clear();
  }

  proposal mode_ = proposal::deterministic;
  std::vector<token_id> tokens_;
  std::vector<std::int32_t> parents_;
  std::vector<links> links_;  // of the root, then of the nodes; laws likewise
  std::deque<Law> laws_;      // whose elements stay where they are while it grows
};

/// A draft as the library drafts and verifies it.
using draft = basic_draft<law>;

/// What a drafter is asked for.
struct draft_request {
  /// The accepted tokens, and the stream that processors see on both sides of the round: give a decoder's law_of the
  /// context after (accepted and drafted tokens, prompt_size, context.draws), and a random processor tosses the same
  /// coin for draft and target.
  step_context context{};
  /// Where drafted tokens come from: draw(law, draws.at(number of tokens before), purpose::draft, node).
  draw_stream draws{};
  std::size_t max_depth = 1;  ///< no longer path is wanted
  std::size_t max_nodes = 1;  ///< no more nodes
  double min_confidence = 0;  ///< a path ends where the largest probability is below (asked before a draw)
  std::span<const token_id> stop_tokens = {};  ///< a path may end with one of these, and need not go on after it
};

/// What became of a draft.
struct round_outcome {
  std::span<const token_id> tokens = {};   ///< all tokens, those of the round last
  std::size_t base = 0;                    ///< how many there were before the round
  std::size_t proposed = 0;                ///< the depth of the draft
  std::span<const std::size_t> path = {};  ///< its nodes that were accepted, from the top down
  bool rejected = false;                   ///< whether a drafted continuation was there and not taken

  /// How many drafted tokens were accepted. One more token stands after them.
  [[nodiscard]] std::size_t accepted() const { return path.size(); }
};

/// Proposes continuations. `propose(request, out)` is called with `out` cleared, sets its mode and adds nodes; none at
/// all is an answer too: the round is then a plain step. The same drafter is asked round after round, and may be asked
/// about any text: it compares what it holds with the tokens it is given, and forgets what differs.
///
/// Found by requires, and called in this order after the target's pass:
///   observe(model, rows)   the target, its rows still valid, and which of them belong to tokens now held, in order:
///                          for drafters that need hidden states. Also after the prompt.
///   feedback(outcome)      what was accepted.
///   reset()                a new generation begins.
template <class D>
concept DraftSource = requires(D& drafter, const draft_request& request, draft& out) { drafter.propose(request, out); };

namespace detail {

/// Whether a path may end with this token.
inline bool stops(const draft_request& request, token_id token) {
  return std::ranges::find(request.stop_tokens, token) != request.stop_tokens.end();
}

template <class D>
void feedback_to(D& drafter, const round_outcome& outcome) {
  if constexpr (requires { drafter.feedback(outcome); }) drafter.feedback(outcome);
}

template <class D, class M>
void show_to(D& drafter, M& model, std::span<const std::size_t> rows) {
  if constexpr (requires { drafter.observe(model, rows); }) drafter.observe(model, rows);
}

template <class D>
void reset_drafter(D& drafter) {
  if constexpr (requires { drafter.reset(); }) drafter.reset();
}

}  // namespace detail

}  // namespace decant
