// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include <decant/speculative/draft.hpp>
#include <decant/speculative/residual.hpp>
#include <decant/speculative/verdict.hpp>

namespace decant {

/// Speculative sampling: each drafted token is accepted with probability min(1, p / q), in turn.
///
/// Effect: at the first rejection the next token comes from the positive part of p - q, renormalised; after a draft
/// that is accepted whole, from the target's law there. Lossless: what comes out has the target's law, whatever q is.
/// A token is accepted with probability sum of min(p, q). Reads the first path of a tree, and a deterministic draft as
/// one that was certain. Looks at target(node) only as far as it accepts: a lazy target computes no more.
/// O(log size) a drafted token, and one residual. No parameters, no off value; a drafted token that its law does not
/// hold is misuse.
/// Reference: Leviathan, Kalman, Matias, "Fast inference from transformers via speculative decoding", ICML 2023,
/// arXiv 2211.17192; Chen, Borgeaud, Irving, Lespiau, Sifre, Jumper, "Accelerating large language model decoding with
/// speculative sampling", 2023, arXiv 2302.01318.
struct token_verification {
  template <class Law, class Target, class Decide>
  void operator()(const basic_draft<Law>& drafted, Target&& target, Decide&& decide, basic_verdict<Law>& out) const {
    using number = number_of<Law>;
    detail::accept_along_first_path(drafted, target, out,
                                    [&](const Law& p, const Law&, const number& drawn_with, std::int32_t child) {
                                      return decide.chance(probability_of(p, drafted.token(child)), drawn_with, child);
                                    });
  }
};

}  // namespace decant
