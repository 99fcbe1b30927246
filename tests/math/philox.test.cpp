// SPDX-License-Identifier: MIT
#include <decant/math/philox.hpp>

#include "support/catch.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>

namespace philox_test {

using decant::math::philox4x32;
using words = std::array<std::uint32_t, 4>;

// The vectors that the authors of the generator publish (Random123, kat_vectors).
static_assert(philox4x32({0, 0, 0, 0}, 0) == words{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8});

TEST_CASE("philox gives the published answers", "[math][philox]") {
  CHECK(philox4x32({0, 0, 0, 0}, 0) == words{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8});
  CHECK(philox4x32({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, 0xFFFFFFFFFFFFFFFFU) ==
        words{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD});
  // Digits of pi; the key's first word is the low half.
  CHECK(philox4x32({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, 0x299F31D0A4093822U) ==
        words{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1});
}

TEST_CASE("philox answers the same at run time and at compile time", "[math][philox]") {
  constexpr words at_compile_time = philox4x32({1, 2, 3, 4}, 5);
  volatile std::uint32_t one = 1;
  CHECK(philox4x32({one, 2, 3, 4}, 5) == at_compile_time);
}

TEST_CASE("every bit of philox's counter and key changes about half of the output", "[math][philox]") {
  const words counter{17, 4711, 3, 0};
  const std::uint64_t key = 0x0123456789ABCDEFU;
  const words plain = philox4x32(counter, key);
  const auto distance = [&](const words& other) {
    int bits = 0;
    for (std::size_t i = 0; i < 4; ++i) bits += std::popcount(plain[i] ^ other[i]);
    return bits;
  };
  for (std::size_t bit = 0; bit < 128; ++bit) {
    words flipped = counter;
    flipped[bit / 32] ^= std::uint32_t{1} << (bit % 32);
    CAPTURE(bit);
    CHECK(distance(philox4x32(flipped, key)) > 30);
    CHECK(distance(philox4x32(flipped, key)) < 98);
  }
  for (std::size_t bit = 0; bit < 64; ++bit) {
    CAPTURE(bit);
    CHECK(distance(philox4x32(counter, key ^ std::uint64_t{1} << bit)) > 30);
    CHECK(distance(philox4x32(counter, key ^ std::uint64_t{1} << bit)) < 98);
  }
}

TEST_CASE("philox maps counters one to one", "[math][philox]") {
  std::set<words> seen;
  for (std::uint32_t i = 0; i < 4096; ++i) seen.insert(philox4x32({i % 16, i / 16 % 16, i / 256, 0}, 42));
  CHECK(seen.size() == 4096);
}

}  // namespace philox_test
