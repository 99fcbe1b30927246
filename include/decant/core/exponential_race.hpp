// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <decant/core/draws.hpp>
#include <decant/core/token.hpp>
#include <decant/math/kernels.hpp>
#include <decant/math/philox.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// A race of all tokens of a vocabulary: each arrives at a standard exponential time of its own. -ln of it is standard
/// Gumbel noise, so the first of (time / weight) is a token drawn by weight, and the first k are k without replacement.
///
/// A token's time is a pure function of the numbers and of its id, whoever else takes part. Times are told block by
/// block of 64 ids: the first arrival of a block comes at an exponential time of rate 64 and is any of its tokens
/// alike; from then on, since exponential waiting has no memory, each of the others waits a standard exponential time.
/// So one number a block says which blocks can matter, and few are looked into. Reference: Maddison, Tarlow, Minka, "A*
/// sampling", NeurIPS 2014, arXiv 1411.0030, whose top-down construction this is.
class exponential_race {
 public:
  explicit exponential_race(const math::philox_sequence& numbers) noexcept : numbers_(numbers) {}

  /// When a token arrives: finite, > 0. Two Philox blocks.
  [[nodiscard]] double arrival(token_id id) const noexcept {
    const auto index = static_cast<std::uint32_t>(id);
    const first_arrival first = first_of(index / 64);
    return first.place == index % 64 ? first.time : first.time + waiting(bits(index));
  }

  /// A token's standard Gumbel noise: -ln arrival(id), finite, between -3.7 and 41.
  [[nodiscard]] double noise(token_id id) const noexcept { return -math::log(arrival(id)); }

  /// Which of the 64 ids from `first` on, a multiple of 64, arrive before `time`: bit i is set if first + i does, and
  /// hardly ever besides. An eighth of a ns a token, if blocks are asked for in ascending order and few have any.
  [[nodiscard]] std::uint64_t before(token_id first, double time) noexcept {
    const std::uint32_t index = static_cast<std::uint32_t>(first), block = index / 64;
    if (block / 64 != looked_at_) {
      looked_at_ = block / 64;
      math::kernels().philox_word1(numbers_, first_block + looked_at_ * 64, block_numbers_.data());
    }
    if (64 * time < 1 && block_numbers_[block % 64] < draw_stream::upper_half_from(64 * time)) return 0;
    const first_arrival earliest = first_of(block);
    const double rest = time - earliest.time;
    if (!(rest > 0)) return 0;
    if (rest >= 1) return ~std::uint64_t{0};
    std::array<std::uint32_t, 64> numbers;
    math::kernels().philox_word1(numbers_, index, numbers.data());
    const std::uint32_t least = draw_stream::upper_half_from(rest);
    std::uint64_t found = std::uint64_t{1} << earliest.place;
    for (std::size_t i = 0; i < 64; ++i) found |= std::uint64_t{numbers[i] >= least} << i;
    return found;
  }

 private:
  struct first_arrival {
    double time;
    std::uint32_t place;
  };

  static constexpr std::uint32_t first_block = 0x80000000;  // where no id is

  [[nodiscard]] std::uint64_t bits(std::uint32_t index) const noexcept {
    const auto words = numbers_(index);
    return words[0] | static_cast<std::uint64_t>(words[1]) << 32;
  }

  /// A standard exponential variable: below x only if the number lies in the upper x of (0, 1).
  static double waiting(std::uint64_t bits) noexcept { return -math::log(draw_stream::unit_interval(bits)); }

  [[nodiscard]] first_arrival first_of(std::uint32_t block) const noexcept {
    const std::uint64_t number = bits(first_block + block);
    return {waiting(number) / 64, static_cast<std::uint32_t>(number % 64)};  // bits that the time does not use
  }

  math::philox_sequence numbers_;
  std::uint32_t looked_at_ = std::numeric_limits<std::uint32_t>::max();
  std::array<std::uint32_t, 64> block_numbers_;
};

}  // namespace decant
