// SPDX-License-Identifier: MIT
#include <decant/search/finished_pool.hpp>

#include "support/catch.hpp"

#include <vector>

namespace finished_pool_test {

using decant::finished_pool;

std::vector<decant::hypothesis_link> links(const finished_pool& pool) {
  std::vector<decant::hypothesis_link> all;
  for (const auto& one : pool.kept()) all.push_back(one.link);
  return all;
}

TEST_CASE("the best are kept, best first, of equals the earlier", "[search][finished_pool]") {
  finished_pool pool(3);
  CHECK_FALSE(pool.full());
  CHECK(pool.kept().empty());
  pool.add({.link = 1, .score = -2});
  pool.add({.link = 2, .score = -1});
  pool.add({.link = 3, .score = -2});
  CHECK(links(pool) == std::vector<decant::hypothesis_link>{2, 1, 3});
  CHECK(pool.full());
  CHECK(pool.worst() == -2);
  CHECK_FALSE(pool.keeps(-2));
  CHECK(pool.keeps(-1.5));
  pool.add({.link = 4, .score = -1.5});
  CHECK(links(pool) == std::vector<decant::hypothesis_link>{2, 4, 1});
}

TEST_CASE("while there is room anything is kept", "[search][finished_pool]") {
  finished_pool pool(1);
  CHECK(pool.keeps(-1e300));
  pool.add({.link = 1, .score = -1e300});
  CHECK(pool.keeps(-1e299));
  pool.add({.link = 2, .score = -1e299});
  CHECK(links(pool) == std::vector<decant::hypothesis_link>{2});
}

}  // namespace finished_pool_test
