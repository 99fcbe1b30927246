// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include <decant/core/token.hpp>

/// How different texts are, by their n-grams.

using token_text = std::vector<decant::token_id>;

/// The n-grams of a text with their counts.
inline std::map<token_text, int> ngrams(const token_text& text, std::size_t n) {
  std::map<token_text, int> counts;
  for (std::size_t i = 0; i + n <= text.size(); ++i) {
    ++counts[token_text(text.begin() + static_cast<std::ptrdiff_t>(i),
                        text.begin() + static_cast<std::ptrdiff_t>(i + n))];
  }
  return counts;
}

/// distinct-n: the share of n-grams that are different, over all texts together.
inline double distinct(const std::vector<token_text>& texts, std::size_t n) {
  std::set<token_text> different;
  std::size_t all = 0;
  for (const token_text& text : texts) {
    for (const auto& [gram, count] : ngrams(text, n)) {
      different.insert(gram);
      all += static_cast<std::size_t>(count);
    }
  }
  return all == 0 ? 0 : static_cast<double>(different.size()) / static_cast<double>(all);
}

/// BLEU of one text against others: n-grams up to three, one added to the counts of those of two and three.
inline double bleu(const token_text& text, const std::vector<token_text>& others) {
  if (text.empty()) return 0;
  double log_precision = 0;
  for (std::size_t n = 1; n <= 3; ++n) {
    double matched = n == 1 ? 0 : 1, all = matched;
    for (const auto& [gram, count] : ngrams(text, n)) {
      int most = 0;
      for (const token_text& other : others) {
        const auto counts = ngrams(other, n);
        const auto found = counts.find(gram);
        if (found != counts.end()) most = std::max(most, found->second);
      }
      matched += std::min(count, most);
      all += count;
    }
    if (matched == 0) return 0;
    log_precision += std::log(matched / all) / 3;
  }
  // The length that comes nearest decides how much brevity costs.
  const auto distance = [&](const token_text& other) {
    return std::abs(static_cast<double>(other.size()) - static_cast<double>(text.size()));
  };
  const auto nearest = std::min_element(others.begin(), others.end(),
                                        [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  const double ratio = static_cast<double>(nearest->size()) / static_cast<double>(text.size());
  return std::exp(log_precision + std::min(0.0, 1 - ratio));
}

/// self-BLEU: the mean BLEU of every text against the others. High where all say the same.
inline double self_bleu(const std::vector<token_text>& texts) {
  double sum = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<token_text> others = texts;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    sum += bleu(texts[i], others);
  }
  return sum / static_cast<double>(texts.size());
}
