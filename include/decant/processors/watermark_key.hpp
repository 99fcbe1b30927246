// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <decant/core/context.hpp>
#include <decant/core/token.hpp>
#include <decant/math/philox.hpp>

namespace decant {

/// How a watermark gets its pseudo-random choices from key and context.
enum class hashing : std::uint8_t {
  decant,  ///< Philox and SplitMix64: the same on every machine
  hf,      ///< the choices of Hugging Face transformers on a CPU, bit for bit
};

/// What a watermark's key is used for: the same key gives each use other numbers.
enum class watermark_use : std::uint8_t { green_list = 1, candidate, unigram, synthid, gumbel };

/// 64 bits from a watermark's key and some tokens in their order. One Philox block a token, and one more.
[[nodiscard]] inline std::uint64_t watermark_key(std::uint64_t key, watermark_use use,
                                                 std::span<const token_id> tokens = {}) noexcept {
  const auto next = [&](std::uint32_t word, std::uint32_t last) {
    const auto words = math::philox4x32({word, static_cast<std::uint32_t>(use), last, 0x7761746D}, key);
    key = words[0] | static_cast<std::uint64_t>(words[1]) << 32;
  };
  next(static_cast<std::uint32_t>(tokens.size()), 1);
  for (const token_id token : tokens) next(static_cast<std::uint32_t>(token), 0);
  return key;
}

/// The tokens of a text before each of its places, `width` of them, and which of these contexts have been seen.
///
/// Before the first token stand as many zeros as one likes, for Hugging Face's reading; others ask only for places with
/// `width` tokens before them. A view: the text must stay alive.
class context_windows {
 public:
  context_windows(std::span<const token_id> text, std::size_t width) : text_(text), width_(width) {}

  /// Token i of the context before `place`, from 0, oldest first.
  [[nodiscard]] token_id token(std::size_t place, std::size_t i) const {
    return place + i < width_ ? 0 : text_[place + i - width_];
  }

  /// Whether the context before `place` stands before one of the places first .. place - 1 too, of which only the last
  /// `reach` are looked at. O(places), and the width where a last token agrees.
  [[nodiscard]] bool seen_before(std::size_t place, std::size_t first, std::size_t reach) const {
    if (place > reach) first = std::max(first, place - reach);
    for (std::size_t other = first; other < place; ++other) {
      if (alike(place, other)) return true;
    }
    return false;
  }

 private:
  [[nodiscard]] bool alike(std::size_t a, std::size_t b) const {
    for (std::size_t i = width_; i-- > 0;) {
      if (token(a, i) != token(b, i)) return false;
    }
    return true;
  }

  std::span<const token_id> text_;
  std::size_t width_;
};

}  // namespace decant
