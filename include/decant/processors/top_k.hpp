// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/processors/keep_within.hpp>
#include <decant/processors/ties.hpp>

namespace decant {

/// Keeps the k tokens with the largest logits: exactly k, ties by lower id.
///
/// Effect: k at or above the number of tokens left keeps them all; k = 1 is greedy. With ties::keep, tokens exactly
/// level with the last of the k stay too, so that more than k may be left. One pass and a selection; ties::keep costs
/// four passes more.
/// Off: k <= 0. Errors: none, every k has a meaning.
/// Reference: Fan, Lewis, Dauphin, "Hierarchical neural story generation", ACL 2018, arXiv 1805.04833.
class top_k : public made_or_error<top_k> {
 public:
  static constexpr std::string_view name = "top_k";
  static constexpr bool argmax_invariant = true;

  /// Keeps at least `min_keep` tokens (at least one).
  explicit top_k(std::int64_t k, std::size_t min_keep = 1, ties at_border = ties::lower_id)
      : k_(k), min_keep_(min_keep), at_border_(at_border) {}

  static std::optional<parameter_fault> validate(std::int64_t, std::size_t = 1, ties = ties::lower_id) { return {}; }

  void operator()(candidates& row, const step_context&) const {
    if (off()) return;
    const std::size_t count = std::max(static_cast<std::size_t>(k_), min_keep_);
    if (at_border_ == ties::lower_id) return row.keep_largest(count);
    if (count < row.size()) detail::keep_within(row, detail::above_every_token, count, ties::keep);
  }

  [[nodiscard]] bool off() const { return k_ <= 0; }
  [[nodiscard]] std::string describe() const {
    const auto k = static_cast<double>(k_);
    return min_keep_ > 1 ? detail::call_text(name, {k, static_cast<double>(min_keep_)}) : detail::call_text(name, {k});
  }

 private:
  std::int64_t k_;
  std::size_t min_keep_;
  ties at_border_;
};

}  // namespace decant
