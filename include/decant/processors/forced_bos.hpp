// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/processors/forcing.hpp>
#include <decant/processors/token_list.hpp>

namespace decant {

struct forced_bos_options {
  /// The step that has exactly this many tokens, prompt included, instead of the first one of the output. Hugging Face:
  /// 1.
  std::optional<std::size_t> begin_index{};
  /// Hugging Face's reading: brings the token back although it was gone, undoing bans, and makes a bad row good.
  bool revive = false;
};

/// Forces the first token of the output, such as the language to translate into.
///
/// Effect: while the output is empty only this token is left, with logit 0; later nothing. If it is gone the row is
/// empty (but see the option `revive`). Greedy and sampling then draw it without a random number. O(n / 64), O(n) with
/// `revive`.
/// Off: none. Errors: none at construction; an id outside the vocabulary is misuse, found when it would be forced.
/// Reference: Fan et al., "Beyond English-centric multilingual machine translation", JMLR 2021, arXiv 2010.11125.
class forced_bos : public made_or_error<forced_bos> {
 public:
  static constexpr std::string_view name = "forced_bos";

  explicit forced_bos(token_id token, forced_bos_options options = {}) : token_(token), options_(options) {}

  static std::optional<parameter_fault> validate(token_id, forced_bos_options = {}) { return {}; }

  void operator()(candidates& row, const step_context& context) const {
    if (context.tokens.size() != options_.begin_index.value_or(context.prompt_size)) return;
    force(row, std::span<const token_id>(&token_, 1), {.revive = options_.revive});
  }

  [[nodiscard]] std::string describe() const {
    const std::string text =
        detail::option_text(detail::call_text(name, {static_cast<double>(token_)}), options_.begin_index.has_value(),
                            "begin_index = " + std::to_string(options_.begin_index.value_or(0)));
    return detail::option_text(text, options_.revive, "revive = true");
  }

 private:
  token_id token_;
  forced_bos_options options_;
};

}  // namespace decant
