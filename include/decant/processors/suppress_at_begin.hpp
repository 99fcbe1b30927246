// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/processors/token_list.hpp>

namespace decant {

struct suppress_at_begin_options {
  /// Hugging Face's reading: the step that has exactly this many tokens, prompt included, instead of the first one of
  /// the output.
  std::optional<std::size_t> begin_index{};
};

/// Bans the listed tokens as the first token of the output.
///
/// Effect: while the output is empty, as suppress_tokens; later nothing. O(list), sparse edits.
/// Off: an empty list. Errors: none at construction; an id outside the vocabulary is misuse, found when it would be
/// banned. Reference: Radford et al., "Robust speech recognition via large-scale weak supervision", ICML 2023,
/// arXiv 2212.04356, whose decoder may not begin with a blank or the end.
class suppress_at_begin : public made_or_error<suppress_at_begin> {
 public:
  static constexpr std::string_view name = "suppress_at_begin";

  explicit suppress_at_begin(std::vector<token_id> ids, suppress_at_begin_options options = {})
      : ids_(std::move(ids)), options_(options) {}

  static std::optional<parameter_fault> validate(const std::vector<token_id>&, suppress_at_begin_options = {}) {
    return {};
  }

  void operator()(candidates& row, const step_context& context) const {
    if (context.tokens.size() != options_.begin_index.value_or(context.prompt_size)) return;
    row.ban(ids_);
  }

  [[nodiscard]] bool off() const { return ids_.empty(); }
  [[nodiscard]] std::string describe() const {
    return detail::option_text(detail::counted_text(name, ids_.size()), options_.begin_index.has_value(),
                               "begin_index = " + std::to_string(options_.begin_index.value_or(0)));
  }

 private:
  std::vector<token_id> ids_;
  suppress_at_begin_options options_;
};

}  // namespace decant
