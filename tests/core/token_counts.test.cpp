// SPDX-License-Identifier: MIT
#include <decant/core/token_counts.hpp>

#include "processors/policies.hpp"

#include <limits>
#include <map>

#include <decant/testing/counting_allocator.hpp>

namespace token_counts_tests {

using namespace policies;
using decant::token_counts;

std::map<token_id, std::uint32_t> counted(token_counts& counts, const tokens& text) {
  std::map<token_id, std::uint32_t> out;
  for (const auto& [id, count] : counts.count(text)) {
    CHECK(!out.contains(id));
    out[id] = count;
  }
  return out;
}

TEST_CASE("tokens are counted, in order of first appearance", "[core]") {
  token_counts counts;
  const auto items = counts.count(tokens{5, 2, 5, 7, 2, 5});
  REQUIRE(items.size() == 3);
  CHECK(items[0].id == 5);
  CHECK(items[0].count == 3);
  CHECK(items[1].id == 2);
  CHECK(items[1].count == 2);
  CHECK(items[2].id == 7);
  CHECK(items[2].count == 1);
}

TEST_CASE("a history that goes on, ends earlier or differs is counted as it stands", "[core]") {
  token_counts counts;
  tokens text;
  const draw_stream draws(3);
  for (std::size_t i = 0; i < 400; ++i) {
    // Most steps append; some take back, change the first, an old or the last token, or ask again.
    const draw_stream at = draws.at(i);
    const double what = at.uniform(decant::purpose::user);
    const auto some = static_cast<token_id>(at.uniform(decant::purpose::user, 1) * 50);
    if (what < 0.8 || text.size() < 4)
      text.insert(text.end(), 1 + i % 3, some);
    else if (what < 0.85)
      text.resize(text.size() / 2);
    else if (what < 0.9)
      text[what < 0.87 ? 0 : text.size() / 2] = some;
    else if (what < 0.95)
      text.back() = some;
    std::map<token_id, std::uint32_t> expected;
    tokens order;
    for (const token_id id : text) {
      if (++expected[id] == 1) order.push_back(id);
    }
    const std::span<const token_counts::item> items = counts.count(text);
    REQUIRE(items.size() == order.size());
    for (std::size_t j = 0; j < items.size(); ++j) {
      REQUIRE(items[j].id == order[j]);
      REQUIRE(items[j].count == expected[order[j]]);
    }
    if (i % 37 == 0) {
      counts.start(2);
      counts.of(some) = 77;  // by hand: no part of what is counted next
    } else if (i % 11 == 0) {
      counts.of(some) += 5;
    }
  }
}

TEST_CASE("every count starts anew", "[core]") {
  token_counts counts;
  CHECK(counted(counts, {1, 1, 2}).at(1) == 2);
  CHECK(counts.count({}).empty());
  CHECK(counted(counts, {1}) == std::map<token_id, std::uint32_t>{{1, 1}});
}

TEST_CASE("all ids are equal, the largest and the strange", "[core]") {
  token_counts counts;
  constexpr token_id top = std::numeric_limits<token_id>::max();
  CHECK(counted(counts, {top, 0, top, -1, top}) == std::map<token_id, std::uint32_t>{{-1, 1}, {0, 1}, {top, 3}});
}

TEST_CASE("counts equal those of a map, for any text", "[core]") {
  token_counts counts;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const draw_stream draws(seed);
    tokens text;
    std::map<token_id, std::uint32_t> expected;
    const double spread = seed % 3 == 0 ? 3 : seed % 3 == 1 ? 200 : 2e9;
    // Multiples of a power of two fall together in a bad hash.
    const token_id step = spread < 1e6 && seed % 2 == 0 ? 4096 : 1;
    for (std::size_t i = 0; i < seed * 7; ++i) {
      text.push_back(step * static_cast<token_id>(draws.at(i).uniform(decant::purpose::user) * spread));
      ++expected[text.back()];
    }
    CHECK(counted(counts, text) == expected);
  }
}

TEST_CASE("a long text of distinct tokens is counted in linear time", "[core]") {
  token_counts counts;
  tokens text;
  for (token_id i = 0; i < 200'000; ++i) text.push_back(i * 64);
  CHECK(counts.count(text).size() == 200'000);
}

TEST_CASE("counting allocates only while the text grows", "[core]") {
  token_counts counts;
  const tokens text(100, 3);
  static_cast<void>(counts.count(text));
  const std::size_t before = decant::testing::allocations();
  static_cast<void>(counts.count(text));
  static_cast<void>(counts.count(std::span(text).first(10)));
  CHECK(decant::testing::allocations() == before);
}

TEST_CASE("counts can be kept by hand", "[core]") {
  token_counts counts;
  CHECK(counts.items().empty());
  counts.start(3);
  counts.of(7) = 5;
  counts.of(-1) += 2;
  CHECK(counts.of(7) == 5);
  CHECK(counts.of(9) == 0);
  REQUIRE(counts.items().size() == 3);
  CHECK(counts.items()[0].id == 7);
  CHECK(counts.items()[1].count == 2);
  CHECK(counts.items()[2].id == 9);
  counts.start(100);
  CHECK(counts.items().empty());
  for (token_id i = 0; i < 100; ++i) counts.of(i * 4096) = static_cast<std::uint32_t>(i);
  bool kept = true;
  for (token_id i = 0; i < 100; ++i) kept = kept && counts.of(i * 4096) == static_cast<std::uint32_t>(i);
  CHECK(kept);
  CHECK(counts.items().size() == 100);
}

}  // namespace token_counts_tests
