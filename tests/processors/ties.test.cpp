// SPDX-License-Identifier: MIT
#include <decant/processors/ties.hpp>

#include <type_traits>

#include "support/catch.hpp"

namespace ties_tests {

TEST_CASE("the lower id is what ties mean where nothing is said", "[processors]") {
  CHECK(decant::ties{} == decant::ties::lower_id);
  CHECK(decant::ties::keep != decant::ties::lower_id);
  CHECK(sizeof(decant::ties) == 1);
}

}  // namespace ties_tests
