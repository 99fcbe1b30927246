// SPDX-License-Identifier: MIT
#pragma once

// Vocabularies and texts for policies that look at bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <decant/processors/vocabulary_bytes.hpp>

#include "processors/policies.hpp"

namespace texts {

using namespace policies;
using strings = std::vector<std::string>;

inline decant::vocabulary_bytes vocabulary(const strings& pieces) {
  return {[&](token_id token) { return std::string_view(pieces[static_cast<std::size_t>(token)]); }, pieces.size()};
}

/// One byte a token: its id.
inline decant::vocabulary_bytes bytes_as_tokens() {
  return {[](token_id token) { return std::string(1, static_cast<char>(token)); }, 256};
}

inline tokens spelled(std::string_view text) {
  tokens out;
  for (const char byte : text) out.push_back(static_cast<std::uint8_t>(byte));
  return out;
}

inline tokens random_text(std::uint64_t seed, std::size_t size, std::size_t symbols) {
  const draw_stream draws(seed);
  tokens out;
  for (std::size_t i = 0; i < size; ++i) {
    out.push_back(static_cast<token_id>(draws.at(i).uniform(decant::purpose::user) * static_cast<double>(symbols)));
  }
  return out;
}

/// Which tokens an occurrence of a breaker has bytes of, or around it.
inline std::vector<bool> broken(const tokens& text, const strings& breakers, const strings& pieces) {
  std::string bytes;
  std::vector<std::size_t> owner;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string& piece = pieces[static_cast<std::size_t>(text[i])];
    bytes += piece;
    owner.insert(owner.end(), piece.size(), i);
  }
  std::vector<bool> out(text.size());
  for (const std::string& breaker : breakers) {
    for (std::size_t at = bytes.find(breaker); at != std::string::npos; at = bytes.find(breaker, at + 1)) {
      for (std::size_t i = owner[at]; i <= owner[at + breaker.size() - 1]; ++i) out[i] = true;
    }
  }
  return out;
}

}  // namespace texts
