// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/core/errors.hpp>

namespace decant {

/// What a stop_matcher does beside matching.
struct stop_options {
  bool include_stop = false;  ///< emit the stop string too, up to its last byte
};

/// What one token or piece has set free.
struct emitted_text {
  std::string text;                    ///< to be shown now; it will not be taken back
  std::optional<std::size_t> matched;  ///< index of the stop string that ended the text, if one has
};

namespace detail {

/// Aho-Corasick automaton over bytes. A node stands for a prefix of some string, the root for the empty one.
/// Nodes are numbered breadth first, so the children of a node are neighbours, in order of their byte, and an edge
/// costs the one byte it is labelled with. About 21 bytes a node, at most one node a byte of the strings, plus one.
class stop_automaton {
 public:
  using node = std::uint32_t;
  static constexpr node root = 0;
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// The strings are not empty, and together shorter than `none` - 1. O(total length * log(number of strings)).
  explicit stop_automaton(std::vector<std::string> strings) : strings_(std::move(strings)) {
    grow();
    link();
  }

  /// The longest suffix of (what `at` stands for, then `byte`) that is a prefix of some string. O(1) amortised over a
  /// text, times the logarithm of the number of branches.
  [[nodiscard]] node next(node at, char byte) const noexcept {
    const auto wanted = static_cast<std::uint8_t>(byte);
    while (true) {
      const auto first = bytes_.begin() + nodes_[at].first_child;
      const auto last = bytes_.begin() + nodes_[at + 1].first_child;
      const auto found = std::lower_bound(first, last, wanted);
      if (found != last && *found == wanted) return static_cast<node>(found - bytes_.begin());
      if (at == root) return root;
      at = nodes_[at].fallback;
    }
  }

  /// The bytes that a node stands for: they need no storage of their own, a string that begins with them has them.
  [[nodiscard]] std::string_view label(node at) const noexcept {
    if (at == root) return {};
    return std::string_view(strings_[nodes_[at].owner]).substr(0, nodes_[at].depth);
  }

  /// The longest string that ends at this node (the lowest index of equal ones), or `none`.
  [[nodiscard]] std::uint32_t ending(node at) const noexcept { return nodes_[at].ending; }

  [[nodiscard]] std::size_t depth(node at) const noexcept { return nodes_[at].depth; }

  [[nodiscard]] const std::vector<std::string>& strings() const noexcept { return strings_; }

 private:
  struct node_data {
    std::uint32_t first_child = 0;  // its last child stands before the first child of the next node
    std::uint32_t depth = 0;
    std::uint32_t owner = none;
    std::uint32_t ending = none;
    node fallback = root;
  };

  /// The trie. In sorted order the strings below a node are neighbours, so a node is a range of them while it waits.
  void grow() {
    std::vector<std::uint32_t> order;
    order.reserve(strings_.size());
    for (std::size_t i = 0; i < strings_.size(); ++i) order.push_back(static_cast<std::uint32_t>(i));
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      const int difference = strings_[a].compare(strings_[b]);
      return difference != 0 ? difference < 0 : a < b;
    });
    std::vector<std::pair<std::size_t, std::size_t>> ranges{{0, order.size()}};
    nodes_.emplace_back();
    bytes_.push_back(0);
    for (std::size_t at = 0; at < nodes_.size(); ++at) {
      auto [first, last] = ranges[at];
      const std::uint32_t depth = nodes_[at].depth;
      nodes_[at].first_child = static_cast<std::uint32_t>(nodes_.size());
      if (first < last && strings_[order[first]].size() == depth) nodes_[at].ending = order[first];
      while (first < last && strings_[order[first]].size() == depth) ++first;
      while (first < last) {
        const char byte = strings_[order[first]][depth];
        std::size_t next = first + 1;
        while (next < last && strings_[order[next]][depth] == byte) ++next;
        nodes_.push_back({.depth = depth + 1, .owner = order[first]});
        bytes_.push_back(static_cast<std::uint8_t>(byte));
        ranges.emplace_back(first, next);
        first = next;
      }
    }
    nodes_.push_back({.first_child = static_cast<std::uint32_t>(bytes_.size())});
  }

  /// The links to fall back along. Breadth first, so whatever is shorter is finished.
  void link() {
    for (node at = root; at + 1 < nodes_.size(); ++at) {
      for (node child = nodes_[at].first_child; child < nodes_[at + 1].first_child; ++child) {
        const auto byte = static_cast<char>(bytes_[child]);
        nodes_[child].fallback = at == root ? root : next(nodes_[at].fallback, byte);
        if (nodes_[child].ending == none) nodes_[child].ending = nodes_[nodes_[child].fallback].ending;
      }
    }
  }

  std::vector<std::string> strings_;
  std::vector<node_data> nodes_;     // and one past the end, which closes the last range of children
  std::vector<std::uint8_t> bytes_;  // the label of the edge into each node
};

}  // namespace detail

/// Finds stop strings in a stream of bytes, over the borders of tokens, and lets through what is surely not in one.
///
/// Held back is exactly the longest suffix of the input that is a prefix of some stop string; everything before it is
/// emitted at once. The match that ends first wins; of several that end at the same byte the longest; of equal stop
/// strings the lowest index. At a match the text before the stop string is emitted (with `include_stop` the stop string
/// as well), and nothing after it, then or later. Stop strings are bytes of any kind, compared with the bytes of the
/// input; without any, everything passes.
///
/// A small value: copies share the automaton and a few words of state, so a copy is a cheap fork or snapshot, also for
/// use in another thread. Time is linear in the input, times at most 8 for the choice among branches; memory O(total
/// length of the stop strings). The forms that append allocate only what `out` needs.
///
/// Errors: an empty stop string is a `parameter_error`; `make` returns it as a value.
///
/// Reference: Aho, Corasick, "Efficient string matching: an aid to bibliographic search", CACM 1975.
class stop_matcher {
 public:
  /// No stop strings: everything passes.
  stop_matcher() : stop_matcher(unchecked{}, {}, {}) {}

  /// O(total length * log(number of strings)).
  explicit stop_matcher(std::vector<std::string> stop_strings, stop_options options = {})
      : stop_matcher(unchecked{}, checked(std::move(stop_strings)), options) {}

  /// The same, with the error as a value.
  [[nodiscard]] static result<stop_matcher> make(std::vector<std::string> stop_strings, stop_options options = {}) {
    if (const auto fault = check(stop_strings)) return error{error_code::bad_parameter, {}, fault->text()};
    return stop_matcher(unchecked{}, std::move(stop_strings), options);
  }

  // No move operations: a move would leave a matcher without an automaton behind, and a copy costs next to nothing.
  stop_matcher(const stop_matcher&) = default;
  stop_matcher& operator=(const stop_matcher&) = default;
  ~stop_matcher() = default;

  /// Takes the next bytes; returns what may be emitted now, and whether a stop string has ended the text.
  [[nodiscard]] emitted_text push(std::string_view piece) {
    emitted_text now;
    now.matched = push(piece, now.text);
    return now;
  }

  /// The same, appended to `out`. `piece` must not view into `out`.
  std::optional<std::size_t> push(std::string_view piece, std::string& out) {
    return push(piece, [&out](std::string_view part) { out.append(part); });
  }

  /// The same, handed to `sink` in at most two parts, none of them empty, each valid during its call.
  template <std::invocable<std::string_view> Sink>
  std::optional<std::size_t> push(std::string_view piece, Sink&& sink) {
    if (matched_) return matched_;
    auto at = state_;
    std::size_t taken = 0;
    std::size_t kept = 0;
    while (taken < piece.size() && !matched_) {
      at = automaton_->next(at, piece[taken++]);
      const std::uint32_t ending = automaton_->ending(at);
      if (ending == detail::stop_automaton::none) continue;
      matched_ = ending;
      kept = options_.include_stop ? 0 : automaton_->strings()[ending].size();
    }
    if (!matched_) kept = automaton_->depth(at);
    const auto held = automaton_->label(state_);
    state_ = matched_ ? detail::stop_automaton::root : at;
    const std::size_t count = held.size() + taken - kept;
    const std::size_t from_held = std::min(count, held.size());
    if (from_held > 0) sink(held.substr(0, from_held));
    if (count > from_held) sink(piece.substr(0, count - from_held));
    return matched_;
  }

  /// Ends the text: returns what is still held back, since no stop string can complete it. Nothing after a match.
  [[nodiscard]] std::string flush() {
    std::string out;
    flush(out);
    return out;
  }

  /// The same, appended to `out`.
  void flush(std::string& out) {
    flush([&out](std::string_view part) { out.append(part); });
  }

  /// The same, handed to `sink` if there is anything.
  template <std::invocable<std::string_view> Sink>
  void flush(Sink&& sink) {
    const auto rest = held();
    state_ = detail::stop_automaton::root;
    if (!rest.empty()) sink(rest);
  }

  /// The bytes held back: the beginning of a stop string. Valid as long as this matcher or a copy of it lives.
  [[nodiscard]] std::string_view held() const noexcept { return automaton_->label(state_); }

  /// The index of the stop string that has ended the text, if one has.
  [[nodiscard]] std::optional<std::size_t> matched() const noexcept { return matched_; }

  /// The stop strings, in the order they were given in.
  [[nodiscard]] std::span<const std::string> stop_strings() const noexcept { return automaton_->strings(); }

  [[nodiscard]] stop_options options() const noexcept { return options_; }

  /// Forgets the text so far, and a match.
  void reset() noexcept {
    state_ = detail::stop_automaton::root;
    matched_.reset();
  }

 private:
  struct unchecked {};

  stop_matcher(unchecked, std::vector<std::string> stop_strings, stop_options options)
      : automaton_(std::make_shared<const detail::stop_automaton>(std::move(stop_strings))), options_(options) {}

  static std::optional<parameter_fault> check(std::span<const std::string> stop_strings) {
    std::size_t total = 0;
    for (const std::string& stop : stop_strings) {
      if (stop.empty()) {
        return parameter_fault{"stop_matcher", "size of a stop string", 0,
                               "must be at least 1 byte: an empty one would match everywhere"};
      }
      total += stop.size();
    }
    // Nodes are numbered in 32 bits, with the root, one past the end and `none` beside those of the strings.
    if (total > detail::stop_automaton::none - 2) {
      return parameter_fault{"stop_matcher", "size of all stop strings", static_cast<double>(total),
                             "must be below 2^32 - 2 bytes"};
    }
    return std::nullopt;
  }

  static std::vector<std::string> checked(std::vector<std::string> stop_strings) {
    detail::raise_if(check(stop_strings));
    return stop_strings;
  }

  std::shared_ptr<const detail::stop_automaton> automaton_;
  detail::stop_automaton::node state_ = detail::stop_automaton::root;
  stop_options options_;
  std::optional<std::size_t> matched_;
};

}  // namespace decant
