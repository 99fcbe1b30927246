// SPDX-License-Identifier: MIT
#include <decant/speculative/retokeniser.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace retokeniser_tests {

using ids = std::vector<decant::token_id>;

TEST_CASE("a text is split anew", "[speculative]") {
  decant::retokeniser pairs{
      .bytes =
          [](decant::token_id token) { return std::string_view("abc").substr(static_cast<std::size_t>(token), 1); },
      .encode =
          [](std::string_view text) {
            ids tokens;
            for (std::size_t i = 0; i < text.size(); i += 2) tokens.push_back(text[i] - 'a');
            return tokens;
          }};
  std::string text = "left over";
  CHECK(pairs(ids{0, 1, 2, 0, 1}, text) == ids{0, 2, 1});
  CHECK(text == "abcab");
  CHECK(pairs(ids{}, text).empty());
  pairs.encode = nullptr;
  CHECK_THROWS_AS(pairs(ids{0}, text), assertion_error);
}

}  // namespace retokeniser_tests
