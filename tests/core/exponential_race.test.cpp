// SPDX-License-Identifier: MIT
#include <decant/core/exponential_race.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <decant/math/kernels.hpp>
#include <decant/testing/chi_square.hpp>

#include "math/bits.hpp"
#include "support/catch.hpp"

namespace exponential_race_test {

using decant::draw_stream;
using decant::exponential_race;
using decant::purpose;
using decant::token_id;
using decant::testing::chi_square;

exponential_race race_of(std::uint64_t seed, std::size_t position = 0) {
  return exponential_race(draw_stream(seed).at(position).numbers(purpose::noise));
}

/// Which tenth of its law a standard exponential variable lies in.
std::size_t tenth(double time) { return std::min<std::size_t>(9, static_cast<std::size_t>(-std::expm1(-time) * 10)); }

TEST_CASE("arrivals are standard exponential variables, of any token and of any race", "[core][race]") {
  const std::vector<double> even(10, 0.1);
  std::vector<std::size_t> over_tokens(10), over_races(10);
  double sum = 0, least = 100, most = 0;
  for (token_id id = 0; id < 100'000; ++id) {
    const double time = race_of(1).arrival(id);
    ++over_tokens[tenth(time)];
    sum += time;
    least = std::min(least, time);
    most = std::max(most, time);
  }
  for (std::uint64_t seed = 0; seed < 50'000; ++seed) ++over_races[tenth(race_of(seed).arrival(77))];
  CHECK(chi_square(over_tokens, even).p_value > 1e-4);
  CHECK(chi_square(over_races, even).p_value > 1e-4);
  CHECK(sum / 100'000 == Approx(1).margin(0.015));
  CHECK(least > 0);
  CHECK(least < 1e-3);
  CHECK(most > 8);
  CHECK(most < 37.4);
}

TEST_CASE("two tokens of one block, of two blocks and of two races arrive independently", "[core][race]") {
  std::vector<std::size_t> one_block(100), two_blocks(100), two_races(100), two_positions(100);
  for (std::uint64_t seed = 0; seed < 40'000; ++seed) {
    const std::size_t row = 10 * tenth(race_of(seed).arrival(130));
    ++one_block[row + tenth(race_of(seed).arrival(141))];
    ++two_blocks[row + tenth(race_of(seed).arrival(66))];
    ++two_races[row + tenth(race_of(seed + 1).arrival(130))];
    ++two_positions[row + tenth(race_of(seed, 1).arrival(130))];
  }
  const std::vector<double> even(100, 0.01);
  CHECK(chi_square(one_block, even).p_value > 1e-4);
  CHECK(chi_square(two_blocks, even).p_value > 1e-4);
  CHECK(chi_square(two_races, even).p_value > 1e-4);
  CHECK(chi_square(two_positions, even).p_value > 1e-4);
}

TEST_CASE("the first of a block comes at rate 64, at any place alike, and the second at rate 63 after it",
          "[core][race]") {
  std::vector<std::size_t> places(64), first(10), second(10), pairs(64);
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const exponential_race race = race_of(seed);
    std::vector<std::pair<double, std::size_t>> times;
    for (std::size_t i = 0; i < 64; ++i) times.emplace_back(race.arrival(static_cast<token_id>(192 + i)), i);
    std::partial_sort(times.begin(), times.begin() + 2, times.end());
    ++places[times[0].second];
    ++first[tenth(64 * times[0].first)];
    ++second[tenth(63 * (times[1].first - times[0].first))];
    ++pairs[(64 + times[1].second - times[0].second) % 64];
  }
  CHECK(pairs[0] == 0);
  pairs.erase(pairs.begin());
  CHECK(chi_square(places, std::vector<double>(64, 1.0 / 64)).p_value > 1e-4);
  CHECK(chi_square(first, std::vector<double>(10, 0.1)).p_value > 1e-4);
  CHECK(chi_square(second, std::vector<double>(10, 0.1)).p_value > 1e-4);
  CHECK(chi_square(pairs, std::vector<double>(63, 1.0 / 63)).p_value > 1e-4);
}

TEST_CASE("who wins a race by weight is drawn by weight", "[core][race]") {
  std::vector<double> weights;
  for (std::size_t i = 0; i < 90; ++i) weights.push_back(i % 9 == 0 ? 12.0 : 0.1 * static_cast<double>(i % 7));
  double total = 0;
  for (const double w : weights) total += w;
  std::vector<std::size_t> won(weights.size());
  std::vector<double> law;
  for (const double w : weights) law.push_back(w / total);
  for (std::uint64_t seed = 0; seed < 40'000; ++seed) {
    const exponential_race race = race_of(seed);
    std::size_t best = 0;
    for (std::size_t i = 1; i < weights.size(); ++i) {
      if (race.arrival(static_cast<token_id>(i)) * weights[best] <
          race.arrival(static_cast<token_id>(best)) * weights[i])
        best = i;
    }
    ++won[best];
  }
  CHECK(chi_square(won, law).p_value > 1e-4);
}

TEST_CASE("early arrivals are found 64 at a time on every instruction set, and hardly any others", "[core][race]") {
  for (const auto which : test_bits::forms()) {
    decant::math::use_kernels(which);
    INFO(decant::math::to_string(which));
    for (const double time : {1e300, 2.0, 1.0, 0.999, 0.3, 0.02, 1.0 / 64, 1e-3, 1e-5, 1e-9, 1e-300, 0.0}) {
      exponential_race race = race_of(5);
      std::size_t found = 0, wanted = 0;
      for (token_id id = 0; id < 40'000; ++id) {
        const std::uint64_t early = race.before(id / 64 * 64, time);
        const double soonest = race.soonest(id / 64 * 64);
        REQUIRE((soonest > 0 && soonest <= race.arrival(id)));
        const bool arrives = race.arrival(id) < time, listed = (early >> (id % 64) & 1) != 0;
        if (arrives) REQUIRE(listed);
        found += listed;
        wanted += arrives;
        id += id % 7 == 3 ? 50 : 0;
      }
      // Of a block that may have an early one, the first to arrive is always listed.
      const double most = static_cast<double>(wanted) * (1 + 64 * time) + 2;
      if (time < 0.5) CHECK(static_cast<double>(found) <= most);
      if (time == 0) CHECK(found == 0);
    }
    // In any order, and at the ends of what ids can be.
    exponential_race race = race_of(6);
    for (const token_id first : {token_id{640'000}, token_id{0}, token_id{2'147'483'584}, token_id{64}}) {
      const std::uint64_t early = race.before(first, 0.05);
      for (token_id i = 0; i < 64; ++i) {
        if (race.arrival(first + i) < 0.05) CHECK((early >> i & 1) == 1);
      }
    }
  }
  decant::math::use_kernels(decant::math::best_isa());
}

TEST_CASE("noise is minus the logarithm of the arrival, and stays what it is", "[core][race]") {
  const exponential_race race = race_of(2026, 3);
  for (const token_id id : {0, 1, 63, 64, 12'345, 2'147'483'647}) {
    CHECK(race.noise(id) == -decant::math::log(race.arrival(id)));
    CHECK(race.noise(id) > -3.7);
    CHECK(race.noise(id) < 41);
  }
  CHECK(race.noise(12'345) == Approx(-0x1.9bd670a792b64p-1).epsilon(1e-14));
}

TEST_CASE("a race cannot be enumerated by a hook", "[core][race]") {
  struct : decant::decision_hook {
    std::size_t choose(const decant::draw_key&, std::span<const double>, double) override { return 0; }
  } hook;
  CHECK_THROWS_AS(draw_stream(1).with_hook(&hook).numbers(purpose::noise), assertion_error);
}

}  // namespace exponential_race_test
