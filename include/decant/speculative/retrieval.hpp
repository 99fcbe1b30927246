// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/speculative/draft.hpp>

namespace decant {

/// Texts in which any run of tokens is found at once: the tokens and the order of their suffixes.
///
/// Complexity: O(n log^2 n) to build, two numbers a token to keep. Never changes: share it between drafters.
/// Reference: Manber, Myers 1993, "Suffix arrays: a new method for on-line string searches".
class retrieval_store {
 public:
  /// From texts one after another; no_token between them keeps continuations from crossing a boundary.
  explicit retrieval_store(std::vector<token_id> tokens) : tokens_(std::move(tokens)), suffixes_(tokens_.size()) {
    std::iota(suffixes_.begin(), suffixes_.end(), std::uint32_t{0});
    sort_suffixes();
  }

  /// Suffixes, neighbours in their order, that begin alike.
  struct range {
    std::size_t begin = 0, end = 0;

    [[nodiscard]] std::size_t size() const { return end - begin; }
    [[nodiscard]] bool empty() const { return begin == end; }
  };

  [[nodiscard]] range all() const { return {0, suffixes_.size()}; }

  /// The suffixes of a range that have `token` at the given place. O(log size).
  [[nodiscard]] range narrow(const range& from, std::size_t place, token_id token) const {
    const auto below = [&](std::uint32_t suffix) { return token_at(suffix, place) < std::int64_t{token}; };
    const auto upto = [&](std::uint32_t suffix) { return token_at(suffix, place) <= std::int64_t{token}; };
    const auto first = suffixes_.begin();
    const auto low = std::partition_point(first + step(from.begin), first + step(from.end), below);
    const auto high = std::partition_point(low, first + step(from.end), upto);
    return {static_cast<std::size_t>(low - first), static_cast<std::size_t>(high - first)};
  }

  /// The suffixes that begin with some tokens. O(tokens * log size).
  [[nodiscard]] range find(std::span<const token_id> tokens) const {
    range found = all();
    for (std::size_t place = 0; place < tokens.size() && !found.empty(); ++place) {
      found = narrow(found, place, tokens[place]);
    }
    return found;
  }

  /// Calls f(token, range) for everything that stands at a place in the suffixes of a range, in ascending order of
  /// tokens; boundaries and the end are left out. O(different tokens * log size).
  template <class F>
  void visit(range from, std::size_t place, F f) const {
    while (!from.empty()) {
      const std::int64_t token = token_at(suffixes_[from.begin], place);
      const auto same = [&](std::uint32_t suffix) { return token_at(suffix, place) <= token; };
      const auto end =
          std::partition_point(suffixes_.begin() + step(from.begin), suffixes_.begin() + step(from.end), same);
      const range group{from.begin, static_cast<std::size_t>(end - suffixes_.begin())};
      if (token >= 0) f(static_cast<token_id>(token), group);
      from.begin = group.end;
    }
  }

  [[nodiscard]] std::span<const token_id> tokens() const { return tokens_; }
  /// Where in the tokens the suffixes of a range begin, in their order.
  [[nodiscard]] std::span<const std::uint32_t> places(const range& of) const {
    return std::span(suffixes_).subspan(of.begin, of.size());
  }

 private:
  static std::ptrdiff_t step(std::size_t i) { return static_cast<std::ptrdiff_t>(i); }

  /// Before all tokens stands the end.
  [[nodiscard]] std::int64_t token_at(std::uint32_t suffix, std::size_t place) const {
    return suffix + place < tokens_.size() ? std::int64_t{tokens_[suffix + place]} : INT64_MIN;
  }

  /// Prefix doubling: suffixes in the order of their first 1, 2, 4 ... tokens.
  void sort_suffixes() {
    const std::size_t n = tokens_.size();
    std::vector<std::int64_t> rank(tokens_.begin(), tokens_.end()), next(n);
    for (std::size_t length = 1;; length *= 2) {
      const auto second = [&](std::uint32_t s) { return s + length < n ? rank[s + length] : INT64_MIN; };
      const auto before = [&](std::uint32_t a, std::uint32_t b) {
        return rank[a] != rank[b] ? rank[a] < rank[b] : second(a) < second(b);
      };
      std::sort(suffixes_.begin(), suffixes_.end(), before);
      std::int64_t last = 0;
      for (std::size_t i = 0; i < n; ++i) {
        if (i > 0 && before(suffixes_[i - 1], suffixes_[i])) ++last;
        next[suffixes_[i]] = last;
      }
      rank.swap(next);
      if (n == 0 || static_cast<std::size_t>(last) == n - 1) return;
    }
  }

  std::vector<token_id> tokens_;
  std::vector<std::uint32_t> suffixes_;
};

/// How retrieval_draft searches.
struct retrieval_options {
  std::size_t max_match = 16;  ///< the longest end of the text that is looked for
  std::size_t min_match = 1;   ///< and the shortest
};

/// Drafts the most frequent continuations of the text's end in a store of texts, as a tree.
///
/// Effect: looks for the longest suffix of the tokens, of at most max_match, that stands in the store; the draft is the
/// part of the trie of everything that follows there that holds the most frequent prefixes, as many as there is room
/// for. A prefix is at least as frequent as its continuations, so the part is a tree. Among equally frequent ones the
/// shallower go first, then those found first, which is in ascending order of tokens. Deterministic.
/// Complexity: O(max_match^2 log size) to search, then O(nodes * different continuations * log size); what allocates
/// is kept. Errors: parameter_error for min_match = 0 and for max_match < min_match. Misuse: no store.
/// Reference: He et al. 2023 (REST), arXiv 2311.08252.
class retrieval_draft : public made_or_error<retrieval_draft> {
 public:
  static constexpr std::string_view name = "retrieval_draft";

  explicit retrieval_draft(std::shared_ptr<const retrieval_store> store, const retrieval_options& options = {})
      : store_(std::move(store)), options_(options) {
    DECANT_ASSERT(store_ != nullptr, "retrieval needs a store");
    detail::raise_if(validate(store_, options_));
  }

  static std::optional<parameter_fault> validate(const std::shared_ptr<const retrieval_store>&,
                                                 const retrieval_options& options = {}) {
    if (options.min_match == 0) return parameter_fault{name, "min_match", 0, "must be at least 1"};
    if (options.max_match < options.min_match) {
      return parameter_fault{name, "max_match", static_cast<double>(options.max_match), "must be at least min_match"};
    }
    return {};
  }

  void propose(const draft_request& request, draft& out) {
    out.set_mode(proposal::deterministic);
    const auto tokens = request.context.tokens;
    retrieval_store::range found;
    std::size_t matched = std::min(options_.max_match, tokens.size());
    for (; matched >= options_.min_match; --matched) {
      found = store_->find(tokens.last(matched));
      if (has_next(found, matched)) break;
    }
    if (matched < options_.min_match || request.max_depth == 0) return;
    order_ = 0;
    open_.clear();
    open_next(found, matched, no_parent, 0);
    while (!open_.empty() && out.size() < request.max_nodes) {
      std::pop_heap(open_.begin(), open_.end());
      const open_node taken = open_.back();
      open_.pop_back();
      const std::int32_t node = out.add(taken.token, taken.parent);
      const bool stop = std::ranges::find(request.stop_tokens, taken.token) != request.stop_tokens.end();
      if (!stop && taken.depth < request.max_depth) open_next(taken.range, matched + taken.depth, node, taken.depth);
    }
  }

  [[nodiscard]] std::string describe() const {
    return detail::call_text(name, {static_cast<double>(options_.max_match), static_cast<double>(options_.min_match)});
  }

 private:
  struct open_node {
    retrieval_store::range range;
    token_id token;
    std::int32_t parent;
    std::size_t depth;
    std::size_t order;

    bool operator<(const open_node& other) const {
      if (range.size() != other.range.size()) return range.size() < other.range.size();
      return depth != other.depth ? depth > other.depth : order > other.order;
    }
  };

  [[nodiscard]] bool has_next(const retrieval_store::range& found, std::size_t place) const {
    bool any = false;
    store_->visit(found, place, [&](token_id, const retrieval_store::range&) { any = true; });
    return any;
  }

  void open_next(const retrieval_store::range& found, std::size_t place, std::int32_t parent, std::size_t depth) {
    store_->visit(found, place, [&](token_id token, const retrieval_store::range& group) {
      open_.push_back({group, token, parent, depth + 1, order_++});
      std::push_heap(open_.begin(), open_.end());
    });
  }

  std::shared_ptr<const retrieval_store> store_;
  retrieval_options options_;
  std::vector<open_node> open_;  // a heap
  std::size_t order_ = 0;
};

}  // namespace decant
