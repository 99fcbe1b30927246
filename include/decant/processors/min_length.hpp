// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>

namespace decant {

/// Bans the end until prompt and output together have `length` tokens.
///
/// Effect: while fewer are there, every one of the end tokens is banned, which may empty the row; the other logits stay
/// as they are. The end token itself does not count as one of the `length`. O(end tokens), sparse edits. See
/// min_new_tokens to count the output alone.
/// Off: length = 0, or no end tokens. Errors: parameter_error for a negative length; an id outside the vocabulary is
/// misuse, found when it would be banned. Reference: Hugging Face transformers, "min_length".
class min_length : public made_or_error<min_length> {
 public:
  static constexpr std::string_view name = "min_length";

  min_length(std::int64_t length, std::vector<token_id> end_tokens)
      : length_(length), end_tokens_(std::move(end_tokens)) {
    detail::raise_if(validate(length_, end_tokens_));
  }

  static std::optional<parameter_fault> validate(std::int64_t length, const std::vector<token_id>&) {
    if (length >= 0) return {};
    return parameter_fault{name, "length", static_cast<double>(length), "must be >= 0"};
  }

  void operator()(candidates& row, const step_context& context) const {
    if (context.tokens.size() >= static_cast<std::size_t>(length_)) return;
    row.ban(end_tokens_);
  }

  [[nodiscard]] bool off() const { return length_ == 0 || end_tokens_.empty(); }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {static_cast<double>(length_)}); }

 private:
  std::int64_t length_;
  std::vector<token_id> end_tokens_;
};

}  // namespace decant
