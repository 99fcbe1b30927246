// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <decant/core/token.hpp>
#include <decant/generate/stopping.hpp>

// Where an output ends whatever it says. `Options` have max_new_tokens and context_length: how long an output may
// become, and prompt and output together, where 0 is no limit.

namespace decant::detail {

/// Whether one of a few tokens, such as those that end an output, is this.
[[nodiscard]] inline bool is_among(std::span<const token_id> tokens, token_id token) {
  return std::ranges::find(tokens, token) != tokens.end();
}

/// Which limit an output of so many tokens has reached: its own length before the context, or none.
template <class Options>
[[nodiscard]] finish_reason limit_reached(const Options& options, std::size_t prompt, std::size_t output) {
  if (output >= options.max_new_tokens) return finish_reason::length;
  const std::size_t context = options.context_length;
  return context > 0 && prompt + output >= context ? finish_reason::context_full : finish_reason::none;
}

/// How many tokens may still come before a limit is reached.
template <class Options>
[[nodiscard]] std::size_t room_left(const Options& options, std::size_t prompt, std::size_t output = 0) {
  const std::size_t wanted = options.max_new_tokens - std::min(options.max_new_tokens, output);
  const std::size_t context = options.context_length;
  return context == 0 ? wanted : std::min(wanted, context - std::min(context, prompt + output));
}

/// A context length that is not given is the model's, if it has one.
template <class Options, class M>
void adopt_context_of(Options& options, M& model) {
  if constexpr (requires { model.sequence_length(); }) {
    if (options.context_length == 0) options.context_length = model.sequence_length();
  }
}

}  // namespace decant::detail
