// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/generate/output.hpp>

namespace decant::detail {

/// The rows of a target's heads at the last token that it was seen to hold, kept until the next draft: what drafters
/// that live on heads have in common. Runs every head once for each pass that it is shown.
class head_rows {
 public:
  template <HeadedModel M>
  void observe(M& model, std::span<const std::size_t> rows) {
    if (rows.empty()) return;
    count_ = model.head_count();
    if (rows_.size() < count_) rows_.resize(count_);
    for (std::size_t k = 1; k <= count_; ++k) {
      const auto row = without_padding(model, model.head_row(k, rows.back()));
      rows_[k - 1].assign(row.begin(), row.end());
    }
  }

  void reset() noexcept { count_ = 0; }

  /// The row about the token `ahead` places (from 1) after the one that waits for its pass, which the model's own row
  /// has decided. Empty where no head sees so far, or nothing was observed.
  [[nodiscard]] std::span<const float> row(std::size_t ahead) const {
    return ahead >= 1 && ahead <= count_ ? std::span<const float>(rows_[ahead - 1]) : std::span<const float>();
  }

 private:
  std::size_t count_ = 0;
  std::vector<std::vector<float>> rows_;
};

}  // namespace decant::detail
