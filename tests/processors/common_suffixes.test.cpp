// SPDX-License-Identifier: MIT
#include <decant/processors/common_suffixes.hpp>

#include "processors/policies.hpp"

namespace common_suffixes_tests {

using namespace policies;
using lengths = std::vector<std::uint32_t>;

lengths of(const tokens& text) {
  lengths out;
  decant::common_suffixes(text, out);
  return out;
}

lengths naive(const tokens& text) {
  lengths out;
  for (std::size_t end = 0; end <= text.size(); ++end) {
    std::uint32_t length = 0;
    while (length < end && text[end - 1 - length] == text[text.size() - 1 - length]) ++length;
    out.push_back(length);
  }
  return out;
}

TEST_CASE("common suffixes by hand", "[processors]") {
  CHECK(of({}) == lengths{0});
  CHECK(of({5}) == lengths{0, 1});
  CHECK(of({5, 5}) == lengths{0, 1, 2});
  CHECK(of({1, 2, 1}) == lengths{0, 1, 0, 3});
  CHECK(of({1, 2, 3, 9, 2, 3}) == lengths{0, 0, 0, 2, 0, 0, 6});
}

TEST_CASE("common suffixes equal those found by comparing, for any text", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const draw_stream draws(seed);
    const double symbols = static_cast<double>(1 + seed % 3);
    tokens text;
    for (std::size_t i = 0; i < seed % 61; ++i)
      text.push_back(static_cast<token_id>(draws.at(i).uniform(decant::purpose::user) * symbols));
    CHECK(of(text) == naive(text));
  }
}

TEST_CASE("every text of two symbols up to length 12", "[processors]") {
  bool equal = true;
  for (std::size_t size = 0; size <= 12; ++size) {
    for (std::size_t bits = 0; bits < (std::size_t{1} << size); ++bits) {
      tokens text;
      for (std::size_t i = 0; i < size; ++i) text.push_back(static_cast<token_id>(bits >> i & 1));
      equal = equal && of(text) == naive(text);
    }
  }
  CHECK(equal);
}

TEST_CASE("common suffixes of a text of one symbol take linear time, and no memory the second time", "[processors]") {
  const tokens text(1'000'000, 3);
  lengths out;
  decant::common_suffixes(text, out);
  CHECK(out[999'999] == 999'999);
  CHECK(out[1] == 1);
  const std::size_t before = decant::testing::allocations();
  decant::common_suffixes(text, out);
  decant::common_suffixes(std::span(text).first(10), out);
  CHECK(decant::testing::allocations() == before);
  CHECK(out.size() == 11);
}

}  // namespace common_suffixes_tests
