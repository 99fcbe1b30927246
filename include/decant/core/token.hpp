// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>

#include <decant/math/strict.hpp>

namespace decant {

/// A token's number in the vocabulary: 0 .. vocabulary size - 1.
using token_id = std::int32_t;

/// What a sampler returns when there is nothing to draw: the row is empty or not finite.
inline constexpr token_id no_token = -1;

/// The logit of a token that cannot be drawn. A token that is gone stays gone.
/// Its bits are stated, because -ffast-math lets a compiler assume that infinity does not exist.
inline constexpr float gone = std::bit_cast<float>(0xFF800000U);

/// Whether a stored logit is -inf. (By reference: clang++ -ffast-math takes it as read that no float passed by value is
/// infinite.)
constexpr bool is_gone(const float& logit) noexcept { return std::bit_cast<std::uint32_t>(logit) == 0xFF800000U; }

/// `gone` where it is returned, or chosen, by value: clang++ -ffast-math would take what stands on the other side of
/// the choice, if it could see which value this is.
inline float opaque_gone() noexcept { return math::rounded(gone); }

/// What a row of logits turned out to be when it was first read.
enum class row_status : std::uint8_t {
  ok,          ///< at least one token can be drawn
  empty,       ///< every token is gone: all -inf, or all banned
  not_finite,  ///< a NaN or +inf stands at a token that is not gone
};

/// A row status in words, for messages.
constexpr const char* to_string(row_status status) noexcept {
  switch (status) {
    case row_status::ok: return "ok";
    case row_status::empty: return "empty: no token can be drawn";
    case row_status::not_finite: return "not finite: NaN or +inf among the logits";
  }
  return "unknown";
}

}  // namespace decant
