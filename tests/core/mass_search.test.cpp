// SPDX-License-Identifier: MIT
#include <decant/core/mass_search.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "math/bits.hpp"
#include "support/catch.hpp"

namespace mass_search_test {

using decant::entry;
using decant::token_id;
using decant::detail::before;
using decant::detail::listed_row;
using decant::detail::mass_bounds;
using decant::detail::mass_search;

constexpr float lowest = -std::numeric_limits<float>::max();

/// A list with its tokens in descending order, and the masses up to each of them.
struct ranked {
  listed_row list;
  std::vector<entry> sorted;
  std::vector<double> mass;
};

ranked random_list(test_bits::splitmix& next, std::size_t size, int shape, double scale) {
  ranked made;
  for (std::size_t i = 0; i < size; ++i) {
    const double z = shape == 0 ? next.between(-9, 9) : shape == 1 ? static_cast<double>(next.below(4)) : 1;
    made.list.add(static_cast<token_id>(i), static_cast<float>(z));
    made.sorted.push_back(made.list[i]);
  }
  std::sort(made.sorted.begin(), made.sorted.end(), before);
  double sum = 0;
  for (const entry& e : made.sorted) {
    made.mass.push_back(sum += std::exp(scale * (static_cast<double>(e.logit) - made.sorted[0].logit)));
  }
  return made;
}

TEST_CASE("the token at which a mass is reached is found without sorting", "[core][mass_search]") {
  test_bits::splitmix next(7);
  mass_search search;
  std::size_t found_some = 0;
  for (int round = 0; round < 1500; ++round) {
    const std::size_t size = 1 + next.below(round % 10 == 0 ? 3000 : 200);
    const double scale = next.between(0.2, 3);
    ranked made = random_list(next, size, round % 3, scale);
    const float top = made.sorted[0].logit;
    CHECK(search.weigh(made.list, top, scale) == Approx(made.mass.back()).epsilon(1e-12));
    const double before_all = round % 4 == 0 ? next.between(0, 3) : 0, width = round % 5 == 0 ? 1e-4 : 0;
    const double wanted = before_all + made.mass.back() * next.unit();
    const mass_bounds bounds{wanted * (1 - width), wanted * (1 + width)};
    const auto place =
        search.find(made.list, bounds, before_all, 5, round % 2 == 0 ? lowest : made.sorted.back().logit, top);
    const auto reaches = [&](double mass) {
      return static_cast<std::size_t>(
          std::ranges::find_if(made.mass, [&](double m) { return before_all + m >= mass; }) - made.mass.begin());
    };
    const std::size_t low = reaches(bounds.low * (1 - 1e-9)), high = reaches(bounds.high * (1 + 1e-9));
    if (!place) {
      // Silent only where the answer depends on where between the bounds the mass lies, or the list does not hold it.
      CHECK((low != high || high == size || bounds.low * (1 - 1e-9) <= before_all));
      continue;
    }
    ++found_some;
    REQUIRE(low == high);
    CHECK(place->count == 5 + low + 1);
    CHECK(place->last.logit == made.sorted[low].logit);
    const bool more = low + 1 < size && made.sorted[low + 1].logit == made.sorted[low].logit;
    CHECK(place->last.id == (more ? made.sorted[low].id : listed_row::any_id));
  }
  CHECK(found_some > 900);
}

TEST_CASE("the value from which on weights reach a mass", "[core][mass_search]") {
  test_bits::splitmix next(8);
  mass_search search;
  for (int round = 0; round < 300; ++round) {
    ranked made = random_list(next, 1 + next.below(200), round % 3, 1);
    static_cast<void>(search.weigh(made.list, made.sorted[0].logit, 1));
    double squares = 0;
    for (const entry& e : made.sorted) squares += std::exp(2 * (static_cast<double>(e.logit) - made.sorted[0].logit));
    CHECK(search.deviation() == Approx(std::sqrt(squares)));
    const double wanted = made.mass.back() * next.unit();
    const auto first = std::ranges::find_if(made.mass, [&](double m) { return m >= wanted; });
    const auto at = static_cast<std::size_t>(first - made.mass.begin());
    const float value = search.value_near(wanted, made.sorted[0].logit);
    CHECK(value <= made.sorted[at].logit);
    CHECK(value > made.sorted[at].logit - 0.01F);
    CHECK(search.mass_from(value) >= wanted);
    const float beyond = search.value_beyond(wanted, made.sorted[0].logit);
    CHECK(search.mass_from(beyond) < wanted);
    CHECK(beyond > value);
    CHECK(beyond < value + 0.01F);
    CHECK(search.value_near(made.mass.back() * 1.01, made.sorted[0].logit) == lowest);
  }
}

}  // namespace mass_search_test
