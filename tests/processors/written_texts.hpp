// SPDX-License-Identifier: MIT
#pragma once

// Texts for the tests of watermarks: a toy writer whose next token depends on the last one, with a few nats of choice a
// token, with and without a watermark.

#include "processors/policies.hpp"

namespace written {

using namespace policies;

inline constexpr std::size_t vocabulary = 500;

/// The row after a text: one of 16, by the last token. Some 5 nats of entropy.
inline const row& row_after(const tokens& text) {
  static const std::vector<row> rows = [] {
    std::vector<row> made;
    for (std::uint64_t i = 0; i < 16; ++i) {
      made.push_back(random_row(vocabulary, 1000 + i));
      for (float& z : made.back()) z *= 0.6F;
    }
    return made;
  }();
  return rows[static_cast<std::size_t>(text.back()) % 16];
}

/// A text of a random prompt of 6 tokens and `length` more, each chosen by step(row, context).
template <class Step>
tokens text(std::uint64_t seed, std::size_t length, Step step) {
  const draw_stream draws(seed, 7);
  tokens out;
  for (std::size_t i = 0; i < 6; ++i) {
    out.push_back(static_cast<token_id>(draws.at(i).uniform(decant::purpose::user) * static_cast<double>(vocabulary)));
  }
  candidates c;
  while (out.size() < 6 + length) {
    c.bind(std::span<const float>(row_after(out)));
    out.push_back(step(c, context_after(out, 6, draws)));
  }
  return out;
}

inline constexpr std::size_t prompt = 6;

/// A text by a processor, and plain draws.
template <class P>
tokens text_by(P processor, std::uint64_t seed, std::size_t length) {
  return text(seed, length, [&](candidates& c, const step_context& context) {
    processor(c, context);
    return c.draw(context.draws);
  });
}

/// A text without a watermark.
inline tokens plain_text(std::uint64_t seed, std::size_t length) {
  return text(seed, length, [](candidates& c, const step_context& context) { return c.draw(context.draws); });
}

/// How many of the first `texts` of 200 plain texts of 150 tokens a detector takes for marked at a p-value below
/// `level`.
template <class Detect>
std::size_t false_alarms(double level, Detect detect, std::size_t texts = 200) {
  static const std::vector<tokens> plain = [] {
    std::vector<tokens> made;
    for (std::uint64_t i = 0; i < 200; ++i) made.push_back(plain_text(10'000 + i, 150));
    return made;
  }();
  std::size_t count = 0;
  for (std::size_t i = 0; i < texts; ++i) count += detect(plain[i]).p_value < level;
  return count;
}

}  // namespace written
