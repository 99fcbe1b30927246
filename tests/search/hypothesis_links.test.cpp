// SPDX-License-Identifier: MIT
#include <decant/search/hypothesis_links.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <vector>

namespace hypothesis_links_test {

using decant::hypothesis_link;
using decant::hypothesis_links;
using decant::root_link;
using decant::token_id;
using ids = std::vector<token_id>;

TEST_CASE("hypotheses share what they begin with", "[search][hypothesis_links]") {
  hypothesis_links links;
  CHECK(links.size() == 1);
  CHECK(links.tokens(root_link).empty());
  CHECK(links.token(root_link) == decant::no_token);
  const hypothesis_link a = links.add(root_link, 5), b = links.add(a, 6), c = links.add(a, 7), d = links.add(c, 8);
  CHECK(links.size() == 5);
  CHECK(links.tokens(b) == ids{5, 6});
  CHECK(links.tokens(d) == ids{5, 7, 8});
  CHECK(links.parent(d) == c);
  CHECK(links.token(d) == 8);
  CHECK(links.length(d) == 3);
  CHECK(links.length(root_link) == 0);
}

TEST_CASE("the tokens after some, into storage that is there", "[search][hypothesis_links]") {
  hypothesis_links links;
  const hypothesis_link last = links.add(links.add(links.add(root_link, 1), 2), 3);
  ids out{9, 9, 9, 9};
  links.tokens(last, out, 1);
  CHECK(out == ids{2, 3});
  links.tokens(last, out, 3);
  CHECK(out.empty());
  CHECK_THROWS_AS(links.tokens(last, out, 4), assertion_error);
}

TEST_CASE("what two hypotheses have in common", "[search][hypothesis_links]") {
  hypothesis_links links;
  const hypothesis_link a = links.add(root_link, 5), b = links.add(a, 6), c = links.add(a, 6), d = links.add(c, 8);
  CHECK(links.common(b, d) == a);  // the same token is not the same link
  CHECK(links.common(d, b) == a);
  CHECK(links.common(d, c) == c);
  CHECK(links.common(d, d) == d);
  CHECK(links.common(links.add(root_link, 5), d) == root_link);
}

TEST_CASE("clearing leaves the root", "[search][hypothesis_links]") {
  hypothesis_links links;
  links.reserve(10);
  const hypothesis_link a = links.add(root_link, 1);
  links.clear();
  CHECK(links.size() == 1);
  CHECK_THROWS_AS(links.tokens(a), assertion_error);
  CHECK_THROWS_AS(links.add(a, 2), assertion_error);
}

}  // namespace hypothesis_links_test
