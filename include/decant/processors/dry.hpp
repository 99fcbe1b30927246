// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/token_counts.hpp>
#include <decant/math/scalar.hpp>
#include <decant/processors/common_suffixes.hpp>
#include <decant/processors/history.hpp>
#include <decant/processors/sequence_breakers.hpp>

namespace decant {

/// The numbers of DRY; those not given have their usual values.
struct dry_options {
  double multiplier = 0.8;         ///< the penalty of the shortest repeat that counts; 0: off
  double base = 1.75;              ///< by what each further token multiplies it
  std::size_t allowed_length = 2;  ///< shorter repeats are free; 0: a token that has occurred at all is a repeat
  std::size_t range = 0;           ///< only so many last tokens are seen, prompt included; 0: all
  bool penalise_breakers = false;  ///< also tokens in which a breaker ends
};

/// Lowers a token's logit by the more the longer the repeat that it would go on with ("don't repeat yourself").
///
/// Effect: where the last m tokens have stood before, followed by v, v continues a repeat of length m. With m the
/// longest for v, and m >= allowed_length, v loses multiplier * base^(m - allowed_length). The exponent ends where the
/// power would pass the largest float. Repeats may overlap. None holds a token that is broken by a breaker, neither at
/// the end of the text nor where it stood before. Sees the prompt and the output. Shifting all logits changes nothing.
/// O(tokens seen and their bytes), sparse edits; nothing allocates in steady state.
/// Off: multiplier = 0. Errors: parameter_error unless the multiplier is a finite number >= 0, and the base one >= 1.
/// Reference: p-e-w, "DRY: a modern repetition penalty", text-generation-webui pull request 5677, 2024.
class dry : public made_or_error<dry> {
 public:
  static constexpr std::string_view name = "dry";

  explicit dry(const dry_options& options, sequence_breakers breakers = {})
      : options_(options), breakers_(std::move(breakers)) {
    detail::raise_if(validate(options));
    // As a number first: with a base next to 1 it is beyond any text.
    const double exponents = options.base > 1 ? math::log(largest_power) / math::log(options.base) : longest;
    most_ = static_cast<std::uint32_t>(std::min(exponents, longest));
  }

  static std::optional<parameter_fault> validate(const dry_options& options, const sequence_breakers& = {}) {
    if (!(options.multiplier >= 0) || !math::is_finite(options.multiplier)) {
      return parameter_fault{name, "multiplier", options.multiplier, "must be a finite number >= 0"};
    }
    if (!(options.base >= 1) || !math::is_finite(options.base)) {
      return parameter_fault{name, "base", options.base, "must be a finite number >= 1"};
    }
    return {};
  }

  void operator()(candidates& row, const step_context& context) {
    if (off()) return;
    const bool all = options_.range == 0 || options_.range >= context.tokens.size();
    const auto tokens = all ? context.tokens : context.tokens.last(options_.range);
    if (tokens.size() <= options_.allowed_length) return;
    const auto at = breakers_.unbroken(tokens, unbroken_);
    if (unbroken_.back() < options_.allowed_length) return;
    common_suffixes(tokens, repeats_);
    longest_.start(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::uint32_t before = i == 0 ? 0 : unbroken_[i - 1];
      const std::uint32_t length = std::min({repeats_[i], before, unbroken_.back()});
      if (length < options_.allowed_length) continue;
      std::uint32_t& known = longest_.of(tokens[i]);
      known = std::max(known, length);
    }
    for (const auto& [id, length] : longest_.items()) {
      if (!options_.penalise_breakers && breakers_.end_in(id, at)) continue;
      row.add(id, math::saturated(-math::product(options_.multiplier, power(length))));
    }
  }

  [[nodiscard]] bool off() const { return options_.multiplier == 0; }
  [[nodiscard]] std::string describe() const {
    std::string text =
        detail::call_text(name, {options_.multiplier, options_.base, static_cast<double>(options_.allowed_length)});
    if (options_.range != 0) text = detail::with_option(std::move(text), "range", detail::number_text(options_.range));
    if (!breakers_.off()) {
      text = detail::with_option(std::move(text), "breakers", detail::number_text(breakers_.size()));
    }
    if (options_.penalise_breakers) text = detail::with_option(std::move(text), "penalise_breakers", "true");
    return text;
  }

 private:
  static constexpr double largest_power = static_cast<double>(std::numeric_limits<float>::max());
  static constexpr double longest = static_cast<double>(std::numeric_limits<std::uint32_t>::max());

  /// base^(length - allowed_length): by squaring, so that it has the same bits everywhere.
  [[nodiscard]] double power(std::uint32_t length) const {
    double result = 1, square = options_.base;
    for (auto n = std::min(length - static_cast<std::uint32_t>(options_.allowed_length), most_); n > 0; n /= 2) {
      if (n % 2 == 1) result = math::product(result, square);
      if (n > 1) square = math::product(square, square);
    }
    return result;
  }

  dry_options options_;
  sequence_breakers breakers_;
  std::uint32_t most_ = 0;
  std::vector<std::uint32_t> repeats_, unbroken_;
  token_counts longest_;
};

}  // namespace decant
