// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>

namespace decant {

/// A function that answers which tokens may come next: anything that a span of ids can look at.
template <class F>
concept AllowedTokens =
    requires(F& function, const step_context& context) { std::span<const token_id>(function(context)); };

/// Keeps only the tokens that a function of the context allows.
///
/// `prefix_allowed_tokens([](const step_context& context) { return ids; })`.
/// Effect: their logits stay as they are, so one that is gone stays gone; if nothing is allowed, or all of it is gone,
/// the row is empty. The function sees values only and must give the same ids for the same context, or speculation and
/// replay go wrong. It may return a vector, or a span of ids that it keeps. O(ids + n / 64) and the function.
/// Off: none. Errors: none; an id outside the vocabulary is misuse.
/// Reference: De Cao, Izacard, Riedel, Petroni, "Autoregressive entity retrieval", ICLR 2021, arXiv 2010.00904.
template <AllowedTokens F>
class prefix_allowed_tokens {
 public:
  static constexpr std::string_view name = "prefix_allowed_tokens";

  explicit prefix_allowed_tokens(F allowed) : allowed_(std::move(allowed)) {}

  void operator()(candidates& row, const step_context& context) {
    const auto& ids = allowed_(context);
    row.allow(std::span<const token_id>(ids));
  }

  [[nodiscard]] std::string describe() const { return std::string(name); }

 private:
  F allowed_;
};

}  // namespace decant
