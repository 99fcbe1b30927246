// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/math/hash_kernels.hpp>
#include <decant/math/philox.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// What a random number is for. Two decisions at one position never share a number: their purpose or index differs.
// NOLINTNEXTLINE(performance-enum-size): it is a whole word of the key
enum class purpose : std::uint32_t {
  sample,         ///< the token that a sampler draws
  draft,          ///< a token that a drafter proposes
  accept,         ///< accept or reject a drafted token
  residual,       ///< the token drawn after a rejection, or the bonus
  coin,           ///< a processor's coin (XTC)
  noise,          ///< one number a token (Gumbel)
  code,           ///< the code point of arithmetic sampling
  user = 0x1000,  ///< first value that decant will never use itself
};

/// The full name of one decision: equal keys give equal answers, different keys independent ones.
struct draw_key {
  std::uint64_t stream = 0;    ///< derived from (seed, sequence) and the children taken since
  std::uint32_t position = 0;  ///< number of tokens before the one being decided
  decant::purpose purpose{};
  std::uint32_t index = 0;  ///< tells decisions of one purpose at one position apart

  auto operator<=>(const draw_key&) const = default;
};

/// A test's way to make the decisions itself: an enumerator takes every branch in turn (testing/enumerate.hpp).
/// It must answer equal keys equally.
class decision_hook {
 public:
  /// The index to choose, with probability weights[i] / total. Must have weights[i] > 0.
  virtual std::size_t choose(const draw_key& key, std::span<const double> weights, double total) = 0;

 protected:
  ~decision_hook() = default;
};

/// Where random numbers come from: a pure function of (seed, sequence, position, purpose, index).
///
/// A small value with no state that advances: copying it, asking twice or asking in another order changes nothing.
/// `sequence` is named by the caller (a request, a sample of it), never the row or slot that it happens to sit in, so
/// a request draws the same tokens alone and in a batch.
class draw_stream {
 public:
  constexpr draw_stream() noexcept : draw_stream(0) {}
  constexpr explicit draw_stream(std::uint64_t seed, std::uint64_t sequence = 0) noexcept
      : stream_(derive(seed, sequence, derivation::root)) {}

  /// The same stream at another position.
  [[nodiscard]] constexpr draw_stream at(std::size_t position) const noexcept {
    draw_stream moved = *this;
    moved.position_ = static_cast<std::uint32_t>(position);
    return moved;
  }

  /// An independent stream, at the same position: for a nested decision maker, such as one round of speculation.
  [[nodiscard]] constexpr draw_stream child(std::uint64_t tag) const noexcept {
    draw_stream other = *this;
    other.stream_ = derive(stream_, tag, derivation::child);
    return other;
  }

  /// The same stream with its discrete decisions answered by `hook` (null: by the generator again).
  [[nodiscard]] constexpr draw_stream with_hook(decision_hook* hook) const noexcept {
    draw_stream hooked = *this;
    hooked.hook_ = hook;
    return hooked;
  }

  [[nodiscard]] constexpr std::size_t position() const noexcept { return position_; }
  [[nodiscard]] constexpr decision_hook* hook() const noexcept { return hook_; }
  [[nodiscard]] constexpr draw_key key(purpose why, std::uint32_t index = 0) const noexcept {
    return {stream_, position_, why, index};
  }

  /// A number strictly inside (0, 1), with 53 random bits. `lane` separates the numbers of one decision that needs
  /// several. A continuous draw cannot be enumerated: asking for one under a hook is misuse.
  [[nodiscard]] double uniform(purpose why, std::uint32_t index = 0, std::uint32_t lane = 0) const {
    DECANT_ASSERT(hook_ == nullptr, "a continuous draw cannot be enumerated by a decision hook");
    const auto words = math::philox4x32({position_, static_cast<std::uint32_t>(why), index, lane}, stream_);
    return unit_interval(words[0] | static_cast<std::uint64_t>(words[1]) << 32);
  }

  /// The numbers uniform(why, 0), uniform(why, 1) ..., as blocks of bits: unit_interval of their first two words.
  [[nodiscard]] math::philox_sequence numbers(purpose why) const {
    DECANT_ASSERT(hook_ == nullptr, "a continuous draw cannot be enumerated by a decision hook");
    return {position_, static_cast<std::uint32_t>(why), stream_};
  }

  /// What the upper half of 64 bits is at least if unit_interval(bits) > 1 - share, for share < 1.
  [[nodiscard]] static std::uint32_t upper_half_from(double share) noexcept {
    const double least = (1 - share) * 0x1p32 - 2;
    return least > 0 ? static_cast<std::uint32_t>(least) : 0;
  }

  /// How 64 random bits become a number strictly inside (0, 1): the upper 53, the lowest of them forced on. (Half a
  /// step added instead would round to 1 for the largest.)
  [[nodiscard]] static constexpr double unit_interval(std::uint64_t bits) noexcept {
    return static_cast<double>((bits >> 11) | 1) * 0x1p-53;
  }

  /// True with the given probability; never for 0 (or NaN), always for 1.
  [[nodiscard]] bool chance(double probability, purpose why, std::uint32_t index = 0) const {
    if (!(probability > 0) || math::is_nan(probability)) return false;
    if (probability >= 1) return true;
    if (hook_ != nullptr) {
      const double weights[2] = {probability, 1 - probability};
      return hook_->choose(key(why, index), weights, 1) == 0;
    }
    return uniform(why, index) < probability;
  }

  /// An index i with probability weights[i] / total, never one of weight 0: inverse CDF in index order. O(size).
  /// `total` is the sum of the weights, and positive.
  [[nodiscard]] std::size_t choose(std::span<const double> weights, double total, purpose why,
                                   std::uint32_t index = 0) const {
    DECANT_ASSERT(total > 0, "choose needs a positive total");
    if (hook_ != nullptr) return hook_->choose(key(why, index), weights, total);
    const double target = math::product(uniform(why, index), total);
    double cumulative = 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (!(weights[i] > 0)) continue;
      cumulative += weights[i];
      last = i;
      if (target < cumulative) break;
    }
    return last;
  }

  /// Standard Gumbel noise for one token: finite, between -3.7 and 36.8.
  [[nodiscard]] double gumbel(purpose why, token_id id) const {
    return gumbel(uniform(why, static_cast<std::uint32_t>(id)));
  }
  /// The noise that a number in (0, 1) makes. It is above g only if the number lies in the upper e^-g of (0, 1).
  [[nodiscard]] static double gumbel(double number) { return -math::log(-math::log(number)); }

 private:
  enum class derivation : std::uint32_t { root = 0x64656361, child = 0x6e74636c };

  static constexpr std::uint64_t derive(std::uint64_t key, std::uint64_t tag, derivation how) noexcept {
    const auto words = math::philox4x32({static_cast<std::uint32_t>(tag), static_cast<std::uint32_t>(tag >> 32),
                                         static_cast<std::uint32_t>(how), 0xFFFFFFFF},
                                        key);
    return words[0] | static_cast<std::uint64_t>(words[1]) << 32;
  }

  std::uint64_t stream_ = 0;
  std::uint32_t position_ = 0;
  decision_hook* hook_ = nullptr;
};

}  // namespace decant
