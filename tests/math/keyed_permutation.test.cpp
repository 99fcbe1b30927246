// SPDX-License-Identifier: MIT
#include <decant/math/keyed_permutation.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <decant/math/splitmix64.hpp>
#include <decant/testing/chi_square.hpp>

namespace keyed_permutation_tests {

using decant::math::keyed_permutation;
using decant::math::splitmix64;
using decant::testing::chi_square;

std::vector<std::uint64_t> listed(std::uint64_t size, std::uint64_t seed) {
  const keyed_permutation permutation(size, seed);
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < size; ++i) out.push_back(permutation(i));
  return out;
}

TEST_CASE("keyed_permutation is one to one, on every size", "[math]") {
  const auto one_to_one = [](std::uint64_t size, std::uint64_t seed) {
    auto places = listed(size, seed);
    std::ranges::sort(places);
    for (std::uint64_t i = 0; i < size; ++i) {
      if (places[i] != i) return false;
    }
    return true;
  };
  for (std::uint64_t size = 1; size <= 600; ++size) {
    CAPTURE(size);
    for (std::uint64_t seed = 0; seed < 3; ++seed) CHECK(one_to_one(size, splitmix64(1, seed)));
  }
  for (const std::uint64_t size : {1023U, 1024U, 1025U, 32'000U, 65'536U, 65'537U, 151'936U}) {
    CAPTURE(size);
    CHECK(one_to_one(size, 77));
  }
}

TEST_CASE("keyed_permutation at its largest size stays inside", "[math]") {
  const keyed_permutation permutation(std::uint64_t{1} << 32, 5);
  CHECK(permutation(0xFFFFFFFFU) <= 0xFFFFFFFFU);
  CHECK(permutation(0) != permutation(1));
}

TEST_CASE("over seeds, every permutation of few elements is equally likely", "[math]") {
  for (const std::uint64_t size : {2U, 3U, 4U, 5U}) {
    std::map<std::vector<std::uint64_t>, std::size_t> seen;
    std::vector<std::uint64_t> order;
    for (std::uint64_t i = 0; i < size; ++i) order.push_back(i);
    do seen[order] = 0;
    while (std::ranges::next_permutation(order).found);
    for (std::uint64_t seed = 0; seed < 24'000; ++seed) ++seen[listed(size, splitmix64(2, seed))];
    std::vector<std::size_t> counts;
    for (const auto& [permutation, count] : seen) counts.push_back(count);
    CAPTURE(size);
    CHECK(chi_square(counts, std::vector<double>(counts.size(), 1)).p_value > 1e-4);
  }
}

TEST_CASE("over seeds, two elements of many go to any two places alike", "[math]") {
  // Pairs that differ in one half of the network alone, and pairs that differ in both.
  constexpr std::uint64_t size = 1000;
  for (const auto& [a, b] : {std::pair{0U, 1U}, std::pair{3U, 3U + 32U}, std::pair{17U, 998U}}) {
    std::vector<std::size_t> counts(100);
    for (std::uint64_t seed = 0; seed < 60'000; ++seed) {
      const keyed_permutation permutation(size, splitmix64(3, seed));
      ++counts[permutation(a) / 100 * 10 + permutation(b) / 100];
    }
    std::vector<double> expected;
    for (std::size_t i = 0; i < 100; ++i) expected.push_back(i / 10 == i % 10 ? 100.0 * 99 : 100.0 * 100);
    CAPTURE(a, b);
    CHECK(chi_square(counts, expected).p_value > 1e-4);
  }
}

TEST_CASE("over seeds, three elements in a row go to any three places alike", "[math]") {
  constexpr std::uint64_t size = 640;
  for (const std::uint64_t stride : {1U, 16U, 32U, 100U}) {
    std::vector<std::size_t> counts(64);
    for (std::uint64_t seed = 0; seed < 60'000; ++seed) {
      const keyed_permutation permutation(size, splitmix64(5, seed));
      std::size_t cell = 0;
      for (std::uint64_t i = 0; i < 3; ++i) cell = cell * 4 + permutation(40 + i * stride) / 160;
      ++counts[cell];
    }
    std::vector<double> expected;
    for (std::size_t cell = 0; cell < 64; ++cell) {
      double left[4] = {160, 160, 160, 160}, chance = 1;
      for (const std::size_t quarter : {cell / 16, cell / 4 % 4, cell % 4}) chance *= left[quarter]--;
      expected.push_back(chance);
    }
    CAPTURE(stride);
    CHECK(chi_square(counts, expected).p_value > 1e-4);
  }
}

TEST_CASE("over seeds, how many of a hundred elements go to the first half follows the hypergeometric law", "[math]") {
  constexpr std::size_t size = 300, sample = 100;
  std::vector<std::size_t> counts(sample + 1);
  for (std::uint64_t seed = 0; seed < 8000; ++seed) {
    const keyed_permutation permutation(size, splitmix64(4, seed));
    std::size_t inside = 0;
    for (std::uint64_t i = 0; i < sample; ++i) inside += permutation(i) < size / 2;
    ++counts[inside];
  }
  const auto choose = [](double n, double k) {
    return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
  };
  std::vector<double> expected;
  for (std::size_t k = 0; k <= sample; ++k) {
    expected.push_back(std::exp(choose(sample, static_cast<double>(k)) +
                                choose(size - sample, static_cast<double>(size / 2 - k)) - choose(size, size / 2)));
  }
  CHECK(chi_square(counts, expected).p_value > 1e-4);
}

TEST_CASE("the elements that go below a bound are those that say so when asked", "[math]") {
  keyed_permutation::workspace tables;
  for (const std::size_t size : {1U, 2U, 3U, 15U, 16U, 17U, 255U, 256U, 257U, 300U, 1000U, 4096U, 5000U, 32'001U}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const keyed_permutation permutation(size, splitmix64(7, seed));
      for (const std::size_t bound : {std::size_t{0}, size / 4, size / 2, size - 1, size}) {
        std::vector<std::size_t> times(size);
        permutation.each_below(bound, tables, [&](std::uint64_t element) { ++times.at(element); });
        bool alike = true;
        for (std::size_t i = 0; i < size; ++i) alike = alike && times[i] == (permutation(i) < bound ? 1U : 0U);
        CAPTURE(size, seed, bound);
        CHECK(alike);
      }
    }
  }
}

}  // namespace keyed_permutation_tests
