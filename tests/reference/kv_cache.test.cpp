// SPDX-License-Identifier: MIT
#include <decant/reference/kv_cache.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "fixtures.hpp"

using namespace decant;
using namespace reference_tests;

namespace {

std::vector<std::int32_t> positions(const kv_layer& layer) {
  return {layer.positions().begin(), layer.positions().end()};
}

// Row r, column c of the keys is 100 * position + c, and of the values its negative.
kv_layer filled(Eigen::Index rows) {
  kv_layer layer(2, 3);
  layer.append(0, rows);
  for (Eigen::Index r = 0; r < rows; ++r) {
    for (Eigen::Index c = 0; c < 6; ++c) {
      layer.keys()(r, c) = static_cast<float>(100 * r + c);
      layer.values()(r, c) = -static_cast<float>(100 * r + c);
    }
  }
  return layer;
}

}  // namespace

TEST_CASE("kv_layer: shapes, heads and positions", "[reference][kv_cache]") {
  const kv_layer layer = filled(4);
  CHECK(layer.size() == 4);
  CHECK(layer.dim() == 6);
  CHECK(positions(layer) == std::vector<std::int32_t>{0, 1, 2, 3});
  CHECK(layer.keys().rows() == 4);
  CHECK(layer.keys().cols() == 6);
  CHECK(layer.keys(1).cols() == 3);
  CHECK(layer.keys(1)(2, 0) == 203);
  CHECK(layer.values(1)(2, 2) == -205);
  CHECK(layer.keys() == filled(4).keys());
}

TEST_CASE("kv_layer: an empty one has empty views", "[reference][kv_cache]") {
  const kv_layer layer(2, 3);
  CHECK(layer.size() == 0);
  CHECK(layer.keys().rows() == 0);
  CHECK(layer.values(1).rows() == 0);
}

TEST_CASE("kv_layer: truncation goes by position", "[reference][kv_cache]") {
  kv_layer layer = filled(4);
  layer.append(7, 2);
  CHECK(positions(layer) == std::vector<std::int32_t>{0, 1, 2, 3, 7, 8});
  layer.truncate(8);
  CHECK(positions(layer) == std::vector<std::int32_t>{0, 1, 2, 3, 7});
  layer.truncate(5);
  CHECK(layer.size() == 4);
  layer.truncate(2);
  CHECK(layer.keys() == filled(2).keys());
  layer.append(2, 1);
  CHECK(layer.keys().row(2).isZero(0));  // nothing of what was forgotten
  layer.truncate(0);
  CHECK(layer.size() == 0);
}

TEST_CASE("kv_layer: eviction keeps rows with their positions", "[reference][kv_cache]") {
  kv_layer layer = filled(5);
  const std::vector<Eigen::Index> rows{0, 3, 4};
  layer.keep(rows);
  CHECK(positions(layer) == std::vector<std::int32_t>{0, 3, 4});
  CHECK(layer.keys()(1, 2) == 302);
  CHECK(layer.values()(2, 5) == -405);
  layer.append(5, 1);
  CHECK(positions(layer) == std::vector<std::int32_t>{0, 3, 4, 5});
  layer.keep({});
  CHECK(layer.size() == 0);
}

TEST_CASE("kv_cache: one store a layer, copied by value", "[reference][kv_cache]") {
  kv_cache cache(small_config());
  CHECK(cache.n_layers() == 4);
  CHECK(cache.layer(0).heads() == 2);
  CHECK(cache.layer(0).head_size() == 8);
  cache.reserve(10);
  cache.layer(1).append(0, 3);
  kv_cache copy = cache;
  copy.layer(1).keys()(0, 0) = 1;
  copy.truncate(1);
  CHECK(cache.layer(1).size() == 3);
  CHECK(cache.layer(1).keys()(0, 0) == 0);
  CHECK(copy.layer(1).size() == 1);
  CHECK(copy.layer(0).size() == 0);
}

TEST_CASE("kv_layer: rows that were reserved do not move", "[reference][kv_cache]") {
  kv_layer layer(2, 3);
  layer.reserve(8);
  layer.append(0, 1);
  const float* const first = layer.keys().data();
  layer.append(1, 7);
  CHECK(layer.keys().data() == first);
}

TEST_CASE("kv_cache: misuse", "[reference][kv_cache]") {
  kv_cache cache(small_config());
  CHECK_THROWS_AS(cache.layer(4), assertion_error);
  kv_layer layer = filled(3);
  CHECK_THROWS_AS(layer.append(2, 1), assertion_error);
  CHECK_THROWS_AS(layer.keys(2), assertion_error);
  CHECK_THROWS_AS(layer.keys(-1), assertion_error);
  const std::vector<Eigen::Index> descending{1, 0};
  CHECK_THROWS_AS(layer.keep(descending), assertion_error);
  const std::vector<Eigen::Index> outside{3};
  CHECK_THROWS_AS(layer.keep(outside), assertion_error);
}
