// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/math/scalar.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/residual.hpp>
#include <decant/speculative/verdict.hpp>

namespace decant {

/// NOT lossless. Token verification that lets more drafted tokens pass: each with probability min(1, p / (lenience q)).
///
/// Effect: after a rejection the next token comes from the positive part of p - q, as if there were no lenience; no
/// token comes out with more than p / lenience. What comes out lies between the target's law and the draft's: speed for
/// exactness. Reads the first path of a tree, and a deterministic draft as one that was certain.
/// Cost as of token verification. Off: lenience = 1, which is token verification. Errors: parameter_error unless
/// 0 < lenience <= 1; a drafted token that its law does not hold is misuse.
/// Reference: Leviathan, Kalman, Matias, "Fast inference from transformers via speculative decoding", ICML 2023,
/// arXiv 2211.17192, appendix A.5.
class lenient_verification : public made_or_error<lenient_verification> {
 public:
  static constexpr std::string_view name = "lenient_verification";
  static constexpr bool lossless = false;

  explicit lenient_verification(double lenience) : lenience_(lenience) { detail::raise_if(validate(lenience)); }

  static std::optional<parameter_fault> validate(double lenience) {
    if (lenience > 0 && lenience <= 1) return {};
    return parameter_fault{name, "lenience", lenience, "must lie in (0, 1]"};
  }

  template <class Law, class Target, class Decide>
  void operator()(const basic_draft<Law>& drafted, Target&& target, Decide&& decide, basic_verdict<Law>& out) const {
    using number = number_of<Law>;
    detail::accept_along_first_path(
        drafted, target, out, [&](const Law& p, const Law&, const number& drawn_with, std::int32_t child) {
          return decide.chance(probability_of(p, drafted.token(child)), number(lenience_) * drawn_with, child);
        });
  }

  [[nodiscard]] bool off() const { return lenience_ == 1; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {lenience_}); }

 private:
  double lenience_;
};

}  // namespace decant
