// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/token.hpp>

namespace search_tests {

/// A model whose rows go on after the vocabulary, as engines' do, with numbers that would win if they were read.
template <class M>
struct padded : M {
  explicit padded(M model) : M(std::move(model)) {}

  std::span<const float> evaluate(std::span<const decant::token_id> tokens) { return widened(M::evaluate(tokens)); }
  void evaluate(std::span<const decant::batch_item> items) {
    rows.clear();
    M::evaluate(items);
  }
  std::span<const float> row(std::size_t i) { return widened(M::row(i)); }

 private:
  std::span<const float> widened(std::span<const float> row) {
    rows.emplace_back(row.begin(), row.end()).resize(row.size() + 3, 99.0F);
    return rows.back();
  }

  std::deque<std::vector<float>> rows{};
};

}  // namespace search_tests
