// SPDX-License-Identifier: MIT
#include <decant/core/listed_row.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "math/bits.hpp"
#include "support/catch.hpp"

namespace listed_row_test {

using decant::entry;
using decant::gone;
using decant::token_id;
using decant::detail::before;
using decant::detail::bisection;
using decant::detail::listed_row;

constexpr float lowest = -std::numeric_limits<float>::max();

listed_row random_list(test_bits::splitmix& next, std::size_t size, bool tied) {
  listed_row list;
  token_id id = 0;
  for (std::size_t i = 0; i < size; ++i) {
    id += static_cast<token_id>(1 + next.below(9));
    const double z = next.between(-20, 20);
    list.add(id, next.below(30) == 0 ? gone : static_cast<float>(tied ? static_cast<int>(z) / 8 : z));
  }
  return list;
}

std::vector<entry> entries_of(const listed_row& list) {
  std::vector<entry> all;
  for (std::size_t i = 0; i < list.size(); ++i) all.push_back(list[i]);
  return all;
}

TEST_CASE("a list is cut after its first tokens in descending order, ties by lower id", "[core][listed_row]") {
  test_bits::splitmix next(3);
  for (int round = 0; round < 400; ++round) {
    listed_row list = random_list(next, 1 + next.below(300), round % 2 == 0);
    std::vector<entry> sorted = entries_of(list);
    std::sort(sorted.begin(), sorted.end(), before);
    std::erase_if(sorted, [](const entry& e) { return decant::is_gone(e.logit); });
    if (sorted.empty()) continue;
    const std::size_t count = 1 + next.below(sorted.size());
    const float low = round % 3 == 0 ? sorted.back().logit : lowest;
    const entry last = list.nth(count, low, sorted[0].logit);
    list.keep(last);
    sorted.resize(count);
    CHECK(list.last() == sorted.back());
    std::ranges::sort(sorted, {}, &entry::id);
    CHECK(entries_of(list) == sorted);
  }
}

TEST_CASE("tokens of a list are found by id, and values are followed by -inf for kernels", "[core][listed_row]") {
  test_bits::splitmix next(4);
  for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 100U}) {
    listed_row list = random_list(next, size, false);
    const auto all = entries_of(list);
    for (std::size_t i = 0; i < size; ++i) {
      CHECK(list.find(all[i].id) == i);
      if (i + 1 < size && all[i].id + 1 < all[i + 1].id) CHECK(list.find(all[i].id + 1) == size);
    }
    CHECK(list.find(100'000) == size);
    for (const std::size_t multiple : {16U, 64U}) {
      const auto padded = list.padded(multiple);
      CHECK(padded.size() % multiple == 0);
      CHECK(padded.size() < size + multiple);
      for (std::size_t i = 0; i < padded.size(); ++i) CHECK(padded[i] == (i < size ? all[i].logit : gone));
    }
    CHECK(entries_of(list) == all);
  }
}

TEST_CASE("bisection finds a float among all floats in few steps", "[core][listed_row]") {
  test_bits::splitmix next(5);
  for (int round = 0; round < 3000; ++round) {
    float wanted = 0;
    do {
      wanted = decant::math::flush_denormal(
          round % 2 == 0 ? test_bits::float_of(static_cast<std::uint32_t>(next.below(1ULL << 32)))
                         : static_cast<float>(next.between(-30, 30)));
    } while (!decant::math::is_finite(wanted) || wanted == -lowest);
    bisection search(round % 3 == 0 ? lowest : std::min(wanted, -31.0F),
                     decant::math::next_above(std::max(wanted, 31.0F)));
    int steps = 0;
    while (search.next()) {
      REQUIRE(++steps < 80);
      search.middle() <= wanted ? search.raise() : search.lower();
    }
    CHECK(search.low() == wanted);
    CHECK(search.high() == decant::math::next_above(wanted));
  }
}

}  // namespace listed_row_test
