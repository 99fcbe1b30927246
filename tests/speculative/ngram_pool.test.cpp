// SPDX-License-Identifier: MIT
#include <decant/speculative/ngram_pool.hpp>

#include <vector>

#include "support/catch.hpp"

namespace ngram_pool_tests {

using decant::ngram_pool;
using ids = std::vector<decant::token_id>;

std::vector<ids> after(const ngram_pool& pool, decant::token_id token) {
  const auto runs = pool.after(token);
  return {runs.begin(), runs.end()};
}

TEST_CASE("a pool keeps the newest runs of each first token", "[speculative][lookahead]") {
  ngram_pool pool(2);
  CHECK(after(pool, 1).empty());
  pool.insert(ids{1, 2, 3});
  pool.insert(ids{1, 4, 5});
  pool.insert(ids{2, 4, 5});
  CHECK(after(pool, 1) == std::vector<ids>{{4, 5}, {2, 3}});
  pool.insert(ids{1, 2, 3});  // known: becomes the newest
  CHECK(after(pool, 1) == std::vector<ids>{{2, 3}, {4, 5}});
  pool.insert(ids{1, 6});  // the oldest makes way
  CHECK(after(pool, 1) == std::vector<ids>{{6}, {2, 3}});
  CHECK(after(pool, 2) == std::vector<ids>{{4, 5}});
  pool.insert(ids{3});  // nothing follows
  CHECK(after(pool, 3).empty());
  pool.clear();
  CHECK(after(pool, 1).empty());
  ngram_pool none(0);
  none.insert(ids{1, 2});
  CHECK(after(none, 1).empty());
}

}  // namespace ngram_pool_tests
