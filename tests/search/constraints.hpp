// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <decant/core/token.hpp>

// Constraints to search with: one of the plain kind, one with progress.

namespace search_test {

using decant::token_id;

/// No token twice in a row, and at least two tokens.
struct no_doubles {
  std::size_t vocabulary;
  std::vector<token_id> text{};

  void fill(std::span<std::uint64_t> mask) const {
    for (std::size_t id = 0; id < vocabulary; ++id) {
      if (text.empty() || static_cast<std::size_t>(text.back()) != id) mask[id / 64] |= std::uint64_t{1} << (id % 64);
    }
  }
  void accept(token_id token) { text.push_back(token); }
  void rollback(std::size_t count) { text.resize(text.size() - count); }
  [[nodiscard]] bool finished() const { return text.size() >= 2; }
};

/// The given tokens, in their order, with anything between them.
struct tokens_in_order {
  std::vector<token_id> wanted;
  std::vector<std::size_t> found{0};

  void fill(std::span<std::uint64_t> mask) const {
    for (std::uint64_t& word : mask) word = ~std::uint64_t{0};
  }
  void accept(token_id token) { found.push_back(progress_after(token)); }
  void rollback(std::size_t count) { found.resize(found.size() - count); }
  [[nodiscard]] bool finished() const { return progress() == goal(); }
  [[nodiscard]] std::size_t progress() const { return found.back(); }
  [[nodiscard]] std::size_t progress_after(token_id token) const {
    return progress() + (progress() < goal() && wanted[progress()] == token ? 1 : 0);
  }
  [[nodiscard]] std::size_t goal() const { return wanted.size(); }
  void advancing(std::vector<token_id>& tokens) const {
    if (progress() < goal()) tokens.push_back(wanted[progress()]);
  }
};

}  // namespace search_test
