// SPDX-License-Identifier: MIT
#pragma once

#include <decant/chain/compose.hpp>
#include <decant/core/errors.hpp>
#include <decant/generate/options.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

// Three models that have nothing in common but what generation asks for.

namespace generate_models {

using decant::token_id;

/// Logits that depend on all tokens, from integers alone: the same on every machine.
inline std::vector<float> scrambled_row(std::span<const token_id> tokens, std::size_t vocabulary) {
  std::uint64_t state = 0x243F6A8885A308D3U;
  for (const token_id token : tokens)
    state = (state ^ static_cast<std::uint64_t>(token)) * 0x100000001B3U + 0x9E3779B9U;
  std::vector<float> row(vocabulary);
  for (float& z : row) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    z = static_cast<float>(state >> 56) / 32;
  }
  return row;
}

/// A lambda in the ready-made wrapper.
inline auto scrambled_model(std::size_t vocabulary = 20) {
  return decant::stateless(
      [vocabulary](std::span<const token_id> tokens) { return scrambled_row(tokens, vocabulary); });
}

/// A table: the last token decides. Says that its context has an end, and counts what it is given.
class markov {
 public:
  explicit markov(std::vector<std::vector<float>> table, std::size_t context = 1000)
      : table_(std::move(table)), context_(context) {}

  std::vector<float>& evaluate(std::span<const token_id> tokens) {
    DECANT_ASSERT(!tokens.empty(), "evaluate needs a token");
    held_.insert(held_.end(), tokens.begin(), tokens.end());
    evaluated += tokens.size();
    ++calls;
    row_ = table_[static_cast<std::size_t>(held_.back())];
    return row_;
  }
  [[nodiscard]] std::size_t size() const { return held_.size(); }
  void truncate(std::size_t count) {
    DECANT_ASSERT(count <= held_.size(), "truncate cannot grow");
    held_.resize(count);
  }
  [[nodiscard]] std::size_t vocabulary_size() const { return table_.size(); }
  [[nodiscard]] std::size_t sequence_length() const { return context_; }

  [[nodiscard]] const std::vector<token_id>& held() const { return held_; }
  std::size_t evaluated = 0, calls = 0;

 private:
  std::vector<std::vector<float>> table_;
  std::size_t context_;
  std::vector<token_id> held_;
  std::vector<float> row_;
};

/// 0 -> 1 -> 2 -> ... -> 0, all but surely.
inline markov cycle(std::size_t count, std::size_t context = 1000) {
  std::vector<std::vector<float>> table(count, std::vector<float>(count, 0.0F));
  for (std::size_t i = 0; i < count; ++i) table[i][(i + 1) % count] = 60;
  return markov(std::move(table), context);
}

/// Const rows, padded with what must never be drawn; asserts that each position comes once.
class padded {
 public:
  explicit padded(std::size_t vocabulary) : vocabulary_(vocabulary) {}

  std::span<const float> evaluate(std::span<const token_id> tokens) {
    DECANT_ASSERT(!tokens.empty(), "evaluate needs a token");
    for (const token_id token : tokens) {
      DECANT_ASSERT(token >= 0 && static_cast<std::size_t>(token) < vocabulary_, "no such token");
      held_.push_back(token);
    }
    given += tokens.size();
    row_ = scrambled_row(held_, vocabulary_);
    row_.resize((vocabulary_ + 63) / 64 * 64, 1000.0F);
    return row_;
  }
  [[nodiscard]] std::size_t size() const { return held_.size(); }
  void truncate(std::size_t count) { held_.resize(count); }
  [[nodiscard]] std::size_t vocabulary_size() const { return vocabulary_; }

  std::size_t given = 0;

 private:
  std::size_t vocabulary_;
  std::vector<token_id> held_;
  std::vector<float> row_;
};

/// Good rows, until `count` tokens are held; then one that cannot be decoded.
class failing : public padded {
 public:
  failing(std::size_t vocabulary, std::size_t count, float bad) : padded(vocabulary), count_(count), bad_(bad) {}

  std::vector<float>& evaluate(std::span<const token_id> tokens) {
    const auto good = padded::evaluate(tokens);
    row_.assign(good.begin(), good.end());
    if (size() >= count_) row_.assign(row_.size(), bad_);
    return row_;
  }

 private:
  std::size_t count_;
  float bad_;
  std::vector<float> row_;
};

/// One letter a token: 0 is 'a'.
inline std::string_view letter(token_id token) {
  static constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyz";
  return alphabet.substr(static_cast<std::size_t>(token) % 26, 1);
}

inline auto sampling() { return decant::temperature(0.9) | decant::multinomial{}; }

}  // namespace generate_models
