// SPDX-License-Identifier: MIT
#pragma once

// Biases, bans, forcing, and repairs of a row.

#include "eager_support.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <decant/processors/allowed_tokens.hpp>
#include <decant/processors/bad_words.hpp>
#include <decant/processors/forced_bos.hpp>
#include <decant/processors/forced_eos.hpp>
#include <decant/processors/logit_bias.hpp>
#include <decant/processors/min_length.hpp>
#include <decant/processors/min_new_tokens.hpp>
#include <decant/processors/prefix_allowed_tokens.hpp>
#include <decant/processors/remove_invalid_values.hpp>
#include <decant/processors/sequence_bias.hpp>
#include <decant/processors/suppress_at_begin.hpp>
#include <decant/processors/suppress_tokens.hpp>

namespace eager {

// ---- biases

/// Quarters, so that their sums do not depend on the order; now and then a ban, or more than a float holds.
inline double random_bias(const situation& s) {
  if (s.roll.one_in(12)) return static_cast<double>(gone);
  if (s.roll.one_in(40)) return s.roll.one_in(2) ? 1e39 : -1e39;
  return static_cast<double>(s.roll.below(33)) / 4 - 4;
}

/// Adds up what falls on each token: in ascending order, and token by token, because beyond what a float holds the
/// order of sums and of edits may show.
inline void add_all(judged_row& row, std::vector<std::pair<token_id, double>> biases) {
  std::sort(biases.begin(), biases.end());
  for (std::size_t i = 0; i < biases.size();) {
    const token_id id = biases[i].first;
    double sum = 0;
    bool banned = false;
    for (; i < biases.size() && biases[i].first == id; ++i) {
      const double bias = biases[i].second;
      banned = banned || !math::is_finite(bias);
      if (math::is_finite(bias)) sum += std::clamp(bias, -0x1.fffffep127, 0x1.fffffep127);
    }
    if (banned)
      row.ban(id);
    else if (sum != 0)
      row.add(id, math::saturated(sum));
  }
}

inline step make_logit_bias(const situation& s) {
  std::vector<token_bias> biases;
  std::vector<std::pair<token_id, double>> pairs;
  for (const token_id id : s.ids(s.roll.below(6))) {
    biases.push_back({id, random_bias(s)});
    pairs.emplace_back(id, biases.back().bias);
  }
  return {logit_bias(biases), [=](judged_row& row) { add_all(row, pairs); }};
}

/// Sequences over the text's tokens, many of which go on where the text stops.
inline std::vector<tokens> random_sequences(const situation& s) {
  const tokens text = s.all();
  std::vector<tokens> out(s.roll.below(5));
  for (tokens& sequence : out) {
    const std::size_t prefix = s.roll.below(4);
    if (prefix <= text.size() && s.roll.one_in(2))
      sequence.assign(text.end() - static_cast<std::ptrdiff_t>(prefix), text.end());
    else
      sequence = s.text(prefix);
    sequence.push_back(s.roll.one_in(2) ? s.any_id() : s.text_token());
  }
  return out;
}

inline bool completes(const tokens& sequence, const tokens& text, bool hf_prefix) {
  const tokens prefix(sequence.begin(), sequence.end() - 1);
  if (prefix.empty()) return true;
  return ends_with(text, text.size(), prefix) && !(hf_prefix && text.size() < sequence.size());
}

inline step make_sequence_bias(const situation& s) {
  const bool hf_prefix = s.roll.one_in(3);
  std::vector<sequence_with_bias> sequences;
  std::vector<std::pair<tokens, double>> completed;
  for (const tokens& sequence : random_sequences(s)) {
    sequences.push_back({sequence, random_bias(s)});
    if (completes(sequence, s.all(), hf_prefix)) completed.emplace_back(sequence, sequences.back().bias);
  }
  // In whatever order sequences are listed, biases add up to the same bits: in that of the sequences.
  std::ranges::sort(completed);
  std::vector<std::pair<token_id, double>> pairs;
  for (const auto& [sequence, bias] : completed) pairs.emplace_back(sequence.back(), bias);
  return {sequence_bias(sequences, {.hf_prefix = hf_prefix}), [=](judged_row& row) { add_all(row, pairs); }};
}

inline step make_bad_words(const situation& s) {
  bad_words_options options;
  options.hf_prefix = s.roll.one_in(3);
  const std::vector<tokens> words = random_sequences(s);
  if (!words.empty() && s.roll.one_in(2)) options.spared_end_tokens = {words[0].back()};
  tokens banned;
  for (const tokens& word : words) {
    const bool spared = word.size() == 1 && contains(options.spared_end_tokens, word[0]);
    if (!spared && completes(word, s.all(), options.hf_prefix)) banned.push_back(word.back());
  }
  return {bad_words(words, options), [=](judged_row& row) { ban_all(row, banned); }};
}

// ---- bans

inline step make_allowed_tokens(const situation& s) {
  tokens ids = s.ids(1 + s.roll.below(3));
  const std::size_t keep = s.roll.below(5);
  for (std::size_t i = 0; i < s.n; ++i) {
    if (s.roll.below(5) <= keep) ids.push_back(static_cast<token_id>(i));
  }
  return {allowed_tokens(ids), [=](judged_row& row) {
            const std::set<token_id> kept(ids.begin(), ids.end());
            row.keep_if([&](token_id id) { return kept.count(id) > 0; });
          }};
}

inline step make_prefix_allowed_tokens(const situation& s) {
  const token_id salt = s.any_id();
  const auto allowed = [salt](token_id id, std::span<const token_id> text) {
    return (id + salt + (text.empty() ? 0 : text.back())) % 4 != 0;
  };
  const auto list = [=, n = s.n](const step_context& context) {
    tokens ids;
    for (token_id id = 0; index_of(id) < n; ++id) {
      if (allowed(id, context.tokens)) ids.push_back(id);
    }
    return ids;
  };
  const tokens text = s.all();
  return {prefix_allowed_tokens(list),
          [=](judged_row& row) { row.keep_if([&](token_id id) { return allowed(id, text); }); }};
}

inline step make_suppress_tokens(const situation& s) {
  const tokens ids = s.ids(s.roll.below(6));
  return {suppress_tokens(ids), [=](judged_row& row) { ban_all(row, ids); }};
}

/// Sometimes a place in the text, its present end or another.
inline std::optional<std::size_t> random_begin(const situation& s) {
  if (s.roll.one_in(2)) return {};
  return s.roll.one_in(2) ? s.context.tokens.size() : s.roll.below(12);
}

inline bool at_begin(const situation& s, std::optional<std::size_t> begin) {
  return begin ? s.context.tokens.size() == *begin : s.output().empty();
}

inline step make_suppress_at_begin(const situation& s) {
  const tokens ids = s.ids(s.roll.below(6));
  const auto begin = random_begin(s);
  const bool now = at_begin(s, begin);
  return {suppress_at_begin(ids, {.begin_index = begin}), [=](judged_row& row) {
            if (now) ban_all(row, ids);
          }};
}

inline step make_min_length(const situation& s) {
  const std::size_t length = s.roll.below(20);
  const tokens ends = s.ids(s.roll.below(3));
  const bool now = s.all().size() < length;
  return {min_length(static_cast<std::int64_t>(length), ends), [=](judged_row& row) {
            if (now) ban_all(row, ends);
          }};
}

inline step make_min_new_tokens(const situation& s) {
  const std::size_t count = s.roll.below(14);
  const tokens ends = s.ids(s.roll.below(3));
  const bool now = s.output().size() < count;
  return {min_new_tokens(static_cast<std::int64_t>(count), ends), [=](judged_row& row) {
            if (now) ban_all(row, ends);
          }};
}

// ---- forcing

inline void force_all(judged_row& row, const tokens& ids, bool revive) {
  if (revive) return row.rewrite([&](token_id id, float) { return contains(ids, id) ? 0.0F : gone; });
  row.keep_if([&](token_id id) { return contains(ids, id); });
  for (const token_id id : ids) row.set(id, 0);
}

inline step make_forced_bos(const situation& s) {
  const token_id id = s.any_id();
  forced_bos_options options;
  options.begin_index = random_begin(s);
  options.revive = s.roll.one_in(2);
  const bool now = at_begin(s, options.begin_index);
  return {forced_bos(id, options), [=](judged_row& row) {
            if (now) force_all(row, {id}, options.revive);
          }};
}

inline step make_forced_eos(const situation& s) {
  const tokens ends = s.ids(1 + s.roll.below(3));
  const std::size_t max_length = s.roll.one_in(3) ? s.all().size() + 1 : s.roll.below(16);
  const bool revive = s.roll.one_in(2), now = s.all().size() + 1 == max_length;
  return {forced_eos(static_cast<std::int64_t>(max_length), ends, {.revive = revive}), [=](judged_row& row) {
            if (now) force_all(row, ends, revive);
          }};
}

// ---- repairs

inline step make_remove_invalid_values(const situation& s) {
  const bool revive = s.roll.one_in(3);
  return {remove_invalid_values({.revive = revive}), [=](judged_row& row) {
            if (!revive && row.found_bad()) return;
            bool invalid = revive;
            for (const token_id id : row.ids()) invalid = invalid || !math::is_finite(row.logit(id));
            if (!invalid) return;
            constexpr float largest = std::numeric_limits<float>::max();
            row.rewrite([&](token_id, float z) {
              if (is_gone(z)) return revive ? -largest : gone;
              if (math::is_nan(z)) return 0.0F;
              return math::is_finite(z) ? z : largest;
            });
          }};
}

}  // namespace eager
