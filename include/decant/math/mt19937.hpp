// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace decant::math {

/// The Mersenne Twister with 32-bit words: for answers that must match another library's, bit for bit.
///
/// decant's own draws are Philox (philox.hpp). Seeding costs about 2 us, a number about 3 ns; 2.5 KB, no allocation.
/// Reference: Matsumoto, Nishimura, "Mersenne twister", ACM TOMACS 8(1), 1998, with the seeding of 2002.
class mt19937 {
 public:
  explicit mt19937(std::uint32_t seed) noexcept {
    state_[0] = seed;
    for (std::size_t i = 1; i < size; ++i) {
      state_[i] = 1812433253U * (state_[i - 1] ^ state_[i - 1] >> 30) + static_cast<std::uint32_t>(i);
    }
  }

  /// The next number, uniform over all 32-bit words.
  std::uint32_t operator()() noexcept {
    if (next_ == size) twist();
    std::uint32_t y = state_[next_++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9D2C5680U;
    y ^= y << 15 & 0xEFC60000U;
    return y ^ y >> 18;
  }

 private:
  static constexpr std::size_t size = 624, distance = 397;

  void twist() noexcept {
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t y = (state_[i] & 0x80000000U) | (state_[(i + 1) % size] & 0x7FFFFFFFU);
      state_[i] = state_[(i + distance) % size] ^ y >> 1 ^ (y % 2 == 1 ? 0x9908B0DFU : 0U);
    }
    next_ = 0;
  }

  std::array<std::uint32_t, size> state_;
  std::size_t next_ = size;
};

}  // namespace decant::math
