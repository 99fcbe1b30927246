// SPDX-License-Identifier: MIT
#include <decant/math/isa.hpp>

#include <string>

#include "support/catch.hpp"

namespace isa_test {

using namespace decant::math;

TEST_CASE("instruction sets are ordered and have names", "[math][isa]") {
  STATIC_REQUIRE(isa::portable < isa::avx2);
  STATIC_REQUIRE(isa::avx2 < isa::avx512);
  CHECK(std::string(to_string(isa::portable)) == "portable");
  CHECK(std::string(to_string(isa::avx2)) == "avx2");
  CHECK(best_isa() == best_isa());
}

}  // namespace isa_test
