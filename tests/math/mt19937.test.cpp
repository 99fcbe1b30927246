// SPDX-License-Identifier: MIT
#include <decant/math/mt19937.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <random>

namespace mt19937_tests {

using decant::math::mt19937;

TEST_CASE("mt19937 gives the number that the C++ standard asks of it", "[math]") {
  mt19937 generator(5489);
  for (int i = 1; i < 10'000; ++i) static_cast<void>(generator());
  CHECK(generator() == 4123659995U);
}

TEST_CASE("mt19937 equals the standard library's, over seeds", "[math]") {
  for (const std::uint32_t seed : {0U, 1U, 42U, 15'485'863U, 0x80000000U, 0xFFFFFFFFU}) {
    CAPTURE(seed);
    mt19937 generator(seed);
    std::mt19937 standard(seed);
    bool equal = true;
    for (int i = 0; i < 3000; ++i) equal = equal && generator() == standard();
    CHECK(equal);
  }
}

TEST_CASE("a copy of mt19937 goes on alone", "[math]") {
  mt19937 generator(3);
  for (int i = 0; i < 700; ++i) static_cast<void>(generator());
  mt19937 copy = generator;
  const std::uint32_t first = generator(), second = generator();
  CHECK(copy() == first);
  CHECK(copy() == second);
  CHECK(first != second);
}

}  // namespace mt19937_tests
