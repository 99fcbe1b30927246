// SPDX-License-Identifier: MIT
#include <decant/core/stored_row.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "math/bits.hpp"
#include "support/catch.hpp"

namespace stored_row_test {

using decant::entry;
using decant::token_id;

constexpr float lowest = -std::numeric_limits<float>::max();

/// The layer as those above it see it.
struct layer : decant::detail::stored_row {
  using stored_row::stored_row;

  explicit layer(const std::vector<float>& row, std::size_t list_limit = compact_limit) : stored_row(list_limit) {
    bind_span(std::span<const float>(row), whole_row);
    REQUIRE(read());
  }
  [[nodiscard]] std::vector<entry> tokens() const {
    std::vector<entry> all;
    each([&](token_id id, float z) { all.push_back({id, z}); });
    return all;
  }

  using stored_row::collect_from;
  using stored_row::gather_at_least;
  using stored_row::gathered_;
  using stored_row::keep_from;
  using stored_row::keep_largest;
  using stored_row::list_from;
  using stored_row::peak_threshold;
  using stored_row::sampled_threshold;
  using stored_row::stand_;
};

std::vector<float> some_row(test_bits::splitmix& next, std::size_t size, int shape) {
  std::vector<float> row(size);
  for (float& z : row) z = static_cast<float>(shape == 1 ? static_cast<int>(next.below(3)) : next.between(-9, 9));
  if (shape == 2) std::ranges::sort(row);
  if (shape == 3) std::ranges::sort(row, std::ranges::greater());
  if (shape == 4) {
    for (float& z : row) z = next.below(200) == 0 ? z : decant::gone;
  }
  return row;
}

std::vector<entry> sorted(std::vector<entry> all) {
  std::ranges::sort(all, decant::detail::before);
  return all;
}

TEST_CASE("the largest tokens of a row are among those gathered, whatever their order", "[core][stored_row]") {
  test_bits::splitmix next(31);
  for (int round = 0; round < 120; ++round) {
    const auto row = some_row(next, 5000 + next.below(9000), round % 5);
    layer stored(row);
    const auto wanted = sorted(stored.tokens());
    for (std::size_t count : {std::size_t{1}, std::size_t{40}, std::size_t{300}, std::size_t{2000}}) {
      count = std::min(count, wanted.size());
      const float from = stored.gather_at_least(count);
      std::vector<entry> got;
      for (std::size_t i = 0; i < stored.gathered_.size(); ++i) got.push_back(stored.gathered_[i]);
      got = sorted(got);
      REQUIRE(got.size() >= count);
      got.resize(count);
      CHECK(std::ranges::equal(got, std::span(wanted).first(count)));
      CHECK(got.back().logit >= from);
      const float peaks = stored.peak_threshold(count);
      if (!decant::is_gone(peaks)) CHECK(peaks <= wanted[count - 1].logit);
    }
  }
}

TEST_CASE("few of the largest are told from the largest of many blocks", "[core][stored_row]") {
  test_bits::splitmix next(33);
  for (int round = 0; round < 60; ++round) {
    const auto row = some_row(next, 60'000 + next.below(90'000), round % 5);
    layer stored(row);
    const auto wanted = sorted(stored.tokens());
    for (const std::size_t count : {1U, 2U, 8U, 17U, 24U}) {
      const float from = stored.gather_at_least(count);
      std::vector<entry> got;
      for (std::size_t i = 0; i < stored.gathered_.size(); ++i) got.push_back(stored.gathered_[i]);
      got = sorted(got);
      REQUIRE(got.size() >= count);
      CHECK(got[count - 1] == wanted[count - 1]);
      CHECK(from <= wanted[count - 1].logit);
      // Ties and order apart, not many more than were wanted.
      if (round % 5 == 0) CHECK(got.size() < 8 * count + 40);
    }
  }
}

TEST_CASE("a collection of more than it may hold is given up, and ties are cut to what is needed",
          "[core][stored_row]") {
  test_bits::splitmix next(32);
  const auto row = some_row(next, 9000, 0);
  layer stored(row);
  CHECK_FALSE(stored.collect_from(lowest, 10, 100, stored.gathered_));
  const std::vector<float> equal(20'000, 1.5F);
  layer flat(equal);
  REQUIRE(flat.collect_from(1.5F, 40, 20'000, flat.gathered_));
  CHECK(flat.gathered_.size() < 3000);
  for (token_id id = 0; id < 40; ++id) CHECK(flat.gathered_.find(id) == static_cast<std::size_t>(id));
}

TEST_CASE("narrowings by value and by count agree with sorting, and tell that the row stands differently",
          "[core][stored_row]") {
  test_bits::splitmix next(33);
  for (int round = 0; round < 200; ++round) {
    const auto row = some_row(next, 100 + next.below(9000), round % 5);
    layer by_count(row, round % 3 == 0 ? 50 : 4096), by_value(row, round % 3 == 0 ? 50 : 4096);
    auto wanted = sorted(by_count.tokens());
    if (wanted.empty()) continue;
    const std::size_t count = 1 + next.below(wanted.size());
    const float border = wanted[next.below(wanted.size())].logit;
    const auto stand = by_count.stand_;
    by_count.keep_largest(count);
    if (count < wanted.size()) CHECK(by_count.stand_ != stand);
    CHECK(sorted(by_count.tokens()) == std::vector<entry>(wanted.begin(), wanted.begin() + static_cast<int>(count)));
    if (round % 2 == 0) static_cast<void>(by_value.list_from(border - 1, 0));
    by_value.keep_from(border, 1);
    std::erase_if(wanted, [&](const entry& e) { return e.logit < border; });
    CHECK(sorted(by_value.tokens()) == wanted);
  }
}

TEST_CASE("a sample tells a value that about so many tokens reach", "[core][stored_row]") {
  test_bits::splitmix next(34);
  for (const int shape : {0, 2, 3}) {
    const auto row = some_row(next, 100'000, shape);
    layer stored(row);
    for (const std::size_t count : {500U, 4000U, 20'000U}) {
      const float from = stored.sampled_threshold(static_cast<double>(count));
      const auto reached = static_cast<std::size_t>(std::ranges::count_if(row, [&](float z) { return z >= from; }));
      CHECK(reached >= count);
      CHECK(reached < 3 * count + 2000);
    }
  }
}

}  // namespace stored_row_test
