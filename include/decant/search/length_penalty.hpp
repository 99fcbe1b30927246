// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <decant/core/errors.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// How the log-probability of a hypothesis becomes its score, given how many tokens were generated, an end among them.
///
/// Without one, every token more makes a hypothesis worse: log-probabilities are negative. `power(a)` divides by
/// length^a, so a > 0 favours longer output, a < 0 shorter; `mean()` is power(1); `gnmt(a)` divides by
/// ((5 + length) / 6)^a. Any function (log-probability, length) -> score will do that does not fall where the
/// log-probability rises. The prompt is never counted. O(1).
/// Off: none(), power(0), gnmt(0). Errors: parameter_error for an exponent that is not finite.
/// Reference: Wu et al., "Google's neural machine translation system", 2016, arXiv 1609.08144.
class length_penalty {
 public:
  static constexpr std::string_view name = "length_penalty";

  length_penalty() = default;

  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, length_penalty>) &&
            std::is_invocable_r_v<double, F&, double, std::size_t>
  length_penalty(F function) : custom_(std::move(function)) {}

  static length_penalty none() { return {}; }
  static length_penalty power(double exponent) { return {exponent, form::power}; }
  static length_penalty mean() { return power(1); }
  static length_penalty gnmt(double exponent) { return {exponent, form::gnmt}; }

  static std::optional<parameter_fault> validate(double exponent) {
    if (math::is_finite(exponent)) return {};
    return parameter_fault{name, "exponent", exponent, "must be finite"};
  }

  /// The score of a hypothesis of `length` >= 1 tokens.
  [[nodiscard]] double operator()(double log_prob, std::size_t length) const {
    return custom_ ? custom_(log_prob, length) : log_prob / divisor(length);
  }

  /// The best score of a hypothesis that ends with from .. to tokens and no more than this log-probability. O(1), for a
  /// function of the user's O(to - from).
  [[nodiscard]] double best(double log_prob, std::size_t from, std::size_t to) const {
    const length_penalty& score = *this;
    double most = std::max(score(log_prob, from), score(log_prob, to));
    if (!custom_) return most;  // monotone in the length
    for (std::size_t length = from + 1; length < to; ++length) most = std::max(most, score(log_prob, length));
    return most;
  }

 private:
  enum class form : unsigned char { power, gnmt };

  length_penalty(double exponent, form how) : exponent_(exponent), form_(how) { detail::raise_if(validate(exponent)); }

  [[nodiscard]] double divisor(std::size_t length) const {
    const double base = form_ == form::gnmt ? (5 + static_cast<double>(length)) / 6 : static_cast<double>(length);
    if (exponent_ == 0) return 1;
    return exponent_ == 1 ? base : math::exp(math::product(exponent_, math::log(base)));
  }

  double exponent_ = 0;
  form form_ = form::power;
  std::function<double(double, std::size_t)> custom_;
};

}  // namespace decant
