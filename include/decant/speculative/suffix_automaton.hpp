// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// All substrings of a text, how often each occurs and what follows it: built token by token, and taken back likewise.
///
/// A state stands for substrings that end at the same places; the root for the empty one. `link` leads from a state to
/// that of the longest suffix which ends at more places. The text may hold any ids, no_token too: as a boundary between
/// texts that nobody asks about.
///
/// Complexity: at most 2 states and 3 edges a token, in flat arrays: memory is linear, and so is what is kept for
/// rollback. `append` is O(1) amortised for the structure; keeping the counts costs one step for every state on the way
/// up the links, which is O(log size) for texts that do not repeat themselves and O(size) for a single token repeated.
/// `rollback` costs what the appends cost. `find` and `follow` are O(1) a token. Misuse: a state that is not there,
/// taking back more than there is.
/// Reference: Blumer, Blumer, Haussler, Ehrenfeucht, Chen, Seiferas 1985, "The smallest automaton recognizing the
/// subwords of a text".
class suffix_automaton {
 public:
  using state = std::int32_t;
  static constexpr state root = 0, none = -1;

  suffix_automaton() { clear(); }
  explicit suffix_automaton(std::span<const token_id> text) : suffix_automaton() { append(text); }

  /// Forgets the text and keeps the storage.
  void clear() {
    tokens_.clear();
    states_.assign(1, {0, none, none, 0, 0});
    edges_.clear();
    slots_.assign(64, none);
    changes_.clear();
    redirected_.clear();
    last_ = root;
  }

  void append(std::span<const token_id> text) {
    for (const token_id token : text) append(token);
  }

  void append(token_id token) {
    changes_.push_back(
        {last_, static_cast<std::int32_t>(edges_.size()), static_cast<std::int32_t>(redirected_.size()), none, none});
    tokens_.push_back(token);
    const auto length = static_cast<std::int32_t>(tokens_.size());
    const state added = add_state({length, root, none, length, 0});
    state at = last_;
    for (; at != none && find_edge(at, token) == none; at = node(at).link) add_edge(at, token, added);
    if (at != none) node(added).link = split(at, token);
    last_ = added;
    for (state s = added; s != none; s = node(s).link) ++node(s).count;
  }

  /// Takes back the last `count` tokens: everything is then as if they had never been there.
  void rollback(std::size_t count) {
    DECANT_ASSERT(count <= size(), "cannot take back more tokens than there are");
    for (; count > 0; --count) take_back();
  }

  /// Makes the text equal to `text`: takes back what differs and appends the rest.
  void follow_text(std::span<const token_id> text) {
    const auto differs = std::mismatch(tokens_.begin(), tokens_.end(), text.begin(), text.end()).first;
    const auto common = static_cast<std::size_t>(differs - tokens_.begin());
    rollback(size() - common);
    append(text.subspan(common));
  }

  [[nodiscard]] std::span<const token_id> tokens() const noexcept { return tokens_; }
  [[nodiscard]] std::size_t size() const noexcept { return tokens_.size(); }
  [[nodiscard]] std::size_t state_count() const noexcept { return states_.size(); }
  [[nodiscard]] std::size_t edge_count() const noexcept { return edges_.size(); }

  /// The state of the whole text.
  [[nodiscard]] state whole() const noexcept { return last_; }
  /// The state of the longest proper suffix of a state's substrings that ends at more places; none for the root.
  [[nodiscard]] state link(state s) const { return node(s).link; }
  /// The length of the longest of its substrings.
  [[nodiscard]] std::size_t length(state s) const { return static_cast<std::size_t>(node(s).length); }
  /// How often each of its substrings occurs: at how many places it ends. For the root, the size of the text.
  [[nodiscard]] std::size_t count(state s) const { return static_cast<std::size_t>(node(s).count); }
  /// How many tokens the text has up to the end of the first occurrence.
  [[nodiscard]] std::size_t first_end(state s) const { return static_cast<std::size_t>(node(s).first_end); }

  /// The state of a state's substrings with `token` after them, or none if they never stand so.
  [[nodiscard]] state find(state s, token_id token) const {
    const std::int32_t found = find_edge(s, token);
    return found == none ? none : edges_[static_cast<std::size_t>(found)].target;
  }
  /// The state of a substring, or none if it does not occur.
  [[nodiscard]] state find(std::span<const token_id> substring) const {
    state s = root;
    for (const token_id token : substring) {
      if (s != none) s = find(s, token);
    }
    return s;
  }

  /// Calls f(token, state) for everything that follows a state, in no useful order. O(number of them).
  template <class F>
  void visit_next(state s, F f) const {
    for (std::int32_t e = node(s).first_edge; e != none; e = edges_[static_cast<std::size_t>(e)].next) {
      f(edges_[static_cast<std::size_t>(e)].token, edges_[static_cast<std::size_t>(e)].target);
    }
  }

  /// All places where a state's substrings end, ascending, as first_end counts. O(size * links on the way up).
  [[nodiscard]] std::vector<std::size_t> ends(state wanted) const {
    std::vector<std::size_t> found;
    state s = root;
    for (const token_id token : tokens_) {
      s = find(s, token);  // the state of every prefix in turn
      state above = s;
      while (above != none && node(above).length > node(wanted).length) above = node(above).link;
      if (above == wanted && wanted != root) found.push_back(length(s));
    }
    return found;
  }

  /// The longest suffix of some text that occurs here.
  struct match {
    state at = root;
    std::size_t length = 0;
  };

  /// The match after one more token. O(1) amortised.
  [[nodiscard]] match follow(match m, token_id token) const {
    for (;;) {
      if (const state next = find(m.at, token); next != none) return {next, m.length + 1};
      if (m.at == root) return {};
      m.at = node(m.at).link;
      m.length = length(m.at);
    }
  }

 private:
  struct state_node {
    std::int32_t length;
    state link;
    std::int32_t first_edge;
    std::int32_t first_end;
    std::int32_t count;
  };
  struct edge {
    state from;
    token_id token;
    state target;
    std::int32_t next;  // of the same state
  };
  /// What an append has changed.
  struct change {
    state last;                 // the state of the whole text before
    std::int32_t edges;         // how many edges there were
    std::int32_t redirections;  // and how many redirections
    state relinked;             // a state whose link now leads to its clone
    state link;                 // and where it led
  };
  struct redirection {
    std::int32_t edge;
    state target;  // before
  };

  [[nodiscard]] state_node& node(state s) { return states_[static_cast<std::size_t>(s)]; }
  [[nodiscard]] const state_node& node(state s) const {
    DECANT_ASSERT(s >= 0 && static_cast<std::size_t>(s) < states_.size(), "no such state");
    return states_[static_cast<std::size_t>(s)];
  }

  state add_state(const state_node& added) {
    states_.push_back(added);
    return static_cast<state>(states_.size()) - 1;
  }

  /// The state that stands for what `at` stands for and `token`, and for nothing longer: the one where the edge leads,
  /// or its clone without the longer substrings.
  state split(state at, token_id token) {
    const state target = find(at, token);
    if (node(target).length == node(at).length + 1) return target;
    const state_node& original = node(target);
    const state clone = add_state({node(at).length + 1, original.link, none, original.first_end, original.count});
    for (std::int32_t e = node(target).first_edge; e != none; e = edges_[static_cast<std::size_t>(e)].next) {
      const edge copied = edges_[static_cast<std::size_t>(e)];
      add_edge(clone, copied.token, copied.target);
    }
    changes_.back().relinked = target;
    changes_.back().link = node(target).link;
    node(target).link = clone;
    for (; at != none; at = node(at).link) {
      const std::int32_t e = find_edge(at, token);
      if (edges_[static_cast<std::size_t>(e)].target != target) break;
      redirected_.push_back({e, target});
      edges_[static_cast<std::size_t>(e)].target = clone;
    }
    return clone;
  }

  void take_back() {
    const change made = changes_.back();
    for (state s = last_; s != none; s = node(s).link) --node(s).count;
    if (made.relinked != none) node(made.relinked).link = made.link;
    while (redirected_.size() > static_cast<std::size_t>(made.redirections)) {
      edges_[static_cast<std::size_t>(redirected_.back().edge)].target = redirected_.back().target;
      redirected_.pop_back();
    }
    while (edges_.size() > static_cast<std::size_t>(made.edges)) remove_last_edge();
    // The state of the whole text is the first that the append added.
    states_.resize(static_cast<std::size_t>(last_));
    last_ = made.last;
    changes_.pop_back();
    tokens_.pop_back();
  }

  // Edges are found through a table with open addressing. They go in the reverse order in which they came, so that an
  // emptied slot never lies on the way to another edge.

  [[nodiscard]] std::size_t first_slot(state from, token_id token) const noexcept {
    const auto key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32 |
                     static_cast<std::uint64_t>(static_cast<std::uint32_t>(token));
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15U) >> 24) & (slots_.size() - 1);
  }
  [[nodiscard]] std::size_t after(std::size_t slot) const noexcept { return (slot + 1) & (slots_.size() - 1); }

  [[nodiscard]] std::int32_t find_edge(state from, token_id token) const {
    for (std::size_t slot = first_slot(from, token); slots_[slot] != none; slot = after(slot)) {
      const edge& e = edges_[static_cast<std::size_t>(slots_[slot])];
      if (e.from == from && e.token == token) return slots_[slot];
    }
    return none;
  }

  void add_edge(state from, token_id token, state target) {
    edges_.push_back({from, token, target, node(from).first_edge});
    const auto added = static_cast<std::int32_t>(edges_.size()) - 1;
    node(from).first_edge = added;
    if (2 * edges_.size() <= slots_.size()) return enter(added);
    slots_.assign(2 * slots_.size(), none);
    for (std::int32_t e = 0; e <= added; ++e) enter(e);
  }

  void enter(std::int32_t added) {
    const edge& e = edges_[static_cast<std::size_t>(added)];
    std::size_t slot = first_slot(e.from, e.token);
    while (slots_[slot] != none) slot = after(slot);
    slots_[slot] = added;
  }

  void remove_last_edge() {
    const edge& last = edges_.back();
    std::size_t slot = first_slot(last.from, last.token);
    while (slots_[slot] != static_cast<std::int32_t>(edges_.size()) - 1) slot = after(slot);
    slots_[slot] = none;
    node(last.from).first_edge = last.next;
    edges_.pop_back();
  }

  std::vector<token_id> tokens_;
  std::vector<state_node> states_;
  std::vector<edge> edges_;
  std::vector<std::int32_t> slots_;  // edges by state and token; a power of two
  std::vector<change> changes_;
  std::vector<redirection> redirected_;
  state last_ = root;
};

}  // namespace decant
