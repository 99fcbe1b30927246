// SPDX-License-Identifier: MIT
#include <decant/processors/watermark_key.hpp>

#include "processors/policies.hpp"

#include <set>

#include <decant/testing/chi_square.hpp>

namespace watermark_key_tests {

using namespace policies;
using decant::context_windows;
using decant::watermark_key;
using decant::watermark_use;

TEST_CASE("a watermark's key depends on all that it is made from", "[processors]") {
  const tokens text{3, 1, 2};
  std::set<std::uint64_t> keys;
  std::size_t made = 0;
  const auto add = [&](std::uint64_t key, watermark_use use, const tokens& context) {
    keys.insert(watermark_key(key, use, context));
    ++made;
  };
  for (const std::uint64_t key : {0U, 1U, 2U, 15'485'863U}) {
    for (const auto use : {watermark_use::green_list, watermark_use::candidate, watermark_use::unigram,
                           watermark_use::synthid, watermark_use::gumbel}) {
      for (const tokens& context : {tokens{}, tokens{0}, tokens{0, 0}, tokens{1}, tokens{2, 1}, tokens{1, 2}, text}) {
        add(key, use, context);
      }
    }
  }
  add(std::uint64_t{1} << 32, watermark_use::unigram, {});
  CHECK(keys.size() == made);
  CHECK(watermark_key(7, watermark_use::gumbel, text) == watermark_key(7, watermark_use::gumbel, tokens{3, 1, 2}));
}

TEST_CASE("a watermark's keys stay what they are: texts marked once must be readable for ever", "[processors]") {
  CHECK(watermark_key(0, watermark_use::unigram) == 0x59395E25CC247633U);
  CHECK(watermark_key(42, watermark_use::green_list, tokens{5, 9}) == 0x2A819030CD025CF1U);
}

TEST_CASE("keys of neighbouring contexts have independent bits", "[processors]") {
  std::vector<std::size_t> counts(256);
  for (token_id token = 0; token < 20'000; ++token) {
    ++counts[watermark_key(1, watermark_use::synthid, tokens{token}) >> 13 & 255];
  }
  CHECK(decant::testing::chi_square(counts, law(256, 1)).p_value > 1e-4);
}

TEST_CASE("context windows reach before the text, where there are zeros", "[processors]") {
  const tokens text{7, 8, 9};
  const context_windows windows(text, 2);
  const auto before = [&](std::size_t place) { return tokens{windows.token(place, 0), windows.token(place, 1)}; };
  CHECK(before(0) == tokens{0, 0});
  CHECK(before(1) == tokens{0, 7});
  CHECK(before(2) == tokens{7, 8});
  CHECK(before(3) == tokens{8, 9});
}

TEST_CASE("a context is seen before where it stands before an earlier place within reach", "[processors]") {
  const tokens text{1, 2, 3, 1, 2, 4, 1, 2};
  const context_windows windows(text, 2);
  CHECK(windows.seen_before(8, 0, 100));
  CHECK(windows.seen_before(8, 5, 100));  // before place 5
  CHECK(windows.seen_before(8, 2, 3));    // place 5 is three back
  CHECK_FALSE(windows.seen_before(8, 2, 2));
  CHECK_FALSE(windows.seen_before(8, 6, 100));
  CHECK_FALSE(windows.seen_before(8, 2, 0));
  CHECK(windows.seen_before(5, 2, 100));  // before place 2
  CHECK_FALSE(windows.seen_before(4, 2, 100));
  CHECK_FALSE(windows.seen_before(0, 0, 100));
  const tokens zeros{0, 0, 5};
  CHECK(context_windows(zeros, 2).seen_before(1, 0, 100));  // the zero before the text and the first token
  const tokens late{1, 0};
  CHECK(context_windows(late, 1).seen_before(2, 0, 2));
  CHECK_FALSE(context_windows(late, 1).seen_before(2, 0, 1));
}

TEST_CASE("seen_before equals a look at every pair, on random texts", "[processors]") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    tokens text;
    for (std::uint64_t i = 0; i < 30; ++i) {
      text.push_back(static_cast<token_id>(draw_stream(seed).at(i).uniform(decant::purpose::user) * 3));
    }
    for (std::size_t width = 1; width <= 4; ++width) {
      const context_windows windows(text, width);
      for (std::size_t place = width; place <= text.size(); ++place) {
        bool expected = false;
        for (std::size_t other = width; other < place; ++other) {
          expected = expected || std::equal(text.begin() + static_cast<std::ptrdiff_t>(place - width),
                                            text.begin() + static_cast<std::ptrdiff_t>(place),
                                            text.begin() + static_cast<std::ptrdiff_t>(other - width));
        }
        CHECK(windows.seen_before(place, width, 1000) == expected);
      }
    }
  }
}

}  // namespace watermark_key_tests
