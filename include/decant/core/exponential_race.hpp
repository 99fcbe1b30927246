// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <decant/core/candidates.hpp>
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
/// So one number a block says which blocks can matter, and few are looked into.
/// Reference: Maddison, Tarlow, Minka, "A*
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

  /// No token of the 64 from `first` on, a multiple of 64, arrives sooner than that; > 0. A ns, if asked for in
  /// ascending order.
  [[nodiscard]] double soonest(token_id first) noexcept {
    const std::uint32_t block = static_cast<std::uint32_t>(first) / 64;
    if (block / 64 != looked_at_) {
      looked_at_ = block / 64;
      math::kernels().philox_word1(numbers_, first_block + looked_at_ * 64, upper_halves_.data());
    }
    return soonest_of(upper_halves_[block % 64]);
  }

  /// Which of the 64 ids from `first` on arrive before `time`: bit i is set if first + i does, and hardly ever besides.
  [[nodiscard]] std::uint64_t before(token_id first, double time) const noexcept {
    const auto index = static_cast<std::uint32_t>(first);
    const std::uint64_t number = bits(first_block + index / 64);
    const double rest = time - soonest_of(number >> 32);
    if (!(rest > 0)) return 0;
    if (rest >= 1) return ~std::uint64_t{0};
    return math::kernels().philox_at_least(numbers_, index, draw_stream::upper_half_from(rest)) |
           std::uint64_t{1} << place_of(number);
  }

  /// Calls f(id, below, perturbed) for every token of a row whose perturbed logit, below + noise(id) with below = logit
  /// - max(), is at least `reached`, and for some others, in ascending id. f says what is to be reached from then on,
  /// which must not fall. Reads the row.
  template <class F>
  void run(candidates& row, double reached, F f) {
    const auto share_for = [](double least) { return std::min(beyond_any_weight, math::exp(-least)); };
    double share = share_for(reached), most_noise = 0;  // a token of weight w must arrive before w * share
    row.visit_below_max(
        [&](token_id first, double most) -> std::uint64_t {
          const double earliest = soonest(first);
          if (most * share < earliest) return 0;
          most_noise = 1e-12 - math::log(earliest);
          return before(first, most * share);
        },
        [&](token_id id, double below) {
          if (below + most_noise < reached) return;
          const double raised = f(id, below, below + noise(id));
          if (raised == reached) return;
          reached = raised;
          share = share_for(reached);
        });
  }

 private:
  static constexpr double beyond_any_weight = 0x1p200;

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

  /// Which of a block comes first: bits that the time does not use.
  static std::uint32_t place_of(std::uint64_t number) noexcept { return static_cast<std::uint32_t>(number % 64); }

  /// A bound of when it comes: -ln u >= 1 - u.
  static double soonest_of(std::uint64_t upper_half) noexcept {
    return (static_cast<double>(0xFFFFFFFF - upper_half) * 0x1p-32 + 0x1p-54) / 64;
  }

  [[nodiscard]] first_arrival first_of(std::uint32_t block) const noexcept {
    const std::uint64_t number = bits(first_block + block);
    return {waiting(number) / 64, place_of(number)};
  }

  math::philox_sequence numbers_;
  std::uint32_t looked_at_ = std::numeric_limits<std::uint32_t>::max();
  std::array<std::uint32_t, 64> upper_halves_;
};

}  // namespace decant
