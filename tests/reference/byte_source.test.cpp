// SPDX-License-Identifier: MIT
#include <decant/reference/byte_source.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "fixtures.hpp"

using namespace decant;
using namespace decant::detail;
using namespace reference_tests;

namespace {

const std::vector<std::byte> ten = [] {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 10; ++i) bytes.push_back(static_cast<std::byte>(i));
  return bytes;
}();

template <class Source>
void check_reading(Source& source) {
  std::array<std::byte, 4> four{};
  CHECK(source.remaining() == 10);
  CHECK(source.read(four));
  CHECK(four[3] == std::byte{3});
  CHECK(source.skip(1));
  CHECK(source.read(four));
  CHECK(four[0] == std::byte{5});
  CHECK(source.remaining() == 1);
  CHECK_FALSE(source.read(four));
  CHECK_FALSE(source.skip(2));
  CHECK_FALSE(source.skip(std::numeric_limits<std::uint64_t>::max()));
  CHECK(source.remaining() == 1);
  CHECK(source.skip(1));
  CHECK(source.read(std::span<std::byte>()));
  CHECK(source.remaining() == 0);
}

}  // namespace

TEST_CASE("byte sources: memory and file read alike", "[reference][byte_source]") {
  memory_source memory(ten);
  check_reading(memory);

  const temporary_file stored("decant_byte_source_test.bin", ten);
  auto file = open_file(stored.path());
  REQUIRE(file);
  check_reading(*file);
}

TEST_CASE("byte sources: numbers are little-endian", "[reference][byte_source]") {
  memory_source source(ten);
  std::array<std::int32_t, 2> numbers{};
  REQUIRE(read_numbers(source, std::span<std::int32_t>(numbers)));
  CHECK(numbers == std::array<std::int32_t, 2>{0x03020100, 0x07060504});
  CHECK_FALSE(read_numbers(source, std::span<std::int32_t>(numbers)));
}

TEST_CASE("byte sources: finite by bits", "[reference][byte_source]") {
  CHECK(has_finite_bits(0));
  CHECK(has_finite_bits(-std::numeric_limits<float>::max()));
  CHECK_FALSE(has_finite_bits(std::numeric_limits<float>::infinity()));
  CHECK_FALSE(has_finite_bits(-std::numeric_limits<float>::quiet_NaN()));
}
