// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/processors/token_list.hpp>

namespace decant {

/// Keeps only the listed tokens.
///
/// Effect: their logits stay as they are, so one that is gone stays gone; if all of them are, the row is empty. Order
/// and repetitions in the list do not matter. O(list + n / 64).
/// Off: none; list every token to allow all. Errors: parameter_error for an empty list, which no row survives; an id
/// outside the vocabulary is misuse, found when a row is processed. Reference: vLLM, "allowed_token_ids".
class allowed_tokens : public made_or_error<allowed_tokens> {
 public:
  static constexpr std::string_view name = "allowed_tokens";

  explicit allowed_tokens(std::vector<token_id> ids) : ids_(std::move(ids)) { detail::raise_if(validate(ids_)); }

  static std::optional<parameter_fault> validate(const std::vector<token_id>& ids) {
    if (!ids.empty()) return {};
    return parameter_fault{name, "number of ids", 0, "must be >= 1"};
  }

  void operator()(candidates& row, const step_context&) const { row.allow(std::span<const token_id>(ids_)); }

  [[nodiscard]] std::string describe() const { return detail::counted_text(name, ids_.size()); }

 private:
  std::vector<token_id> ids_;
};

}  // namespace decant
