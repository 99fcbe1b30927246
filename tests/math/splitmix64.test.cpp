// SPDX-License-Identifier: MIT
#include <decant/math/splitmix64.hpp>

#include "support/catch.hpp"

#include <bit>
#include <cstdint>
#include <cstdlib>

namespace splitmix64_tests {

using decant::math::splitmix64;

static_assert(splitmix64(0, 0) == 0xE220A8397B1DCDAFU);

TEST_CASE("splitmix64 gives the numbers known of seed 0", "[math]") {
  CHECK(splitmix64(0, 0) == 0xE220A8397B1DCDAFU);
  CHECK(splitmix64(0, 1) == 0x6E789E6AA1B965F4U);
  CHECK(splitmix64(0, 2) == 0x06C45D188009454FU);
  CHECK(splitmix64(1234567, 0) == 6457827717110365317U);
  CHECK(splitmix64(1234567, 1) == 3203168211198807973U);
}

TEST_CASE("every bit of splitmix64 is set half of the time, and every bit of seed or index turns half of them",
          "[math]") {
  constexpr int count = 4096;
  int set[64] = {};
  for (std::uint64_t i = 0; i < count; ++i) {
    for (int bit = 0; bit < 64; ++bit) set[bit] += static_cast<int>(splitmix64(99, i) >> bit & 1);
  }
  for (const int n : set) CHECK(std::abs(n - count / 2) < 5 * 32);  // five standard deviations
  for (int bit = 0; bit < 64; ++bit) {
    CAPTURE(bit);
    int turned_by_seed = 0, turned_by_index = 0;
    for (std::uint64_t i = 0; i < 256; ++i) {
      const std::uint64_t seed = splitmix64(5, i), flip = std::uint64_t{1} << bit;
      turned_by_seed += std::popcount(splitmix64(seed, i) ^ splitmix64(seed ^ flip, i));
      turned_by_index += std::popcount(splitmix64(seed, i) ^ splitmix64(seed, i ^ flip));
    }
    CHECK(std::abs(turned_by_seed - 256 * 32) < 5 * 64);
    CHECK(std::abs(turned_by_index - 256 * 32) < 5 * 64);
  }
}

}  // namespace splitmix64_tests
