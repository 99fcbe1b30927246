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

/// Bans the end until the output has `count` tokens, however long the prompt is.
///
/// Effect: while fewer are there, every one of the end tokens is banned, which may empty the row; the other logits stay
/// as they are. The end token itself does not count as one of the `count`. O(end tokens), sparse edits.
/// Off: count = 0, or no end tokens. Errors: parameter_error for a negative count; an id outside the vocabulary is
/// misuse, found when it would be banned. Reference: Hugging Face transformers, "min_new_tokens".
class min_new_tokens : public made_or_error<min_new_tokens> {
 public:
  static constexpr std::string_view name = "min_new_tokens";

  min_new_tokens(std::int64_t count, std::vector<token_id> end_tokens)
      : count_(count), end_tokens_(std::move(end_tokens)) {
    detail::raise_if(validate(count_, end_tokens_));
  }

  static std::optional<parameter_fault> validate(std::int64_t count, const std::vector<token_id>&) {
    if (count >= 0) return {};
    return parameter_fault{name, "count", static_cast<double>(count), "must be >= 0"};
  }

  void operator()(candidates& row, const step_context& context) const {
    if (context.output().size() >= static_cast<std::size_t>(count_)) return;
    row.ban(end_tokens_);
  }

  [[nodiscard]] bool off() const { return count_ == 0 || end_tokens_.empty(); }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {static_cast<double>(count_)}); }

 private:
  std::int64_t count_;
  std::vector<token_id> end_tokens_;
};

}  // namespace decant
