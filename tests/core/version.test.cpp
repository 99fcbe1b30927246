// SPDX-License-Identifier: MIT
#include <decant/core/version.hpp>

#include "support/catch.hpp"

namespace version_test {

TEST_CASE("versions compare as numbers", "[core][version]") {
  STATIC_REQUIRE(DECANT_VERSION == DECANT_VERSION_MAJOR * 10000 + DECANT_VERSION_MINOR * 100 + DECANT_VERSION_PATCH);
  STATIC_REQUIRE(DECANT_VERSION_MINOR < 100);
  STATIC_REQUIRE(DECANT_VERSION_PATCH < 100);
  STATIC_REQUIRE(DECANT_VERSION >= 100);
}

}  // namespace version_test
