// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// Which numbers to report of a token: taken from the model's row, or from what the processors made of it and the
/// sampler was given.
enum class log_prob_mode : std::uint8_t {
  raw_log_probs,        ///< the model's
  processed_log_probs,  ///< those of the law that the processors leave
  raw_logits,
  processed_logits,
};

/// What to report beside a drawn token.
struct log_prob_options {
  std::size_t top = 0;  ///< how many of the best tokens beside the drawn one; 0: that one alone
  log_prob_mode mode = log_prob_mode::raw_log_probs;

  [[nodiscard]] bool raw() const noexcept {
    return mode == log_prob_mode::raw_log_probs || mode == log_prob_mode::raw_logits;
  }
  [[nodiscard]] bool logits() const noexcept {
    return mode == log_prob_mode::raw_logits || mode == log_prob_mode::processed_logits;
  }
};

/// A token with its number and its place, from 1, by (number descending, id ascending).
struct ranked_token {
  token_id id = no_token;
  double value = 0;
  std::size_t rank = 0;

  bool operator==(const ranked_token&) const = default;
};

/// What was asked for about one drawn token.
struct token_log_probs {
  ranked_token chosen;
  std::vector<ranked_token> top;  ///< best first; holds the chosen token too, if it is among them

  bool operator==(const token_log_probs&) const = default;
};

namespace detail {

/// How many tokens with a lower id are gone.
inline std::size_t gone_before(const candidates& row, token_id limit) {
  std::size_t count = 0;
  for (token_id id = 0; id < limit; ++id) count += !row.contains(id);
  return count;
}

}  // namespace detail

/// Fills in what was asked for about a token of a bound row.
///
/// Effect: natural logarithms of probabilities, or logits. Tokens that are gone have -inf and come after all others, in
/// ascending id, so that `top` entries are there as long as the vocabulary has them. On a row that is not finite, where
/// nothing has a probability, every value is NaN and every rank 0. Changes no law; two passes and a partial sort.
inline void log_probs_of(candidates& row, token_id chosen, const log_prob_options& options, token_log_probs& out) {
  constexpr double nothing = -std::bit_cast<double>(0x7FF0000000000000U);
  out.top.clear();
  if (row.status() == row_status::not_finite) {
    out.chosen = {chosen, std::bit_cast<double>(0x7FF8000000000000U), 0};
    return;
  }
  const auto value = [&](token_id id) {
    if (!row.contains(id)) return nothing;
    return options.logits() ? static_cast<double>(row.logit(id)) : row.log_probability(id);
  };
  const std::size_t place = row.rank(chosen);
  out.chosen = {chosen, value(chosen), place > 0 ? place : row.size() + 1 + detail::gone_before(row, chosen)};
  const std::size_t wanted = std::min(options.top, row.vocabulary_size());
  for (const entry& best : row.descending(wanted)) out.top.push_back({best.id, 0, out.top.size() + 1});
  for (token_id id = 0; out.top.size() < wanted; ++id) {
    if (!row.contains(id)) out.top.push_back({id, nothing, out.top.size() + 1});
  }
  for (ranked_token& token : out.top) token.value = value(token.id);
}

}  // namespace decant
