// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/token.hpp>
#include <decant/math/keyed_permutation.hpp>
#include <decant/math/scalar.hpp>
#include <decant/processors/watermark_detection.hpp>

namespace decant {

/// How many tokens of a vocabulary are green: fraction * size, rounded down.
[[nodiscard]] inline std::size_t green_size(double fraction, std::size_t vocabulary_size) {
  return static_cast<std::size_t>(math::product(fraction, static_cast<double>(vocabulary_size)));
}

/// Whether a token is on the green list of a seed, which holds exactly `green` of the ids below `vocabulary_size`.
/// O(1).
[[nodiscard]] inline bool on_green_list(token_id id, std::size_t vocabulary_size, std::size_t green,
                                        std::uint64_t seed) noexcept {
  return math::keyed_permutation(vocabulary_size, seed)(static_cast<std::uint64_t>(id)) < green;
}

/// Evidence from so many green tokens among those that count: z = (green - tokens g) / sqrt(tokens g (1 - g)), where g
/// is the share of the vocabulary that is really green; its score is the number of green tokens.
[[nodiscard]] inline watermark_evidence green_evidence(std::size_t tokens, std::size_t green, double share) {
  const double count = static_cast<double>(tokens);
  return normal_evidence(tokens, static_cast<double>(green), count * share, std::sqrt(count * share * (1 - share)));
}

/// The green tokens of a vocabulary, a bit each.
class green_list {
 public:
  /// Makes the list of a seed, unless it has been made last.
  void make(std::size_t vocabulary_size, std::size_t green, std::uint64_t seed) {
    if (size_ == vocabulary_size && green_ == green && seed_ == seed) return;
    size_ = vocabulary_size;
    green_ = green;
    seed_ = seed;
    words_.assign((vocabulary_size + 63) / 64, 0);
    math::keyed_permutation(vocabulary_size, seed).each_below(green, tables_, [this](std::uint64_t id) {
      words_[id / 64] |= std::uint64_t{1} << (id % 64);
    });
  }

  /// The list: bit id % 64 of word id / 64.
  [[nodiscard]] std::span<const std::uint64_t> words() const noexcept { return words_; }

  [[nodiscard]] bool operator()(token_id id) const noexcept {
    const auto place = static_cast<std::size_t>(id);
    return (words_[place / 64] >> (place % 64) & 1) != 0;
  }

 private:
  std::size_t size_ = 0, green_ = 0;
  std::uint64_t seed_ = 0;
  std::vector<std::uint64_t> words_;
  math::keyed_permutation::workspace tables_;
};

/// What a green-list watermark does to a row: raises the green tokens by `bias`, or bans the others. Keeps its
/// workspace.
class green_list_edit {
 public:
  /// The row must be good. Shifting all logits changes nothing. O(tokens left).
  static void raise(candidates& row, double bias, const green_list& list) { row.raise(list.words(), bias); }
  /// The same where `green(id)` tells.
  template <class Green>
    requires(!std::same_as<Green, green_list>)
  void raise(candidates& row, double bias, const Green& green) {
    mark(row, green);
    row.raise(mask_, bias);
  }

  /// Leaves only the green tokens; all, where no green one is left.
  template <class Green>
  void keep(candidates& row, const Green& green) {
    if (mark(row, green)) row.allow(std::span<const std::uint64_t>(mask_));
  }

 private:
  /// Sets the bits of the green tokens that are left; whether there are any.
  template <class Green>
  bool mark(const candidates& row, const Green& green) {
    mask_.assign((row.vocabulary_size() + 63) / 64, 0);
    bool any = false;
    row.visit([&](token_id id, float) {
      const std::uint64_t is_green = green(id);
      any = any || is_green != 0;
      mask_[static_cast<std::size_t>(id) / 64] |= is_green << (static_cast<std::size_t>(id) % 64);
    });
    return any;
  }

  std::vector<std::uint64_t> mask_;
};

}  // namespace decant
