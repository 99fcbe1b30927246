// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/token.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/testing/markov_model.hpp>

namespace search_test {

using decant::token_id;
using ids = std::vector<token_id>;

/// One type for all models, so that searches are compiled once a test file.
using row_function = std::function<std::vector<float>(std::span<const token_id>)>;
using any_model = decant::stateless<row_function>;

inline row_function rows_of(decant::testing::markov_model table) {
  return [shared = std::make_shared<decant::testing::markov_model>(std::move(table))](std::span<const token_id> text) {
    const auto row = shared->row_after(text);
    return std::vector<float>(row.begin(), row.end());
  };
}

/// Rows that depend on the last two tokens; some tokens are impossible.
inline row_function random_rows(std::size_t vocabulary, std::uint64_t seed, double zeros = 0.1, double spread = 1) {
  return rows_of(decant::testing::random_markov_model(vocabulary, 2, seed, spread, zeros));
}

}  // namespace search_test
