// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/token.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/testing/markov_model.hpp>

// Every sequence that a small model can give, by plain recursion in double: what searches are held against.

namespace search_tests {

using decant::token_id;
using ids = std::vector<token_id>;
using numbers = std::vector<float>;

inline ids joined(ids a, const ids& b) { return a.insert(a.end(), b.begin(), b.end()), a; }

/// The table as a model that keeps the tokens alone: a Model and a BatchModel. The table must outlive it.
inline auto model_of(const decant::testing::markov_model& table) {
  return decant::stateless([&table](std::span<const token_id> tokens) {
    const auto row = table.row_after(tokens);
    return numbers(row.begin(), row.end());
  });
}

/// ln p of every token after a text; nothing for one that is impossible.
inline std::map<token_id, double> log_probs(const decant::testing::markov_model& table, const ids& text) {
  const auto row = table.row_after(text);
  double mass = 0;
  for (const float& z : row) {
    if (!decant::is_gone(z)) mass += std::exp(static_cast<double>(z));
  }
  std::map<token_id, double> out;
  for (std::size_t v = 0; v < row.size(); ++v) {
    if (!decant::is_gone(row[v])) out[static_cast<token_id>(v)] = static_cast<double>(row[v]) - std::log(mass);
  }
  return out;
}

/// ln p of an output after a prompt.
inline double log_prob(const decant::testing::markov_model& table, ids text, const ids& output) {
  double sum = 0;
  for (const token_id token : output) {
    sum += log_probs(table, text).at(token);
    text.push_back(token);
  }
  return sum;
}

/// ln p of every complete output: one that ends with an end token, or has `length` tokens.
inline std::map<ids, double> leaves(const decant::testing::markov_model& table, const ids& prompt, const ids& ends,
                                    std::size_t length) {
  std::map<ids, double> out;
  const auto visit = [&](const auto& self, const ids& output, double so_far) -> void {
    const bool ended = !output.empty() && std::find(ends.begin(), ends.end(), output.back()) != ends.end();
    if (ended || output.size() == length) {
      out[output] = so_far;
      return;
    }
    for (const auto& [token, log_p] : log_probs(table, joined(prompt, output))) {
      self(self, joined(output, {token}), so_far + log_p);
    }
  };
  visit(visit, {}, 0);
  return out;
}

/// The probability to draw these outputs in this order, one after another without replacement (Plackett-Luce).
inline double plackett_luce(const std::map<ids, double>& all, const std::vector<ids>& order) {
  double probability = 1, left = 1;
  for (const ids& output : order) {
    const double p = std::exp(all.at(output));
    probability *= p / left;
    left -= p;
  }
  return probability;
}

/// Every order in which `count` different outputs can be drawn, or all outputs if there are not so many.
inline std::vector<std::vector<ids>> orders(const std::map<ids, double>& all, std::size_t count) {
  std::vector<std::vector<ids>> out;
  const auto visit = [&](const auto& self, std::vector<ids>& taken) -> void {
    if (taken.size() == std::min(count, all.size())) {
      out.push_back(taken);
      return;
    }
    for (const auto& entry : all) {
      if (std::find(taken.begin(), taken.end(), entry.first) != taken.end()) continue;
      taken.push_back(entry.first);
      self(self, taken);
      taken.pop_back();
    }
  };
  std::vector<ids> taken;
  visit(visit, taken);
  return out;
}

}  // namespace search_tests
