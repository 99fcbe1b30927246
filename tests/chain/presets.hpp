// SPDX-License-Identifier: MIT
#pragma once

// What the tests of the presets share: rows and texts, and the question whether two decoders are the same.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <decant/chain/any.hpp>
#include <decant/chain/decoder.hpp>
#include <decant/chain/sampling_params.hpp>
#include <decant/core/context.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/samplers/multinomial.hpp>

#include "support/catch.hpp"

namespace presets_test {

using decant::token_id;

/// A row such as a model gives; every seventh logit is that of its neighbour, so that there are ties.
inline std::vector<float> some_row(std::size_t size, std::uint64_t seed) {
  const decant::draw_stream draws(seed);
  std::vector<float> row;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t from = i - (i % 7 == 6 ? 1 : 0);
    row.push_back(static_cast<float>(1.5 * draws.gumbel(decant::purpose::user, static_cast<token_id>(from)) - 1));
  }
  return row;
}

/// A text with repetitions; the first three tokens are the prompt.
inline const std::vector<token_id> some_text{5, 1, 8, 5, 1, 3, 2, 5, 1};
inline constexpr std::size_t prompt_size = 3;

inline decant::step_context after_text(std::uint64_t seed = 1) {
  return decant::context_after(some_text, prompt_size, decant::draw_stream(seed));
}

inline decant::decoder<decant::dynamic_chain, decant::any_sampler> by_hand(
    std::initializer_list<decant::any_processor> steps, decant::any_sampler sampler = decant::multinomial()) {
  return {decant::dynamic_chain(steps), std::move(sampler)};
}

/// The same words, the same laws to the last bit, the same tokens.
template <class A, class B>
void check_same(A a, B b) {
  CHECK(a.describe() == b.describe());
  for (const std::size_t size : {10U, 60U, 500U, 5000U}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      INFO("vocabulary of " << size << ", seed " << seed);
      const auto row = some_row(size, seed + size);
      const auto context = after_text(seed);
      const decant::law of_a = a.law_of(row, context), of_b = b.law_of(row, context);
      CHECK(of_a.ids == of_b.ids);
      CHECK(of_a.weights == of_b.weights);
      CHECK(a.try_step(row, context).token == b.try_step(row, context).token);
    }
  }
}

/// The survivors of a row.
template <class D>
std::vector<token_id> left(D decoder, const std::vector<float>& row) {
  return decoder.law_of(row, decant::context_after({}, 0, decant::draw_stream(1))).ids;
}

/// The text of the error that a preset has against parameters, both ways of asking for it; empty if there is none.
template <class Preset, class... Rules>
std::string complaint(const decant::sampling_params& params, const Rules&... rules) {
  std::string thrown;
  try {
    static_cast<void>(Preset(params, rules...));
  } catch (const decant::parameter_error& error) {
    thrown = error.what();
  }
  const auto made = Preset::make(params, rules...);
  CHECK(made.has_value() == thrown.empty());
  if (made.has_value()) return {};
  CHECK(made.error().code == decant::error_code::bad_parameter);
  CHECK(made.error().message == thrown);
  return thrown;
}

}  // namespace presets_test
