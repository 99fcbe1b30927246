// SPDX-License-Identifier: MIT
#include <decant/core/dense_row.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "math/bits.hpp"
#include "support/catch.hpp"

// Peaks, masks, bounds and edits against a plain copy of the row, in any order.

namespace dense_row_test {

using namespace decant;
using decant::detail::dense_row;

std::vector<float> some_row(std::size_t size, test_bits::splitmix& next) {
  std::vector<float> row(size);
  for (float& z : row) z = next.below(9) == 0 ? gone : static_cast<float>(next.below(40)) / 4 - 5;
  return row;
}

std::vector<std::pair<token_id, float>> listed(const dense_row& row) {
  std::vector<std::pair<token_id, float>> out;
  row.each([&](token_id id, float z) { out.emplace_back(id, z); });
  return out;
}

void check_against(dense_row& row, const std::vector<float>& want) {
  std::vector<std::pair<token_id, float>> expected;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!is_gone(want[i])) expected.emplace_back(static_cast<token_id>(i), want[i]);
    REQUIRE(row[static_cast<token_id>(i)] == want[i]);
  }
  CHECK(listed(row) == expected);
  const auto summary = row.measure();
  CHECK(listed(row) == expected);
  const float top = *std::ranges::max_element(want);
  CHECK(summary.max == top);
  if (is_gone(top)) return;
  CHECK(row.first_of(top) == std::ranges::max_element(want) - want.begin());
  for (const float threshold : {dense_row::lowest, -2.0F, 0.0F, 3.25F, top}) {
    std::vector<std::pair<token_id, float>> above, got;
    for (const auto& one : expected) {
      if (one.second >= threshold) above.push_back(one);
    }
    row.each_at_least(threshold, [&](token_id id, float z) { got.emplace_back(id, z); });
    CHECK(got == above);
    CHECK(row.count_at_least(threshold) == above.size());
  }
}

TEST_CASE("edits, masks, bounds and rewrites leave what a plain copy would hold", "[core][dense_row]") {
  test_bits::splitmix next(21);
  dense_row row;
  for (int round = 0; round < 400; ++round) {
    const std::size_t size = 1 + next.below(round % 10 == 0 ? 5000 : 300);
    std::vector<float> logits = some_row(size, next), want = logits;
    const std::vector<float> before = logits;
    const bool in_place = next.below(2) == 0;
    if (in_place) {
      row.bind_mutable(logits.data(), size);
    } else {
      row.bind(std::as_const(logits).data(), size);
    }
    for (std::size_t step = next.below(6); step > 0; --step) {
      const auto id = static_cast<token_id>(next.below(size));
      switch (next.below(4)) {
        case 0: {
          const float z = next.below(4) == 0 ? gone : static_cast<float>(next.below(80)) / 8;
          if (is_gone(want[static_cast<std::size_t>(id)])) break;
          row.put(id, z);
          want[static_cast<std::size_t>(id)] = z;
          break;
        }
        case 1: {
          std::vector<std::uint64_t> mask((size + 63) / 64);
          const bool sparse = next.below(2) == 0;
          for (auto& word : mask)
            word = sparse && next.below(8) != 0 ? 0 : next.below(1ULL << 32) << 32 | next.below(1ULL << 32);
          row.mask(mask);
          for (std::size_t i = 0; i < size; ++i) {
            if ((mask[i / 64] >> (i % 64) & 1) == 0) want[i] = gone;
          }
          break;
        }
        case 2: {
          const float z = want[static_cast<std::size_t>(id)];
          if (is_gone(z)) break;
          static_cast<void>(row.measure());
          row.set_bound({id, z});
          for (std::size_t i = 0; i < size; ++i) {
            if (detail::before({id, z}, {static_cast<token_id>(i), want[i]})) want[i] = gone;
          }
          break;
        }
        default:
          row.rewrite([](token_id, float z) { return is_gone(z) ? z : z + 1; });
          for (float& z : want) z = is_gone(z) ? z : z + 1;
      }
      if (next.below(2) == 0) check_against(row, want);
    }
    check_against(row, want);
    row.release();
    CHECK(logits == before);
  }
}

TEST_CASE("16-bit rows are read as they are and never written", "[core][dense_row]") {
  test_bits::splitmix next(22);
  std::vector<bfloat16> brain(700);
  std::vector<float> want;
  for (auto& x : brain) {
    x.bits = static_cast<std::uint16_t>(0x3C00 + next.below(0x600));
    want.push_back(math::to_float(x));
  }
  const auto before = brain.front().bits;
  dense_row row;
  row.bind(std::as_const(brain).data(), brain.size());
  check_against(row, want);
  row.put(0, 9);
  want[0] = 9;
  check_against(row, want);
  CHECK(brain.front().bits == before);
}

TEST_CASE("denormals are zeros to every question", "[core][dense_row]") {
  const float tiny = test_bits::float_of(5), minus_tiny = test_bits::float_of(0x80000005U);
  std::vector<float> logits(130, -1);
  logits[3] = minus_tiny;
  logits[70] = tiny;
  logits[129] = 0;
  dense_row row;
  row.bind(std::as_const(logits).data(), logits.size());
  CHECK(row.measure().max == 0);
  CHECK(row.first_of(0) == 3);
  CHECK(row.count_at_least(0) == 3);
  row.set_bound({70, 0});
  CHECK(row.count_at_least(0) == 2);
  CHECK(row[129] == gone);
}

}  // namespace dense_row_test
