// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include <decant/core/concepts.hpp>
#include <decant/search/coverage.hpp>

namespace decant {

/// A coverage penalty for an encoder-decoder, by the weights of its cross-attention: for beam_options::coverage. The
/// model must be the one that is searched, and outlive the search. Off value and errors are those of coverage_options.
template <EncoderDecoderModel M>
[[nodiscard]] coverage_options cross_attention_coverage(M& model, double beta) {
  return {.beta = beta, .alignment = [&model](const alignment_step& step) {
            return std::span<const float>(model.cross_attention(step.item));
          }};
}

}  // namespace decant
