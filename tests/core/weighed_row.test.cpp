// SPDX-License-Identifier: MIT
#include <decant/core/weighed_row.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "math/bits.hpp"
#include "support/catch.hpp"

namespace weighed_row_test {

using decant::token_id;
using decant::detail::mass_bounds;

/// The layer as candidates see it.
struct layer : decant::detail::weighed_row {
  layer(const std::vector<float>& row, double scale) {
    bind_span(std::span<const float>(row), whole_row);
    scale_ = scale;
  }
  [[nodiscard]] mass_bounds within(sharpness how) { return mass_within(how); }
  [[nodiscard]] mass_bounds within_beside_list(sharpness how, std::size_t listed) {
    gather_at_least(listed);
    return mass_within(how, gathered_, nucleus_.weigh(gathered_, max_, scale_));
  }
  [[nodiscard]] double exact_deviation() const {
    double sum = 0, squares = 0, count = 0;
    each([&](token_id, float z) { sum += static_cast<double>(z), ++count; });
    each([&](token_id, float z) { squares += std::pow(static_cast<double>(z) - sum / count, 2); });
    return scale_ * std::sqrt(squares / count);
  }

  using weighed_row::border_near_max;
  using weighed_row::decide_by_bounds;
  using weighed_row::entropy_error;
  using weighed_row::entropy_value;
  using weighed_row::law_bounds;
  using weighed_row::lowest_where;
  using weighed_row::max_;
  using weighed_row::measure_mass;
  using weighed_row::put;
  using weighed_row::quick_entropy_value;
  using weighed_row::read;
  using weighed_row::read_for_mass;
  using weighed_row::read_for_sigma;
  using weighed_row::relative;
  using weighed_row::rough_known;
  using weighed_row::sharpness;
};

std::vector<float> some_row(test_bits::splitmix& next, std::size_t size, int shape) {
  std::vector<float> row(size);
  const double shift = shape == 1 ? 300 : 0, spread = shape == 2 ? 0.02 : 9;
  for (float& z : row) z = static_cast<float>(shift + next.between(-spread, spread));
  if (shape == 3) row[next.below(size)] = 40;
  if (shape == 4) {
    for (std::size_t i = 0; i < size / 3; ++i) row[next.below(size)] = decant::gone;
  }
  return row;
}

TEST_CASE("bounds of a mass hold it, and sharper ones are closer", "[core][weighed_row]") {
  test_bits::splitmix next(41);
  for (int round = 0; round < 60; ++round) {
    const auto row = some_row(next, 5000 + next.below(20'000), round % 5);
    const double scale = next.between(0.3, 3);
    layer exact(row, scale);
    REQUIRE(exact.read());
    exact.measure_mass();
    const double mass = exact.within(layer::sharpness::exact).low, entropy = exact.entropy_value();
    layer bounded(row, scale);
    REQUIRE(bounded.read_for_mass());
    // Where exponents are too large, about 300 or far below the largest logit, nothing is summed along.
    CHECK((bounded.rough_known() || round % 5 == 1 || round % 5 == 3));
    double width = std::numeric_limits<double>::infinity();
    using sharpness = layer::sharpness;
    for (const sharpness how : {sharpness::rough, sharpness::quick, sharpness::near}) {
      INFO("round " << round << ", sharpness " << static_cast<int>(how));
      const mass_bounds plain = bounded.within(how), beside = bounded.within_beside_list(how, 300);
      CHECK((plain.low <= mass && mass <= plain.high));
      CHECK((beside.low <= mass * (1 + 1e-12) && mass * (1 - 1e-12) <= beside.high));
      CHECK(plain.high - plain.low <= width);
      width = plain.high - plain.low;
    }
    CHECK(width <= 3e-8 * mass);
    CHECK(std::abs(bounded.quick_entropy_value() - entropy) <= layer::entropy_error);
    layer spread(row, scale);
    if (const auto bounds = spread.read_for_sigma()) {
      const double deviation = spread.exact_deviation();
      CHECK((bounds->low <= deviation && deviation <= bounds->high));
      CHECK(bounds->high - bounds->low < 1e-3 * deviation);
    } else {
      CHECK((round % 5 == 4 || round % 5 == 2));  // what is gone has no moments, and what is level little spread
    }
  }
}

TEST_CASE("bounds of a law hold its sums, edited or not, and end with them", "[core][weighed_row]") {
  test_bits::splitmix next(43);
  for (int round = 0; round < 60; ++round) {
    auto row = some_row(next, 5000 + next.below(20'000), round % 5);
    if (round % 3 == 0) {
      for (std::size_t i = 0; i < row.size(); i += 40) row[i] += 8;
    }
    layer bounded(row, next.between(0.3, 3));
    if (round % 4 == 1) CHECK(bounded.read());
    const std::size_t edits = round % 2 == 0 ? 0 : 60;
    for (std::size_t i = 0; i < edits; ++i) bounded.put(static_cast<token_id>(next.below(row.size())), -2);
    if (round % 4 == 3) CHECK(bounded.read());
    struct all_bounds {
      mass_bounds mass, squares, entropy;
    };
    std::vector<all_bounds> seen;
    bounded.decide_by_bounds([&](const layer::law_bounds& law) {
      seen.push_back({law.mass(), law.squares(), law.entropy()});
      return seen.back().mass.low == seen.back().mass.high;
    });
    INFO("round " << round);
    const bool far = (round % 5 == 1 || round % 5 == 3) && round % 4 != 3;  // no reference for rough sums
    REQUIRE(seen.size() >= 2);
    CHECK((seen.size() == 3 || far));
    const all_bounds last = seen.back();
    CHECK(last.squares.low == last.squares.high);
    CHECK(last.entropy.low == last.entropy.high);
    for (const all_bounds& each : seen) {
      CHECK((each.mass.low <= last.mass.low && last.mass.low <= each.mass.high));
      CHECK((each.squares.low <= last.squares.low && last.squares.low <= each.squares.high));
      CHECK((each.entropy.low <= last.entropy.low && last.entropy.low <= each.entropy.high));
    }
    const all_bounds quick = seen[seen.size() - 2];
    CHECK(quick.mass.high - quick.mass.low <= 6e-6 * last.mass.low);
    CHECK(quick.squares.high - quick.squares.low <= 6e-6 * last.squares.low);
  }
}

TEST_CASE("the smallest float that reaches a limit is found from any hint", "[core][weighed_row]") {
  test_bits::splitmix next(42);
  for (int round = 0; round < 2000; ++round) {
    const std::vector<float> row{static_cast<float>(next.between(-50, 50)), -60};
    layer one(row, std::exp(next.between(-5, 5)));
    REQUIRE(one.read());
    const double least = -std::exp(next.between(-20, 6));
    const float border = one.border_near_max(least);
    CHECK(one.relative(border) >= least);
    CHECK(one.relative(std::nextafter(border, -1e30F)) < least);
    const double hint = round % 2 == 0 ? next.between(-1e6, 1e6) : 1e300;
    CHECK(layer::lowest_where(hint, [&](float z) { return one.relative(z) >= least; }) == border);
  }
}

}  // namespace weighed_row_test
