// SPDX-License-Identifier: MIT
#include <decant/reference/eigen_rows.hpp>

#include "support/catch.hpp"

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

using namespace decant;

namespace {

using row_major = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class V>
concept accepted = requires(V&& values) { as_row(std::forward<V>(values)); };

// What has its numbers side by side.
static_assert(accepted<Eigen::VectorXf&>);
static_assert(accepted<const Eigen::RowVectorXf&>);
static_assert(accepted<Eigen::ArrayXf&>);
static_assert(accepted<Eigen::Vector4f&>);
static_assert(accepted<Eigen::Map<const Eigen::VectorXf>>);
static_assert(accepted<Eigen::Ref<Eigen::VectorXf>>);
static_assert(accepted<decltype(std::declval<row_major&>().row(0))>);
static_assert(accepted<decltype(std::declval<const row_major&>().row(0))>);
static_assert(accepted<decltype(std::declval<Eigen::MatrixXf&>().col(0))>);
static_assert(accepted<decltype(std::declval<Eigen::VectorXf&>().head(3))>);

// Strided, of other numbers, of two dimensions, not in memory, or no Eigen at all.
static_assert(!accepted<decltype(std::declval<row_major&>().col(0))>);
static_assert(!accepted<decltype(std::declval<Eigen::MatrixXf&>().row(0))>);
static_assert(!accepted<Eigen::Map<Eigen::VectorXf, 0, Eigen::InnerStride<>>>);
static_assert(!accepted<Eigen::VectorXd&>);
static_assert(!accepted<row_major&>);
static_assert(!accepted<decltype(std::declval<Eigen::VectorXf&>() * 2.0F)>);
static_assert(!accepted<std::vector<float>&>);
static_assert(!accepted<float&>);

// A temporary vector would leave the span dangling.
static_assert(!accepted<Eigen::VectorXf>);
static_assert(!accepted<Eigen::ArrayXf>);

}  // namespace

TEST_CASE("as_row: the same numbers, not a copy", "[reference][eigen_rows]") {
  Eigen::VectorXf logits(3);
  logits << 1, 2, 3;
  const auto row = as_row(logits);
  static_assert(std::is_same_v<decltype(row), const std::span<float>>);
  CHECK(row.data() == logits.data());
  CHECK(row.size() == 3);
  row[1] = 5;
  CHECK(logits(1) == 5);

  const auto constant = as_row(std::as_const(logits));
  static_assert(std::is_same_v<decltype(constant), const std::span<const float>>);
  CHECK(constant.data() == logits.data());
}

TEST_CASE("as_row: a row of a row-major matrix, a column of a column-major one", "[reference][eigen_rows]") {
  row_major rows(2, 3);
  rows << 1, 2, 3, 4, 5, 6;
  const auto second = as_row(rows.row(1));
  CHECK(std::vector<float>(second.begin(), second.end()) == std::vector<float>{4, 5, 6});
  second[0] = 7;
  CHECK(rows(1, 0) == 7);

  const row_major& constant = rows;
  static_assert(std::is_same_v<decltype(as_row(constant.row(0))), std::span<const float>>);
  CHECK(as_row(constant.row(0)).data() == rows.data());

  const Eigen::MatrixXf columns = rows;
  const auto last = as_row(columns.col(2));
  CHECK(std::vector<float>(last.begin(), last.end()) == std::vector<float>{3, 6});
}

TEST_CASE("as_row: maps, segments and nothing", "[reference][eigen_rows]") {
  std::vector<float> numbers{1, 2, 3, 4};
  CHECK(as_row(Eigen::Map<Eigen::ArrayXf>(numbers.data(), 4)).data() == numbers.data());
  Eigen::Map<const Eigen::RowVectorXf> map(numbers.data(), 4);
  const auto tail = as_row(map.tail(2));
  CHECK(tail.data() == numbers.data() + 2);
  CHECK(tail.size() == 2);
  const Eigen::VectorXf none;
  CHECK(as_row(none).empty());
}
