// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// A hypothesis by its last link; `root_link` is the empty one that all begin with.
using hypothesis_link = std::uint32_t;
inline constexpr hypothesis_link root_link = 0;
/// What no hypothesis is called.
inline constexpr hypothesis_link no_link = std::numeric_limits<hypothesis_link>::max();

/// The hypotheses of a search as a tree: each is a token and the hypothesis before it, so that what many share stands
/// there once. Adding is O(1) and reading a hypothesis linear in its length. Nothing is ever removed: a search keeps
/// one link for every hypothesis that lived. Misuse: a link that was not given out.
class hypothesis_links {
 public:
  hypothesis_links() { clear(); }

  /// Back to the root alone; storage stays.
  void clear() { links_.assign(1, {root_link, no_token, 0}); }

  /// Makes room, so that adding does not allocate.
  void reserve(std::size_t count) { links_.reserve(count + 1); }

  /// The hypothesis that goes on from another with a token.
  hypothesis_link add(hypothesis_link parent, token_id token) {
    DECANT_ASSERT(links_.size() < no_link, "too many hypotheses");
    links_.push_back({parent, token, at(parent).length + 1});
    return static_cast<hypothesis_link>(links_.size() - 1);
  }

  [[nodiscard]] hypothesis_link parent(hypothesis_link link) const { return at(link).parent; }
  /// The last token; no_token for the root.
  [[nodiscard]] token_id token(hypothesis_link link) const { return at(link).token; }
  /// The number of tokens.
  [[nodiscard]] std::size_t length(hypothesis_link link) const { return at(link).length; }
  /// The number of links, the root among them.
  [[nodiscard]] std::size_t size() const { return links_.size(); }

  /// The tokens of a hypothesis that follow its first `skip`, oldest first.
  void tokens(hypothesis_link link, std::vector<token_id>& out, std::size_t skip = 0) const {
    const std::size_t all = length(link);
    DECANT_ASSERT(skip <= all, "a hypothesis has not so many tokens");
    out.resize(all - skip);
    for (std::size_t i = out.size(); i > 0; --i, link = parent(link)) out[i - 1] = token(link);
  }
  [[nodiscard]] std::vector<token_id> tokens(hypothesis_link link) const {
    std::vector<token_id> out;
    tokens(link, out);
    return out;
  }

  /// The longest hypothesis that two begin with. Linear in the steps up to it.
  [[nodiscard]] hypothesis_link common(hypothesis_link a, hypothesis_link b) const {
    while (a != b) (length(a) >= length(b) ? a : b) = parent(length(a) >= length(b) ? a : b);
    return a;
  }

 private:
  struct link_data {
    hypothesis_link parent;
    token_id token;
    std::uint32_t length;
  };

  [[nodiscard]] const link_data& at(hypothesis_link link) const {
    DECANT_ASSERT(link < links_.size(), "no such hypothesis");
    return links_[link];
  }

  std::vector<link_data> links_;
};

}  // namespace decant
