// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <decant/core/context.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// Which of the tokens so far a penalty sees. The default is all that the policy sees by itself.
///
/// `frequency_penalty(0.5, {.window = 64, .prompt = true})` is what llama.cpp sees. O(1): the tokens seen are one span.
struct history_scope {
  std::size_t window = 0;                ///< only the last so many of what the rest of the scope leaves; 0: all
  std::optional<bool> prompt{};          ///< whether the prompt is seen beside the output; absent: as the policy has it
  std::size_t ignore_prompt_prefix = 0;  ///< so many tokens at the start of the prompt are not seen

  /// The tokens seen; `prompt_by_default` is what the policy has.
  [[nodiscard]] std::span<const token_id> of(const step_context& context, bool prompt_by_default) const {
    auto seen = prompt.value_or(prompt_by_default)
                    ? context.tokens.subspan(std::min(ignore_prompt_prefix, context.prompt_size))
                    : context.output();
    return window == 0 || window >= seen.size() ? seen : seen.last(window);
  }

  friend bool operator==(const history_scope&, const history_scope&) = default;
};

namespace detail {

/// "top_p(0.9)" and "min_keep", 2 make "top_p(0.9, min_keep = 2)".
inline std::string with_option(std::string call, std::string_view option, std::string_view value) {
  if (call.ends_with(')')) {
    call.back() = ',';
    call += ' ';
  } else {
    call += '(';
  }
  call += option;
  call += " = ";
  call += value;
  call += ')';
  return call;
}

/// A policy's text with what is not default about its scope.
inline std::string with_scope(std::string call, const history_scope& scope, bool prompt_by_default) {
  if (scope.window != 0) call = with_option(std::move(call), "window", number_text(scope.window));
  if (scope.prompt && *scope.prompt != prompt_by_default) {
    call = with_option(std::move(call), "prompt", *scope.prompt ? "true" : "false");
  }
  if (scope.ignore_prompt_prefix != 0) {
    call = with_option(std::move(call), "ignore_prompt_prefix", number_text(scope.ignore_prompt_prefix));
  }
  return call;
}

}  // namespace detail

}  // namespace decant
