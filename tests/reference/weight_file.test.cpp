// SPDX-License-Identifier: MIT
#include <decant/reference/weight_file.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fixtures.hpp"

using namespace decant;
using namespace reference_tests;

namespace weight_file_tests {

constexpr std::array<const char*, 2> names{"rows", "columns"};

std::vector<std::byte> header(const std::string& letters, std::int32_t version, std::int32_t rows,
                              std::int32_t columns) {
  std::vector<std::byte> out;
  put(out, letters.data(), letters.size());
  put(out, version);
  put(out, rows);
  put(out, columns);
  return out;
}

result<std::array<Eigen::Index, 2>> sizes(std::span<const std::byte> bytes) {
  detail::memory_source source(bytes);
  return detail::read_sizes<2>(source, "dcxx", names);
}

TEST_CASE("weight_file: a header gives its sizes", "[reference][weight_file]") {
  const auto read = sizes(header("dcxx", 1, 3, 7));
  REQUIRE(read);
  CHECK((*read)[0] == 3);
  CHECK((*read)[1] == 7);
}

TEST_CASE("weight_file: what is wrong with a header is named", "[reference][weight_file]") {
  const auto good = header("dcxx", 1, 3, 7);
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto cut = sizes(std::span(good).first(size));
    REQUIRE_FALSE(cut);
    CHECK(cut.error().code == error_code::bad_file);
    CHECK(cut.error().text() == "header: " + std::to_string(size) + " bytes, must have 16");
  }
  CHECK(sizes(header("dcxy", 1, 3, 7)).error().text() == "header: must begin with \"dcxx\"");
  CHECK(sizes(header("dcxx", 2, 3, 7)).error().text() == "version: 2 must be 1");
  CHECK(sizes(header("dcxx", 1, 0, 7)).error().text() == "rows: 0 must be positive");
  CHECK(sizes(header("dcxx", 1, 3, -7)).error().text() == "columns: -7 must be positive");
}

TEST_CASE("weight_file: what follows must be what the sizes need", "[reference][weight_file]") {
  const std::vector<std::byte> bytes(12);
  const detail::memory_source source{std::span(bytes)};
  CHECK_FALSE(detail::size_fault(source, std::uint64_t{12}));
  CHECK(detail::size_fault(source, std::uint64_t{13})->text() ==
        "size: 12 bytes after the header, must be 13 by its sizes");
  CHECK(detail::size_fault(source, std::nullopt)->where == "header");
}

}  // namespace weight_file_tests
