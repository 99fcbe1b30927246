// SPDX-License-Identifier: MIT
#include <decant/core/descending_sort.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <decant/testing/counting_allocator.hpp>

#include "math/bits.hpp"
#include "support/catch.hpp"

namespace descending_sort_test {

using decant::entry;
using decant::token_id;
using decant::detail::descending_sort;
using decant::detail::listed_row;

/// Values of one kind, some of which are hard to tell apart.
float some_value(test_bits::splitmix& next, int kind) {
  constexpr float largest = std::numeric_limits<float>::max(), smallest = std::numeric_limits<float>::min();
  switch (kind) {
    case 0: return static_cast<float>(next.between(-12, 12));
    case 1: return 1;
    case 2: return next.below(2) == 0 ? 1.0F : 2.0F;
    case 3: return next.below(2) == 0 ? 0.0F : -0.0F;
    case 4: {
      const float few[] = {largest, -largest, smallest, -smallest, 0.0F, -0.0F, 1.0F, -1.0F};
      return few[next.below(8)];
    }
    default:
      while (true) {
        const float any = test_bits::float_of(static_cast<std::uint32_t>(next.below(std::uint64_t{1} << 32)));
        if (decant::math::is_finite(any)) return decant::math::flush_denormal(any);
      }
  }
}

listed_row some_list(test_bits::splitmix& next, std::size_t size, int kind) {
  listed_row list;
  token_id id = 0;
  for (std::size_t i = 0; i < size; ++i) {
    id += static_cast<token_id>(1 + next.below(3));
    list.add(id, some_value(next, kind));
  }
  return list;
}

TEST_CASE("tokens are sorted by logit, and equal ones stay in the order of their ids", "[core][descending_sort]") {
  test_bits::splitmix next(11);
  descending_sort sort;
  std::vector<entry> sorted;
  for (int kind = 0; kind < 6; ++kind) {
    for (const std::size_t size : {0U, 1U, 2U, 599U, 600U, 601U, 4096U, 30'011U}) {
      const listed_row list = some_list(next, size, kind);
      std::vector<entry> wanted;
      for (std::size_t i = 0; i < size; ++i) wanted.push_back(list[i]);
      std::ranges::stable_sort(wanted, [](const entry& a, const entry& b) { return a.logit > b.logit; });
      sort(list, sorted);
      CHECK(sorted == wanted);
    }
  }
}

TEST_CASE("sorting allocates no more once it has sorted such a list", "[core][descending_sort]") {
  test_bits::splitmix next(12);
  descending_sort sort;
  std::vector<entry> sorted;
  const listed_row list = some_list(next, 20'000, 0);
  for (int i = 0; i < 4; ++i) sort(list, sorted);
  const std::size_t before = decant::testing::allocations();
  sort(list, sorted);
  CHECK(decant::testing::allocations() == before);
}

}  // namespace descending_sort_test
