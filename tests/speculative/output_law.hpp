// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <decant/generate/generate.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/speculative/speculate.hpp>
#include <decant/testing/enumerate.hpp>
#include <decant/testing/markov_model.hpp>

#include "speculative/proposals.hpp"

namespace drafter_tests {

/// A model over a table of random laws that scores trees.
inline auto table_model(std::size_t vocabulary, std::size_t order, std::uint64_t seed) {
  return decant::stateless([table = decant::testing::random_markov_model(vocabulary, order, seed)](
                               std::span<const token_id> tokens) { return table.row_after(tokens); },
                           vocabulary);
}

/// How far the exact law of what a drafter helps to put out, of `length` tokens, is from that of plain generation.
template <class M, class S, class D>
double distance_from_plain(M& model, const ids& prompt, S& drafter, const D& decoder, std::size_t length,
                           const decant::speculation_options& how) {
  const auto plain = decant::testing::sequence_law(model, prompt, decoder, length);
  const auto speculative = decant::testing::enumerate_law([&](decant::decision_hook& hook) {
    decant::generate_options options;
    options.max_new_tokens = length;
    options.seed = 0;
    options.hook = &hook;
    return decant::speculate(model, prompt, drafter, decoder, options, how).tokens;
  });
  return decant::testing::distance(plain, speculative);
}

}  // namespace drafter_tests
