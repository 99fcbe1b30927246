// SPDX-License-Identifier: MIT
#include <decant/math/row_products.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "math/bits.hpp"
#include "support/catch.hpp"

namespace row_products_test {

using namespace decant::math;
using test_bits::forms;

std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  test_bits::splitmix next(seed);
  std::vector<float> values(count);
  for (float& z : values) z = static_cast<float>(next.between(-2, 2));
  return values;
}

/// Rows that do not touch: between them stand numbers that nobody may read or write.
struct problem {
  problem(std::size_t rows, std::size_t outputs, std::size_t columns, std::uint64_t seed)
      : x(numbers(rows * (columns + 3), seed)),
        w(numbers(outputs * columns, seed + 1)),
        out(numbers(rows * (outputs + 5), seed + 2)),
        in{x.data(), rows, columns + 3},
        weights{w.data(), outputs, columns} {}

  std::vector<float> solved(isa which) {
    std::vector<float> result = out;
    add_row_products(in, weights, {result.data(), in.count, weights.rows + 5}, which);
    return result;
  }

  std::vector<float> x, w, out;
  strided_rows<const float> in;
  dense_matrix weights;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return false;
  }
  return true;
}

TEST_CASE("products of rows are the products, whatever the sizes", "[math][row_products]") {
  for (const isa which : forms()) {
    INFO(to_string(which));
    for (const std::size_t columns : {1U, 3U, 4U, 18U, 40U}) {
      for (const std::size_t outputs : {1U, 4U, 7U, 29U}) {
        for (std::size_t rows = 1; rows <= 6; ++rows) {
          problem p(rows, outputs, columns, rows + 10 * outputs);
          const std::vector<float> got = p.solved(which);
          for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t c = 0; c < outputs + 5; ++c) {
              double want = static_cast<double>(p.out[i * (outputs + 5) + c]);
              for (std::size_t j = 0; j < columns && c < outputs; ++j) {
                want += static_cast<double>(p.in.row(i)[j]) * static_cast<double>(p.weights.row(c)[j]);
              }
              CHECK(std::abs(static_cast<double>(got[i * (outputs + 5) + c]) - want) < 1e-4);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("every form gives the same bits", "[math][row_products]") {
  for (const std::size_t columns : {2U, 13U, 64U, 264U}) {
    for (std::size_t rows = 1; rows <= 9; ++rows) {
      problem p(rows, 131, columns, rows);
      const std::vector<float> plain = p.solved(isa::portable);
      for (const isa which : forms()) CHECK(same_bits(p.solved(which), plain));
    }
  }
}

TEST_CASE("a row has the same bits in any company", "[math][row_products]") {
  constexpr std::size_t outputs = 300, columns = 37;
  for (const isa which : forms()) {
    problem all(11, outputs, columns, 5);
    const std::vector<float> together = all.solved(which);
    for (std::size_t first = 0; first < 11; ++first) {
      for (const std::size_t count : {1U, 2U, 3U}) {
        if (first + count > 11) continue;
        std::vector<float> alone(all.out.begin() + static_cast<std::ptrdiff_t>(first * (outputs + 5)),
                                 all.out.begin() + static_cast<std::ptrdiff_t>((first + count) * (outputs + 5)));
        add_row_products({all.in.row(first), count, all.in.stride}, all.weights, {alone.data(), count, outputs + 5},
                         which);
        CHECK(same_bits(alone, {together.begin() + static_cast<std::ptrdiff_t>(first * (outputs + 5)),
                                together.begin() + static_cast<std::ptrdiff_t>((first + count) * (outputs + 5))}));
      }
    }
  }
}

TEST_CASE("nothing times anything is nothing", "[math][row_products]") {
  for (const isa which : forms()) {
    problem no_columns(3, 6, 0, 1), no_outputs(2, 0, 4, 2), no_rows(0, 4, 4, 3);
    CHECK(same_bits(no_columns.solved(which), no_columns.out));
    CHECK(same_bits(no_outputs.solved(which), no_outputs.out));
    CHECK(same_bits(no_rows.solved(which), no_rows.out));
  }
}

}  // namespace row_products_test
