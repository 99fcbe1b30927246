// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/processors/forcing.hpp>
#include <decant/processors/token_list.hpp>

namespace decant {

/// Forces an end token as the last one that `max_length`, prompt included, has room for.
///
/// Effect: at the step that decides token number `max_length`, only the end tokens are left, each with logit 0, so that
/// several are equally probable; at other steps nothing. Those that are gone stay gone, and if all are, the row is
/// empty (but see the option `revive`). O(n / 64), O(n) with `revive`.
/// Off: max_length = 0, a length that no step reaches. Errors: parameter_error for a negative length or no end tokens;
/// an id outside the vocabulary is misuse, found when it would be forced.
/// Reference: Hugging Face transformers, "forced_eos_token_id".
class forced_eos : public made_or_error<forced_eos> {
 public:
  static constexpr std::string_view name = "forced_eos";

  forced_eos(std::int64_t max_length, std::vector<token_id> end_tokens, forcing_options options = {})
      : max_length_(max_length), end_tokens_(std::move(end_tokens)), options_(options) {
    detail::raise_if(validate(max_length_, end_tokens_));
  }

  static std::optional<parameter_fault> validate(std::int64_t max_length, const std::vector<token_id>& end_tokens,
                                                 forcing_options = {}) {
    if (max_length < 0) return parameter_fault{name, "max_length", static_cast<double>(max_length), "must be >= 0"};
    if (end_tokens.empty()) return parameter_fault{name, "number of end tokens", 0, "must be >= 1"};
    return {};
  }

  void operator()(candidates& row, const step_context& context) const {
    if (context.tokens.size() + 1 == static_cast<std::size_t>(max_length_)) force(row, end_tokens_, options_);
  }

  [[nodiscard]] bool off() const { return max_length_ == 0; }
  [[nodiscard]] std::string describe() const {
    return detail::option_text(detail::call_text(name, {static_cast<double>(max_length_)}), options_.revive,
                               "revive = true");
  }

 private:
  std::int64_t max_length_;
  std::vector<token_id> end_tokens_;
  forcing_options options_;
};

}  // namespace decant
