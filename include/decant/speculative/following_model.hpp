// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/generate/output.hpp>

namespace decant::detail {

/// A model that is made to hold whatever text it is asked about, at the cost of what differs from the text before. The
/// model is the drafter's alone: nobody else may change what it holds.
template <Model M>
class following_model {
 public:
  explicit following_model(M& model) : model_(&model) {}

  [[nodiscard]] M& model() const { return *model_; }

  /// Whether a text of so many tokens has room.
  [[nodiscard]] bool fits(std::size_t size) const {
    if constexpr (requires { model_->sequence_length(); }) {
      return size <= model_->sequence_length();
    } else {
      return true;
    }
  }

  /// Makes the model hold all but the last `pending` tokens of a text or more of them, so that the tokens from
  /// model().size() on are to be evaluated. Returns these.
  std::span<const token_id> follow(std::span<const token_id> tokens, std::size_t pending = 1) {
    DECANT_ASSERT(pending <= tokens.size(), "more tokens pending than there are");
    const std::size_t held = std::min({held_.size(), model_->size(), tokens.size() - pending});
    const auto differs =
        std::mismatch(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(held), tokens.begin());
    const auto common = static_cast<std::size_t>(differs.first - held_.begin());
    model_->truncate(common);
    held_.assign(tokens.begin(), tokens.end());
    return tokens.subspan(common);
  }

  /// The row of logits after a text, without what pads it.
  [[nodiscard]] std::span<const float> row_after(std::span<const token_id> tokens) {
    return trimmed(std::span<const float>(model_->evaluate(follow(tokens))));
  }

  [[nodiscard]] std::span<const float> trimmed(std::span<const float> row) const {
    return without_padding(*model_, row);
  }

 private:
  M* model_;
  std::vector<token_id> held_;  // what the model holds begins like this, unless it was truncated since
};

}  // namespace decant::detail
