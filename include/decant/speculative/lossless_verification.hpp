// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <decant/speculative/block_verification.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/traversal_verification.hpp>
#include <decant/speculative/verdict.hpp>

namespace decant {

/// The lossless rule that accepts most of what it is given: block verification for a chain, traversal for a tree. What
/// the driver does unless told otherwise.
struct lossless_verification {
  template <class Law, class Target, class Decide>
  void operator()(const basic_draft<Law>& drafted, Target&& target, Decide&& decide, basic_verdict<Law>& out) const {
    if (drafted.is_chain()) {
      block_verification{}(drafted, std::forward<Target>(target), std::forward<Decide>(decide), out);
    } else {
      traversal_verification{}(drafted, std::forward<Target>(target), std::forward<Decide>(decide), out);
    }
  }
};

/// Whether a rule leaves the target's law as it is. One that does not says so by `static constexpr bool lossless =
/// false`.
template <class Rule>
inline constexpr bool is_lossless = true;
template <class Rule>
  requires requires { Rule::lossless; }
inline constexpr bool is_lossless<Rule> = Rule::lossless;

}  // namespace decant
