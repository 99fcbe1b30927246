// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <utility>

#include <decant/speculative/speculative_stream.hpp>

namespace decant {

/// Runs a model to the end with the help of a drafter: as `generate`, and with its law, in fewer passes of the model.
///
/// `speculate(target, prompt, drafter, top_p(0.95) | multinomial{}, {.seed = 1}, {.length = draft_length::fixed(4)})`.
/// See speculative_stream for what is promised, generate_options and speculation_options for what can be set, and
/// the rules (token_verification, block_verification ...) for what may stand last.
template <ScoringModel M, DraftSource S, Decoder D, class Rule = lossless_verification>
[[nodiscard]] speculation speculate(M& model, std::span<const token_id> prompt, S& drafter, D decoder,
                                    generate_options options = {}, speculation_options how = {}, Rule rule = {}) {
  speculative_stream<M, S, D, Rule> stream(model, prompt, drafter, std::move(decoder), std::move(options),
                                           std::move(how), std::move(rule));
  while (stream.next() != nullptr) {
  }
  return std::move(stream).result();
}

}  // namespace decant
