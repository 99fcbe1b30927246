// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>

#include <decant/core/draws.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// What a processor or sampler may know of the step beside the row: values only, valid during the call.
struct step_context {
  std::span<const token_id> tokens;  ///< prompt and output so far, oldest first
  std::size_t prompt_size = 0;       ///< how many of them are the prompt
  draw_stream draws;                 ///< at position tokens.size()

  /// The tokens generated so far.
  [[nodiscard]] std::span<const token_id> output() const {
    DECANT_ASSERT(prompt_size <= tokens.size(), "the prompt is longer than all tokens");
    return tokens.subspan(prompt_size);
  }
};

/// The context of the step that decides the token after `tokens`: sets the draw position to match.
inline step_context context_after(std::span<const token_id> tokens, std::size_t prompt_size, const draw_stream& draws) {
  DECANT_ASSERT(prompt_size <= tokens.size(), "the prompt is longer than all tokens");
  return {tokens, prompt_size, draws.at(tokens.size())};
}

}  // namespace decant
