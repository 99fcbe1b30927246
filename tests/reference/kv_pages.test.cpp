// SPDX-License-Identifier: MIT
#include <decant/reference/kv_pages.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <vector>

#include "fixtures.hpp"

using namespace decant;
using namespace reference_tests;

namespace kv_pages_tests {

// Appends rows: key and value of a position in a layer are 1000 * text + 10 * position + layer, and its negative.
void append(kv_pages& pages, paged_rows& rows, std::size_t count, float text) {
  pages.make_room(rows, count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t layer = 0; layer < 4; ++layer) {
      const float number = 1000 * text + 10 * static_cast<float>(rows.size + i) + static_cast<float>(layer);
      pages.write(rows, layer, rows.size + i, std::vector<float>(16, number), std::vector<float>(16, -number));
    }
  }
  rows.size += count;
}

kv_layer gathered(const kv_pages& pages, const paged_rows& rows, std::size_t layer) {
  kv_layer out(2, 8);
  pages.gather(rows, layer, 0, rows.size, out);
  return out;
}

// The text that each position came from, by the keys of a layer; checks everything else of all layers.
std::vector<int> texts(const kv_pages& pages, const paged_rows& rows) {
  std::vector<int> found;
  for (std::size_t layer = 0; layer < 4; ++layer) {
    const kv_layer all = gathered(pages, rows, layer);
    REQUIRE(static_cast<std::size_t>(all.size()) == rows.size);
    for (std::size_t i = 0; i < rows.size; ++i) {
      const auto row = static_cast<Eigen::Index>(i);
      const int number = static_cast<int>(all.keys()(row, 0));
      CHECK(number % 1000 == static_cast<int>(10 * i + layer));
      CHECK(all.keys().row(row) == -all.values().row(row));
      CHECK((all.keys().row(row).array() == all.keys()(row, 0)).all());
      CHECK(all.positions()[i] == static_cast<std::int32_t>(i));
      if (layer == 0) found.push_back(number / 1000);
    }
  }
  return found;
}

std::vector<int> of(std::initializer_list<std::pair<int, std::size_t>> runs) {
  std::vector<int> all;
  for (const auto& [text, count] : runs) all.insert(all.end(), count, text);
  return all;
}

TEST_CASE("kv_pages: rows come back as they were written", "[reference][kv_pages]") {
  kv_pages pages(small_config());
  paged_rows rows;
  append(pages, rows, 5, 1);
  append(pages, rows, 40, 1);
  append(pages, rows, 1, 1);
  CHECK(texts(pages, rows) == of({{1, 46}}));
  CHECK(pages.pages_in_use() == 3);
  CHECK(pages.page_bytes() == 4 * 2 * 16 * 16 * sizeof(float));
}

TEST_CASE("kv_pages: a fork shares until one of the two writes", "[reference][kv_pages]") {
  kv_pages pages(small_config());
  paged_rows a, b, c;
  append(pages, a, 40, 1);
  pages.fork(a, b);
  pages.fork(b, c);
  CHECK(pages.pages_in_use() == 3);
  append(pages, b, 1, 2);  // the third page, of 8 rows, is copied
  CHECK(pages.pages_in_use() == 4);
  append(pages, b, 7, 2);  // and is b's own from then on
  CHECK(pages.pages_in_use() == 4);
  append(pages, a, 3, 3);
  CHECK(pages.pages_in_use() == 5);
  append(pages, c, 20, 4);  // the last user needs no copy
  CHECK(pages.pages_in_use() == 6);
  CHECK(texts(pages, a) == of({{1, 40}, {3, 3}}));
  CHECK(texts(pages, b) == of({{1, 40}, {2, 8}}));
  CHECK(texts(pages, c) == of({{1, 40}, {4, 20}}));
}

TEST_CASE("kv_pages: whole pages are never copied", "[reference][kv_pages]") {
  kv_pages pages(small_config());
  paged_rows a, b;
  append(pages, a, 32, 1);
  pages.fork(a, b);
  append(pages, a, 1, 2);
  append(pages, b, 1, 3);
  CHECK(pages.pages_in_use() == 4);
  CHECK(texts(pages, a) == of({{1, 32}, {2, 1}}));
  CHECK(texts(pages, b) == of({{1, 32}, {3, 1}}));
}

TEST_CASE("kv_pages: truncation gives pages back and never touches another's rows", "[reference][kv_pages]") {
  kv_pages pages(small_config());
  paged_rows a, b;
  append(pages, a, 40, 1);
  pages.fork(a, b);
  pages.truncate(a, 35);  // in the middle of a shared page
  append(pages, a, 2, 2);
  CHECK(texts(pages, a) == of({{1, 35}, {2, 2}}));
  CHECK(texts(pages, b) == of({{1, 40}}));
  CHECK(pages.pages_in_use() == 4);
  pages.truncate(a, 16);
  CHECK(pages.pages_in_use() == 3);
  pages.truncate(b, 0);
  CHECK(pages.pages_in_use() == 1);
  pages.truncate(a, 0);
  CHECK(pages.pages_in_use() == 0);
  append(pages, a, 48, 5);  // pages serve again
  CHECK(pages.pages_in_use() == 3);
  CHECK(texts(pages, a) == of({{5, 48}}));
}

TEST_CASE("kv_pages: room that came to nothing is given back", "[reference][kv_pages]") {
  kv_pages pages(small_config());
  paged_rows rows;
  append(pages, rows, 3, 1);
  pages.make_room(rows, 60);
  CHECK(pages.pages_in_use() == 4);
  pages.make_room(rows, 1);
  CHECK(pages.pages_in_use() == 1);
}

TEST_CASE("kv_pages: gathering goes on from what is there", "[reference][kv_pages]") {
  kv_pages pages(small_config());
  paged_rows a, b;
  append(pages, a, 32, 1);
  pages.fork(a, b);
  append(pages, a, 5, 2);
  append(pages, b, 9, 3);
  kv_layer out(2, 8);
  pages.gather(a, 1, 0, 37, out);
  pages.gather(b, 1, 32, 41, out);
  CHECK(out.keys() == gathered(pages, b, 1).keys());
  CHECK(out.values() == gathered(pages, b, 1).values());
  pages.gather(b, 1, 7, 7, out);
  CHECK(out.size() == 7);
}

TEST_CASE("kv_pages: misuse", "[reference][kv_pages]") {
  kv_pages pages(small_config());
  paged_rows a, b;
  append(pages, a, 3, 1);
  CHECK_THROWS_AS(pages.truncate(a, 4), assertion_error);
  pages.fork(a, b);
  CHECK_THROWS_AS(pages.fork(a, b), assertion_error);
  const std::vector<float> row(16);
  CHECK_THROWS_AS(pages.write(a, 0, 2, row, row), assertion_error);
}

}  // namespace kv_pages_tests
