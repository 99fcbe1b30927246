// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// What stands between two vocabularies: bytes of one vocabulary's tokens, and the other's way to split bytes.
struct retokeniser {
  std::function<std::string_view(token_id)> bytes{};                      ///< of a token of the first vocabulary
  std::function<std::vector<token_id>(std::string_view bytes)> encode{};  ///< into tokens of the second

  /// The tokens of the second vocabulary for the bytes of a text in the first, which is left in `text`.
  [[nodiscard]] std::vector<token_id> operator()(std::span<const token_id> tokens, std::string& text) const {
    DECANT_ASSERT(bytes && encode, "retokenising needs both of its functions");
    text.clear();
    for (const token_id token : tokens) text += bytes(token);
    return encode(text);
  }
};

}  // namespace decant
