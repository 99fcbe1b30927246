// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <utility>

#include <decant/generate/token_stream.hpp>

namespace decant {

/// Runs a model to the end: prompt in, tokens (and text) out.
///
/// `generate(model, prompt, top_p(0.95) | temperature(0.8) | multinomial{}, {.max_new_tokens = 64, .seed = 1})`. The
/// model is anything that satisfies Model; see token_stream for what is promised and generate_options for what can be
/// set. Errors: parameter_error for an empty stop string (stop_matcher::make tells without exceptions); a row that
/// cannot be decoded ends the run with finish_reason::bad_row.
template <Model M, Decoder D>
[[nodiscard]] generation generate(M& model, std::span<const token_id> prompt, D decoder,
                                  generate_options options = {}) {
  token_stream<M, D> stream(model, prompt, std::move(decoder), std::move(options));
  while (stream.next() != nullptr) {
  }
  return std::move(stream).result();
}

}  // namespace decant
