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
  CHECK(rows.row(3, 1).empty());
  model.score(toy::tokens{0, 1, 2});
  rows.observe(model, std::vector<std::size_t>{0, 1, 2});
  // Three tokens are held and a fourth waits: head 1 is about the one after that.
  for (std::size_t k = 1; k <= 3; ++k) {
    CHECK(copy(rows.row(4, k)) == copy(model.head(k).row_after(toy::tokens{0, 1, 2})));
  }
  CHECK(rows.row(4, 4).empty());
  // Two wait: the first head's token is among them.
  CHECK(copy(rows.row(5, 1)) == copy(model.head(2).row_after(toy::tokens{0, 1, 2})));
  CHECK(rows.row(7, 1).empty());
  // None waits: the model's own row would be asked for.
  CHECK(rows.row(3, 1).empty());
  CHECK(rows.row(2, 1).empty());
}

TEST_CASE("head_rows: the last row shown counts, and nothing shown changes nothing", "[speculative]") {
  toy::target model(4, 2);
  head_rows rows;
  const toy::tokens nodes{1, 2, 3};
  const std::vector<std::int32_t> parents{decant::no_parent, 0, 0};
  model.score(toy::tokens{0});
  model.score(nodes, parents);
  const std::vector<std::size_t> path{0, 2};
  model.keep(path);
  rows.observe(model, path);
  const auto expected = copy(model.head(1).row_after(toy::tokens{0, 1, 3}));
  CHECK(copy(rows.row(4, 1)) == expected);
  model.score(toy::tokens{2, 2});
  rows.observe(model, {});
  CHECK(copy(rows.row(4, 1)) == expected);
  rows.reset();
  CHECK(rows.row(4, 1).empty());
}

}  // namespace head_rows_tests
