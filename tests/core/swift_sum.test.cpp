// SPDX-License-Identifier: MIT
#include <decant/core/swift_sum.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/token.hpp>
#include <decant/math/kernels.hpp>

#include "math/bits.hpp"
#include "support/catch.hpp"

namespace swift_sum_test {

using namespace decant;
using decant::detail::swift_sum;

swift_sum sum_of(const std::vector<float>& row, double scale) {
  swift_sum sum(scale);
  std::vector<float> peaks(swift_sum::stretch / 64);
  for (std::size_t i = 0; i < row.size(); i += swift_sum::stretch) {
    sum.add(row.data() + i, std::min(swift_sum::stretch, row.size() - i), peaks.data());
  }
  return sum;
}

float max_of(const std::vector<float>& row) { return *std::ranges::max_element(row); }

double exact_mass(const std::vector<float>& row, double scale) {
  const auto top = static_cast<double>(max_of(row));
  double sum = 0;
  for (const float z : row) sum += std::exp(scale * (static_cast<double>(z) - top));
  return sum;
}

std::vector<math::isa> forms() {
  std::vector<math::isa> all{math::isa::portable};
  if (math::best_isa() >= math::isa::avx2) all.push_back(math::isa::avx2);
  if (math::best_isa() >= math::isa::avx512) all.push_back(math::isa::avx512);
  return all;
}

/// Rows whose largest value comes early, late, or again and again, some of them far from 0.
std::vector<float> some_row(test_bits::splitmix& next, int shape) {
  std::vector<float> row(64 * (1 + next.below(900)));
  const double steep = next.between(0, 400), start = next.between(-1000, 1000);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(row.size());
    const double trend = shape == 0 ? 0 : shape == 1 ? steep * share : shape == 2 ? -steep * share : 0;
    row[i] = static_cast<float>(start + trend + next.between(-4, 4));
    if (shape == 3 && next.below(3) == 0) row[i] = gone;
    if (shape == 4 && i < row.size() / 2) row[i] = -3e38F;
    if (shape == 5 && i < row.size() / 2) row[i] = gone;
  }
  if (shape == 6) row[next.below(row.size())] += 200;
  return row;
}

TEST_CASE("a swift sum is within its error, wherever the largest value comes", "[core][swift_sum]") {
  test_bits::splitmix next(5);
  for (int round = 0; round < 140; ++round) {
    const auto row = some_row(next, round % 7);
    const double scale = std::exp(next.between(-2, 1));
    const swift_sum sum = sum_of(row, scale);
    REQUIRE(sum.tells(max_of(row)));
    CHECK(std::abs(sum.mass(max_of(row)) / exact_mass(row, scale) - 1) < swift_sum::error);
  }
}

TEST_CASE("the bits of a swift sum are those of every instruction set", "[core][swift_sum]") {
  test_bits::splitmix next(6);
  const math::isa best = math::kernels().which;
  for (int round = 0; round < 40; ++round) {
    const auto row = some_row(next, round % 7);
    std::vector<std::uint64_t> got;
    for (const math::isa which : forms()) {
      math::use_kernels(which);
      got.push_back(std::bit_cast<std::uint64_t>(sum_of(row, 1.25).mass(max_of(row))));
    }
    math::use_kernels(best);
    CHECK(std::ranges::count(got, got.front()) == static_cast<std::ptrdiff_t>(got.size()));
  }
}

TEST_CASE("what a swift sum cannot tell, it says, and rows are summed exactly then", "[core][swift_sum]") {
  CHECK_FALSE(swift_sum::can_tell(1e9));
  CHECK_FALSE(swift_sum::can_tell(1e-9));
  CHECK_FALSE(sum_of(std::vector<float>(128, gone), 1).tells(gone));
  CHECK_FALSE(sum_of(std::vector<float>(128, 3e38F), 1).tells(3e38F));
  CHECK_FALSE(sum_of(std::vector<float>(128, -3e7F), 1).tells(-3e7F));
  for (const float level : {3e38F, -3e7F, 1e6F, -3e38F}) {
    const std::vector<float> logits(5000, level);
    candidates row;
    row.bind(std::span<const float>(logits));
    CHECK(row.quick_log_mass() == Approx(std::log(5000.0)).margin(4e-6).epsilon(0));
  }
  std::vector<float> bad(20'000, 1);
  bad[19'999] = test_bits::float_of(0x7FC00000U);
  candidates row;
  row.bind(std::span<const float>(bad));
  CHECK(row.quick_log_mass() == 0);
  CHECK(row.status() == row_status::not_finite);
}

TEST_CASE("a row read along with a swift sum is read as ever", "[core][swift_sum]") {
  test_bits::splitmix next(7);
  for (const std::size_t size : {4097U, 8192U, 8256U, 16'000U, 20'001U, 40'000U}) {
    std::vector<float> logits(size);
    for (float& z : logits) z = next.below(50) == 0 ? gone : static_cast<float>(next.between(-9, 9));
    candidates swift, plain;
    swift.bind(std::span<const float>(logits));
    plain.bind(std::span<const float>(logits));
    CHECK(plain.status() == row_status::ok);
    CHECK(std::bit_cast<std::uint64_t>(swift.quick_log_mass()) == std::bit_cast<std::uint64_t>(plain.quick_log_mass()));
    CHECK(swift.argmax() == plain.argmax());
    CHECK(swift.size() == plain.size());
    CHECK(std::ranges::equal(swift.descending(300), plain.descending(300)));
  }
}

}  // namespace swift_sum_test
