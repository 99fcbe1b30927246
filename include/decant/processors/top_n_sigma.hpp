// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>
#include <decant/processors/keep_within.hpp>

namespace decant {

/// Which standard deviation top_n_sigma measures with.
enum class deviation : std::uint8_t {
  population,  ///< divides by the number of tokens, as llama.cpp does
  unbiased,    ///< divides by one less, as the authors' code does
};

/// Keeps tokens within n standard deviations of the largest logit.
///
/// Effect: keeps logit >= max - n * sigma, sigma over the tokens left, so that temperature and shifts change nothing.
/// Put it before other truncations. n = 0 keeps the maximum and its exact ties. One pass, rarely more.
/// Off: n = +infinity. Errors: parameter_error for NaN or negative n.
/// Reference: Tang, Liu, Xu, Huang, Chen, "Top-n-sigma: not all logits are you need", ACL 2025, arXiv 2411.07641.
class top_n_sigma : public made_or_error<top_n_sigma> {
 public:
  static constexpr std::string_view name = "top_n_sigma";
  static constexpr bool argmax_invariant = true;

  /// Keeps at least `min_keep` tokens (at least one).
  explicit top_n_sigma(double n, std::size_t min_keep = 1, deviation kind = deviation::population)
      : n_(n), min_keep_(min_keep), kind_(kind) {
    detail::raise_if(validate(n));
  }

  static std::optional<parameter_fault> validate(double n, std::size_t = 1, deviation = deviation::population) {
    if (n >= 0) return {};
    return parameter_fault{name, "n", n, "must be a number >= 0"};
  }

  void operator()(candidates& row, const step_context&) const {
    if (!off()) row.keep_within_sigmas(n_, min_keep_, kind_ == deviation::unbiased ? 1 : 0);
  }

  [[nodiscard]] bool off() const { return !math::is_finite(n_); }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {n_}); }

 private:
  double n_;
  std::size_t min_keep_;
  deviation kind_;
};

}  // namespace decant
