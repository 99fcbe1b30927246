// SPDX-License-Identifier: MIT
#include <decant/math/kernels_portable.hpp>

#include <limits>

#include "math/bits.hpp"
#include "support/catch.hpp"

// What the kernels do is tested in kernels.test.cpp, for all forms alike; here, how a sum tells what a row holds.

namespace kernels_portable_test {

using namespace decant::math;

TEST_CASE("a sum tells what was summed", "[math][kernels]") {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  CHECK(content_of(1.5F) == row_content::finite);
  CHECK(content_of(-infinite) == row_content::some_gone);
  CHECK(content_of(infinite) == row_content::suspicious);
  CHECK(content_of(test_bits::float_of(0x7FC00000U)) == row_content::suspicious);
  CHECK(worse(row_content::finite, row_content::some_gone) == row_content::some_gone);
  CHECK(worse(row_content::suspicious, row_content::some_gone) == row_content::suspicious);
}

}  // namespace kernels_portable_test
