// SPDX-License-Identifier: MIT
#include <decant/reference/token_heads.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "fixtures.hpp"

using namespace decant;
using namespace reference_tests;

namespace token_heads_tests {

constexpr std::size_t header_size = 24;

std::vector<std::vector<row_matrix>> random_blocks(std::uint32_t seed, std::size_t heads, std::size_t depth,
                                                   Eigen::Index dim) {
  number_source numbers(seed);
  std::vector<std::vector<row_matrix>> blocks(heads, std::vector<row_matrix>(depth));
  for (auto& head : blocks) {
    for (row_matrix& block : head) numbers.fill(block, dim, dim, 0.5F);
  }
  return blocks;
}

std::vector<std::byte> file_of(const token_heads& heads) {
  std::vector<std::byte> out;
  put(out, "dchd", 4);
  const auto number = [&](std::size_t value) { put(out, static_cast<std::int32_t>(value)); };
  number(1);
  number(static_cast<std::size_t>(heads.dim()));
  number(heads.count());
  number(heads.blocks(1).size());
  number(heads.shares()[0].size());
  for (const auto& head : heads.shares()) {
    for (const double share : head) put(out, static_cast<float>(share));
  }
  for (std::size_t k = 1; k <= heads.count(); ++k) {
    for (const row_matrix& block : heads.blocks(k)) {
      put(out, block.data(), static_cast<std::size_t>(block.size()) * sizeof(float));
    }
  }
  return out;
}

token_heads sample() { return token_heads(random_blocks(7, 3, 2, 5), {{0.5, 0.25}, {0.375, 0.125}, {0.25, 0}}); }

TEST_CASE("token_heads: what was written is read back", "[reference][token_heads]") {
  const token_heads heads = sample();
  const auto file = file_of(heads);
  const auto read = token_heads::read(std::span<const std::byte>(file));
  REQUIRE(read);
  CHECK(read->count() == 3);
  CHECK(read->dim() == 5);
  CHECK(read->shares() == heads.shares());
  for (std::size_t k = 1; k <= 3; ++k) {
    REQUIRE(read->blocks(k).size() == 2);
    for (std::size_t j = 0; j < 2; ++j) CHECK(read->blocks(k)[j] == heads.blocks(k)[j]);
  }
  const temporary_file stored("decant_token_heads_test.bin", file);
  const auto from_file = token_heads::load(stored.path());
  REQUIRE(from_file);
  CHECK(from_file->blocks(3)[1] == heads.blocks(3)[1]);
}

TEST_CASE("token_heads: files that are cut, longer, or hold what they must not are refused",
          "[reference][token_heads]") {
  const auto file = file_of(sample());
  for (std::size_t size = 0; size < file.size(); size += size < header_size + 8 ? 1 : 37) {
    const auto cut = token_heads::read(std::span(file).first(size));
    REQUIRE_FALSE(cut);
    CHECK(cut.error().code == error_code::bad_file);
    CHECK(cut.error().where == (size < header_size ? "header" : "size"));
  }
  auto longer = file;
  longer.push_back(std::byte{0});
  CHECK(token_heads::read(std::span<const std::byte>(longer)).error().where == "size");
  CHECK(token_heads::load("no/such/file.bin").error().code == error_code::not_found);

  const char* const fields[] = {"header", "version", "dim", "heads", "blocks", "picks"};
  for (std::size_t field = 0; field < 6; ++field) {
    for (const std::int32_t value : {0, -1, 1 << 20, std::numeric_limits<std::int32_t>::max()}) {
      auto broken = file;
      std::memcpy(broken.data() + 4 * field, &value, sizeof value);
      const auto read = token_heads::read(std::span<const std::byte>(broken));
      INFO(fields[field] << " = " << value);
      REQUIRE_FALSE(read);
      if (value <= 0) CHECK(read.error().where == fields[field]);
    }
  }

  auto nan = file;
  const float bad = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(nan.data() + nan.size() - 4, &bad, sizeof bad);
  CHECK(token_heads::read(std::span<const std::byte>(nan)).error().text() == "block: holds a NaN or an infinity");
  CHECK(token_heads::read(std::span<const std::byte>(nan), {.require_finite = false}));
}

TEST_CASE("token_heads: a head is residual blocks of SiLU", "[reference][token_heads]") {
  const token_heads heads = sample();
  number_source numbers(3);
  std::vector<float> hidden(5), out(5);
  for (float& x : hidden) x = numbers.next(2);
  for (std::size_t k = 1; k <= 3; ++k) {
    std::vector<double> state(hidden.begin(), hidden.end());
    for (const row_matrix& block : heads.blocks(k)) {
      std::vector<double> next = state;
      for (std::size_t i = 0; i < 5; ++i) {
        double z = 0;
        for (std::size_t j = 0; j < 5; ++j) {
          z += static_cast<double>(block(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j))) * state[j];
        }
        next[i] += z / (1 + std::exp(-z));
      }
      state = next;
    }
    heads.apply(k, hidden, out);
    for (std::size_t i = 0; i < 5; ++i) CHECK(static_cast<double>(out[i]) == Approx(state[i]).epsilon(1e-5));
  }
}

TEST_CASE("token_heads: blocks of zeros are the identity", "[reference][token_heads]") {
  const token_heads heads({{row_matrix::Zero(4, 4)}, {row_matrix::Zero(4, 4)}});
  const std::vector<float> hidden{1, -2, 0.5F, 3};
  std::vector<float> out(4);
  heads.apply(2, hidden, out);
  CHECK(out == hidden);
}

TEST_CASE("token_heads: misuse", "[reference][token_heads]") {
  const token_heads heads = sample();
  std::vector<float> hidden(5), out(5), narrow(4);
  CHECK_THROWS_AS(heads.apply(0, hidden, out), assertion_error);
  CHECK_THROWS_AS(heads.apply(4, hidden, out), assertion_error);
  CHECK_THROWS_AS(heads.apply(1, narrow, narrow), assertion_error);
  CHECK_THROWS_AS(token_heads({}), assertion_error);
  CHECK_THROWS_AS(token_heads(random_blocks(1, 2, 1, 3), {{0.5}}), assertion_error);
}

}  // namespace token_heads_tests
