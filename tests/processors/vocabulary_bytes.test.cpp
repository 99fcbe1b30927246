// SPDX-License-Identifier: MIT
#include <decant/processors/vocabulary_bytes.hpp>

#include "processors/policies.hpp"

namespace vocabulary_bytes_tests {

using namespace policies;
using decant::vocabulary_bytes;

static_assert(decant::TokenBytes<vocabulary_bytes>);

TEST_CASE("every token has the bytes that it was said to have", "[processors]") {
  const std::vector<std::string> pieces{"", "a", std::string("\0b", 2), "\xF0\x9F", "", "longer"};
  const vocabulary_bytes bytes(
      [&](token_id token) { return std::string_view(pieces[static_cast<std::size_t>(token)]); }, pieces.size());
  REQUIRE(bytes.size() == 6);
  for (std::size_t i = 0; i < pieces.size(); ++i) CHECK(bytes(static_cast<token_id>(i)) == pieces[i]);
}

TEST_CASE("tokens outside the vocabulary have no bytes", "[processors]") {
  const vocabulary_bytes bytes([](token_id) { return std::string_view("x"); }, 2);
  CHECK(bytes(-1).empty());
  CHECK(bytes(2).empty());
  CHECK(bytes(1) == "x");
  CHECK(vocabulary_bytes{}(0).empty());
  CHECK(vocabulary_bytes{}.size() == 0);
  CHECK(vocabulary_bytes([](token_id) { return std::string_view("x"); }, 0)(0).empty());
}

TEST_CASE("a function that returns strings by value will do", "[processors]") {
  const vocabulary_bytes bytes([](token_id token) { return std::to_string(token); }, 12);
  CHECK(bytes(11) == "11");
}

TEST_CASE("copies share the bytes", "[processors]") {
  vocabulary_bytes copy;
  {
    const vocabulary_bytes bytes([](token_id) { return std::string_view("some bytes"); }, 1000);
    const std::size_t before = decant::testing::allocations();
    copy = bytes;
    CHECK(decant::testing::allocations() == before);
    CHECK(copy(3).data() == bytes(3).data());
  }
  CHECK(copy(999) == "some bytes");
}

}  // namespace vocabulary_bytes_tests
