// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/token.hpp>

namespace decant::detail {

/// The rows of a target's heads at the last token that it holds, kept until the next draft: what drafters that live on
/// heads have in common. Runs every head once for each pass that it is shown.
class head_rows {
 public:
  template <HeadedModel M>
  void observe(M& model, std::span<const std::size_t> rows) {
    if (rows.empty()) return;
    held_ = model.size();
    rows_.resize(model.head_count());
    for (std::size_t k = 1; k <= rows_.size(); ++k) {
      auto row = std::span(model.head_row(k, rows.back()));
      // Engines pad rows; what lies past the vocabulary is no token.
      if (const std::size_t size = model.vocabulary_size(); size > 0 && size < row.size()) row = row.first(size);
      rows_[k - 1].assign(row.begin(), row.end());
    }
  }

  void reset() noexcept { held_ = 0; }

  /// The row about the token that comes `ahead` places (from 1) after a text of `size` tokens. Empty where no head
  /// knows: nothing was observed, the text does not go on from there, or it goes on further than the heads see.
  [[nodiscard]] std::span<const float> row(std::size_t size, std::size_t ahead) const {
    // The model's own row is about token number held_ + 1, head k's about number held_ + 1 + k.
    if (held_ == 0 || size <= held_) return {};
    const std::size_t head = size - held_ + ahead - 1;
    return head <= rows_.size() ? std::span<const float>(rows_[head - 1]) : std::span<const float>();
  }

 private:
  std::size_t held_ = 0;  // tokens
  std::vector<std::vector<float>> rows_;
};

}  // namespace decant::detail
