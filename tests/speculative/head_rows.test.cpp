// SPDX-License-Identifier: MIT
#include <decant/speculative/head_rows.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include "toy_target.hpp"

namespace head_rows_tests {

using decant::detail::head_rows;

std::vector<float> copy(std::span<const float> row) { return {row.begin(), row.end()}; }

TEST_CASE("head_rows: each place has its head", "[speculative]") {
  toy::target model(4, 1);
  head_rows rows;
  CHECK(rows.row(1).empty());
  model.score(toy::tokens{0, 1, 2});
  rows.observe(model, std::vector<std::size_t>{0, 1, 2});
  for (std::size_t k = 1; k <= 3; ++k) {
    CHECK(copy(rows.row(k)) == copy(model.head(k).row_after(toy::tokens{0, 1, 2})));
  }
  CHECK(rows.row(0).empty());
  CHECK(rows.row(4).empty());
}

TEST_CASE("head_rows: the last row shown counts, and nothing shown changes nothing", "[speculative]") {
  toy::target model(4, 2);
  head_rows rows;
  const toy::tokens nodes{1, 2, 3};
  const std::vector<std::int32_t> parents{decant::no_parent, 0, 0};
  model.score(toy::tokens{0});
  model.score(nodes, parents);
  rows.observe(model, std::vector<std::size_t>{0, 2});
  const auto expected = copy(model.head(1).row_after(toy::tokens{0, 1, 3}));
  CHECK(copy(rows.row(1)) == expected);
  model.score(toy::tokens{2, 2});
  rows.observe(model, {});
  CHECK(copy(rows.row(1)) == expected);
  rows.reset();
  CHECK(rows.row(1).empty());
}

/// Rows as an engine pads them.
struct padded : toy::target {
  using toy::target::target;
  [[nodiscard]] std::size_t vocabulary_size() const { return 2; }
};

TEST_CASE("head_rows: what lies past the vocabulary is no token", "[speculative]") {
  padded model(4, 3);
  head_rows rows;
  model.score(toy::tokens{0, 1});
  rows.observe(model, std::vector<std::size_t>{0, 1});
  CHECK(rows.row(2).size() == 2);
}

}  // namespace head_rows_tests
