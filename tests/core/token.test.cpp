// SPDX-License-Identifier: MIT
#include <decant/core/token.hpp>

#include "support/catch.hpp"

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>

namespace token_test {

static_assert(std::is_same_v<decant::token_id, std::int32_t>);
static_assert(decant::no_token == -1);
static_assert(decant::is_gone(decant::gone));

TEST_CASE("gone is -inf and nothing else", "[core][token]") {
  CHECK(std::bit_cast<std::uint32_t>(decant::gone) == 0xFF800000U);
  for (const std::uint32_t bits : {0x7F800000U, 0xFF800001U, 0xFFC00000U, 0xFF7FFFFFU, 0U, 0x80000000U}) {
    CHECK_FALSE(decant::is_gone(std::bit_cast<float>(bits)));
  }
}

TEST_CASE("a row status says what it is", "[core][token]") {
  CHECK(std::string(to_string(decant::row_status::ok)) == "ok");
  CHECK(std::string(to_string(decant::row_status::empty)).find("empty") == 0);
  CHECK(std::string(to_string(decant::row_status::not_finite)).find("not finite") == 0);
  CHECK(std::string(to_string(static_cast<decant::row_status>(99))) == "unknown");
}

}  // namespace token_test
