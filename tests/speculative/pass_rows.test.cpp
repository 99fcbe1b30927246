// SPDX-License-Identifier: MIT
#include <decant/speculative/pass_rows.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "support/catch.hpp"

namespace pass_rows_tests {

struct four_rows {
  std::vector<std::vector<float>> rows;
  [[nodiscard]] std::span<const float> row(std::size_t i) const { return rows[i]; }
  [[nodiscard]] std::size_t vocabulary_size() const { return 3; }
};

TEST_CASE("node i has row i + 1, without padding", "[speculative]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  four_rows model{{{9, 0, 0, 0}, {0, 2, 1, 99}, {1, 1, 0, 99}, {nan, 1, 0, 99}}};
  const std::vector<std::size_t> rows{0, 2};
  const decant::detail::pass_rows<four_rows> pass(model, rows);
  decant::detail::row_workspace workspace;
  CHECK(pass.accepted() == 1);
  CHECK(pass.argmax(0, workspace) == 1);
  CHECK(pass.argmax(1, workspace) == 0);  // the lower of two
  CHECK(pass.argmax(2, workspace) == decant::no_token);
}

}  // namespace pass_rows_tests
