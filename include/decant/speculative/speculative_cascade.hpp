// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/math/scalar.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/residual.hpp>
#include <decant/speculative/verdict.hpp>

namespace decant {

namespace detail {

template <class Law>
number_of<Law> largest_probability(const Law& from) {
  return from.weights.empty() ? number_of<Law>(0) : largest_weight(from) / from.total;
}

inline std::optional<parameter_fault> cascade_fault(std::string_view policy, double alpha) {
  if (alpha >= 0 && math::is_finite(alpha)) return {};
  return parameter_fault{policy, "alpha", alpha, "must be a finite number >= 0"};
}

}  // namespace detail

/// Defers to the target where the draft's own confidence, its largest probability, is below 1 - alpha. alpha = 0 defers
/// unless the draft is certain.
/// Errors: parameter_error unless alpha is a finite number >= 0. Reference: see speculative_cascade.
class chow_deferral : public made_or_error<chow_deferral> {
 public:
  static constexpr std::string_view name = "chow_deferral";

  explicit chow_deferral(double alpha) : alpha_(alpha) { detail::raise_if(validate(alpha)); }
  static std::optional<parameter_fault> validate(double alpha) { return detail::cascade_fault(name, alpha); }

  template <class Law>
  [[nodiscard]] bool operator()(const Law&, const Law& q) const {
    return detail::largest_probability(q) < number_of<Law>(1 - alpha_);
  }

  [[nodiscard]] std::string describe() const { return detail::call_text(name, {alpha_}); }

 private:
  double alpha_;
};

/// Defers to the target where its largest probability exceeds the draft's by more than alpha times the distance of the
/// two laws, which is the share of drafts that deferring would reject.
/// Errors: parameter_error unless alpha is a finite number >= 0. Reference: see speculative_cascade.
class optimal_deferral : public made_or_error<optimal_deferral> {
 public:
  static constexpr std::string_view name = "optimal_deferral";

  explicit optimal_deferral(double alpha) : alpha_(alpha) { detail::raise_if(validate(alpha)); }
  static std::optional<parameter_fault> validate(double alpha) { return detail::cascade_fault(name, alpha); }

  template <class Law>
  [[nodiscard]] bool operator()(const Law& p, const Law& q) const {
    using number = number_of<Law>;
    const number distance = excess(p, number(1), q);
    return detail::largest_probability(q) < detail::largest_probability(p) - number(alpha_) * distance;
  }

  [[nodiscard]] std::string describe() const { return detail::call_text(name, {alpha_}); }

 private:
  double alpha_;
};

/// NOT lossless with respect to the target. Speculative cascades: where the draft is good enough its law stands, and
/// only elsewhere the target's is verified against.
///
/// Effect: at each drafted position `defers(p, q)` decides whose law counts: the target's, then as in token
/// verification, or the draft's, then the token is accepted. Exactly lossless with respect to that mixed law; the token
/// after a whole draft is the target's. A deferral that always defers makes it token verification, one that never does
/// accepts every draft. Reads the first path of a tree, and a deterministic draft as one that was certain.
/// Cost of token verification and of the deferral, O(p's and q's tokens). No off value. A drafted token that its law
/// does not hold is misuse.
/// Reference: Narasimhan, Jitkrittum, Rawat, Kim, Gupta, Menon, Kumar, "Faster cascades via speculative decoding",
/// ICLR 2025, arXiv 2405.19261.
template <class Deferral = optimal_deferral>
class speculative_cascade {
 public:
  static constexpr bool lossless = false;

  explicit speculative_cascade(Deferral defers) : defers_(std::move(defers)) {}

  template <class Law, class Target, class Decide>
  void operator()(const basic_draft<Law>& drafted, Target&& target, Decide&& decide, basic_verdict<Law>& out) const {
    using number = number_of<Law>;
    detail::accept_along_first_path(
        drafted, target, out, [&](const Law& p, const Law& q, const number& drawn_with, std::int32_t child) {
          return !defers_(p, q) || decide.chance(probability_of(p, drafted.token(child)), drawn_with, child);
        });
  }

 private:
  Deferral defers_;
};

template <class Deferral>
speculative_cascade(Deferral) -> speculative_cascade<Deferral>;

}  // namespace decant
