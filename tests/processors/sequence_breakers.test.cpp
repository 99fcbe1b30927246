// SPDX-License-Identifier: MIT
#include <decant/processors/sequence_breakers.hpp>

#include "processors/texts.hpp"

namespace sequence_breakers_tests {

using namespace texts;
using decant::sequence_breakers;
using runs = std::vector<std::uint32_t>;

runs unbroken(const sequence_breakers& breakers, const tokens& text) {
  runs out;
  static_cast<void>(breakers.unbroken(text, out));
  return out;
}

TEST_CASE("without breakers every token is unbroken", "[processors]") {
  CHECK(sequence_breakers{}.off());
  CHECK(sequence_breakers({}, bytes_as_tokens()).off());
  CHECK(unbroken({}, {7, 7, 7}) == runs{1, 2, 3});
  CHECK(unbroken({}, {}) == runs{});
  CHECK(!sequence_breakers{}.end_in(7, 0));
}

TEST_CASE("a breaker that is a token breaks it", "[processors]") {
  const sequence_breakers breakers(sequence_breakers::usual(), bytes_as_tokens());
  CHECK(breakers.size() == 4);
  CHECK(unbroken(breakers, spelled("ab\ncde: f")) == runs{1, 2, 0, 1, 2, 3, 0, 1, 2});
  CHECK(unbroken(breakers, spelled("\"*\n:")) == runs{0, 0, 0, 0});
}

TEST_CASE("a breaker inside a token breaks it whole", "[processors]") {
  const sequence_breakers breakers({"\n"}, vocabulary({"a", ".\n\n", "b"}));
  CHECK(unbroken(breakers, {0, 1, 2, 2}) == runs{1, 0, 1, 2});
}

TEST_CASE("a breaker over several tokens breaks all of them, however the text was cut (textgen PR 6047)",
          "[processors]") {
  const strings pieces{"jack black", "jack", " bl", "ack", "x", "x jack b", "lack!", ""};
  const sequence_breakers breakers({"jack black"}, vocabulary(pieces));
  CHECK(unbroken(breakers, {4, 0, 4}) == runs{1, 0, 1});
  CHECK(unbroken(breakers, {4, 1, 2, 3, 4}) == runs{1, 0, 0, 0, 1});
  CHECK(unbroken(breakers, {4, 5, 6, 4}) == runs{1, 0, 0, 1});
  CHECK(unbroken(breakers, {4, 1, 2, 7, 3, 7, 4}) == runs{1, 0, 0, 0, 0, 1, 2});
  // What does not become the breaker breaks nothing: "ack" alone is none.
  CHECK(unbroken(breakers, {4, 3, 1, 2, 4}) == runs{1, 2, 3, 4, 5});
}

TEST_CASE("breakers that overlap and contain each other", "[processors]") {
  const sequence_breakers breakers({"aba", "b"}, bytes_as_tokens());
  CHECK(unbroken(breakers, spelled("xababax")) == runs{1, 0, 0, 0, 0, 0, 1});
  CHECK(unbroken(breakers, spelled("xabxax")) == runs{1, 2, 0, 1, 2, 3});
}

TEST_CASE("tokens that have no bytes, or are outside the vocabulary, break nothing", "[processors]") {
  const sequence_breakers breakers({"a"}, vocabulary({"", "a", "b"}));
  CHECK(unbroken(breakers, {0, 2, 99, -1, 0}) == runs{1, 2, 3, 4, 5});
  CHECK(unbroken(breakers, {0, 1, 0}) == runs{1, 0, 1});
  CHECK(unbroken(sequence_breakers({"a"}, {}), {0, 1, 2}) == runs{1, 2, 3});
}

TEST_CASE("bytes of all values can break", "[processors]") {
  const sequence_breakers breakers({std::string("\0\xFF", 2)}, bytes_as_tokens());
  CHECK(unbroken(breakers, {0, 255, 0, 0, 255, 1, 255, 0}) == runs{0, 0, 1, 0, 0, 1, 2, 3});
}

TEST_CASE("a breaker ends in a next token, alone or begun before", "[processors]") {
  const sequence_breakers breakers({"\n", "ab"}, vocabulary({"a", "b", "\n", "x\ny", "c", "", "bcd"}));
  runs scratch;
  const auto after_c = breakers.unbroken(tokens{0, 4}, scratch), after_a = breakers.unbroken(tokens{4, 0}, scratch);
  CHECK(breakers.end_in(2, after_c));
  CHECK(breakers.end_in(3, after_c));
  CHECK(!breakers.end_in(1, after_c));
  CHECK(!breakers.end_in(0, after_c));
  CHECK(breakers.end_in(1, after_a));
  CHECK(breakers.end_in(6, after_a));
  CHECK(!breakers.end_in(4, after_a));
  CHECK(!breakers.end_in(5, after_a));
  CHECK(!breakers.end_in(77, after_a));
}

TEST_CASE("broken tokens are those found by searching, for any text and breakers", "[processors]") {
  const strings pieces{"a", "b", "ab", "ba", "", "aab", "c", "bcb"};
  const std::vector<strings> sets{
      {"a"}, {"c"}, {"ab"}, {"aa", "bb"}, {"abab", "ba"}, {"aabb", "bc", "cb"}, {"abaabaab"}, {"b", "ab", "bab"}};
  const auto bytes = vocabulary(pieces);
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const strings& set = sets[seed % sets.size()];
    const tokens text = random_text(seed, seed % 41, pieces.size());
    const runs found = unbroken(sequence_breakers(set, bytes), text);
    const auto expected = broken(text, set, pieces);
    std::uint32_t run = 0;
    REQUIRE(found.size() == text.size());
    bool equal = true;
    for (std::size_t i = 0; i < text.size(); ++i) {
      run = expected[i] ? 0 : run + 1;
      equal = equal && found[i] == run;
    }
    INFO("seed " << seed);
    CHECK(equal);
  }
}

TEST_CASE("an empty breaker is refused", "[processors]") {
  const std::string expected = "sequence_breakers: string = 1 must not be empty";
  CHECK(complaint([] { return sequence_breakers({"a", ""}, bytes_as_tokens()); }) == expected);
  const auto made = sequence_breakers::make(strings{"a", ""}, bytes_as_tokens());
  REQUIRE(!made.has_value());
  CHECK(made.error().message == expected);
  CHECK(made.error().where == "sequence_breakers.string");
  CHECK(sequence_breakers::make(strings{"a"}, bytes_as_tokens()).value().size() == 1);
}

TEST_CASE("looking for breakers allocates nothing in steady state", "[processors]") {
  const sequence_breakers breakers(sequence_breakers::usual(), bytes_as_tokens());
  const tokens text = random_text(1, 500, 256);
  runs out;
  static_cast<void>(breakers.unbroken(text, out));
  const std::size_t before = decant::testing::allocations();
  static_cast<void>(breakers.unbroken(text, out));
  const sequence_breakers copy = breakers;
  CHECK(copy.size() == 4);
  CHECK(decant::testing::allocations() == before);
}

}  // namespace sequence_breakers_tests
