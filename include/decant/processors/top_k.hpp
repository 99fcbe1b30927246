// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>

namespace decant {

/// Keeps the k tokens with the largest logits: exactly k, ties by lower id.
///
/// Effect: k at or above the number of tokens left keeps them all; k = 1 is greedy. One pass and a selection.
/// Off: k <= 0. Errors: none, every k has a meaning.
/// Reference: Fan, Lewis, Dauphin, "Hierarchical neural story generation", ACL 2018, arXiv 1805.04833.
class top_k : public made_or_error<top_k> {
 public:
  static constexpr std::string_view name = "top_k";

  explicit top_k(std::int64_t k) : k_(k) {}

  static std::optional<parameter_fault> validate(std::int64_t) { return {}; }

  void operator()(candidates& row, const step_context&) const {
    if (!off()) row.keep_largest(static_cast<std::size_t>(k_));
  }

  [[nodiscard]] bool off() const { return k_ <= 0; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {static_cast<double>(k_)}); }

 private:
  std::int64_t k_;
};

}  // namespace decant
