// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/processors/token_list.hpp>

namespace decant {

/// Bans the listed tokens at every step.
///
/// Effect: the other logits stay as they are. May ban every token: the row is then empty. O(list), sparse edits.
/// Off: an empty list. Errors: none at construction; an id outside the vocabulary is misuse, found when a row is
/// processed. Reference: Radford et al., "Robust speech recognition via large-scale weak supervision", ICML 2023,
/// arXiv 2212.04356, whose decoder suppresses non-speech tokens.
class suppress_tokens : public made_or_error<suppress_tokens> {
 public:
  static constexpr std::string_view name = "suppress_tokens";

  explicit suppress_tokens(std::vector<token_id> ids) : ids_(std::move(ids)) {}

  static std::optional<parameter_fault> validate(const std::vector<token_id>&) { return {}; }

  void operator()(candidates& row, const step_context&) const { row.ban(ids_); }

  [[nodiscard]] bool off() const { return ids_.empty(); }
  [[nodiscard]] std::string describe() const { return detail::counted_text(name, ids_.size()); }

 private:
  std::vector<token_id> ids_;
};

}  // namespace decant
