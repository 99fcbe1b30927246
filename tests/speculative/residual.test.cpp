// SPDX-License-Identifier: MIT
#include <decant/speculative/residual.hpp>

#include <cmath>
#include <vector>

#include "support/catch.hpp"

namespace residual_tests {

using decant::excess;
using decant::law;
using decant::probability_of;
using decant::residual;
using ids = std::vector<decant::token_id>;

law of(ids tokens, std::vector<double> weights) {
  law out{std::move(tokens), std::move(weights), 0, {}};
  for (const double w : out.weights) out.total += w;
  return out;
}

TEST_CASE("the residual is the positive part, and its mass is returned", "[speculative]") {
  const law p = of({0, 2, 5}, {5, 3, 2}), q = of({1, 2, 5}, {1, 1, 2});
  law out;
  CHECK(std::abs(residual(p, 1.0, q, out) - (0.5 + 0.05)) < 1e-15);
  CHECK(out.ids == ids{0, 2});
  CHECK(std::abs(out.probability(0) - 0.5 / 0.55) < 1e-15);
  CHECK(std::abs(out.total - 0.55) < 1e-15);
  CHECK(std::abs(excess(p, 1.0, q) - 0.55) < 1e-15);
  CHECK(std::abs(excess(p, 0.5, q) - 0.25) < 1e-15);
}

TEST_CASE("a residual may take the place of its law", "[speculative]") {
  law p = of({0, 2, 5}, {5, 3, 2});
  const law q = of({2}, {1});
  residual(p, 1.0, q, p);
  CHECK(p.ids == ids{0, 5});
  CHECK(std::abs(p.probability(0) - 5.0 / 7) < 1e-15);
}

TEST_CASE("equal laws leave nothing, laws apart leave all", "[speculative]") {
  const law p = of({0, 2, 5}, {5, 3, 2}), q = of({1, 3}, {1, 1});
  law out;
  CHECK(residual(p, 1.0, p, out) == 0);
  CHECK(out.empty());
  CHECK(std::abs(residual(p, 1.0, q, out) - 1) < 1e-15);
  CHECK(out.ids == p.ids);
  CHECK(residual(law{}, 1.0, q, out) == 0);
  CHECK(std::abs(residual(p, 1.0, law{}, out) - 1) < 1e-15);
}

TEST_CASE("a residual of a whole law carries no bounds of blocks, which would not be its own", "[speculative]") {
  law p = of({0, 1}, {1, 1});
  p.block_bounds = {2};
  law out = p;
  residual(p, 1.0, of({0}, {1}), out);
  CHECK(out.block_bounds.empty());
  residual(p, 1.0, of({0}, {1}), p);
  CHECK(p.block_bounds.empty());
}

TEST_CASE("short laws beside long ones: every overlap is found", "[speculative]") {
  law longer;
  for (decant::token_id i = 0; i < 3000; i += 3) {
    longer.ids.push_back(i);
    longer.weights.push_back(1);
    longer.total += 1;
  }
  for (const ids& tokens : {ids{0}, ids{2997}, ids{2, 3, 4}, ids{1, 600, 601, 2000, 2001, 2996}, ids{2999, 5000}}) {
    const law some = of(tokens, std::vector<double>(tokens.size(), 1));
    double expected = 0;
    for (const auto token : tokens) {
      expected += std::max(0.0, some.probability(token) - longer.probability(token));
    }
    CHECK(std::abs(excess(some, 1.0, longer) - expected) < 1e-12);
    double other_way = 0;
    for (const auto token : longer.ids) other_way += std::max(0.0, longer.probability(token) - some.probability(token));
    CHECK(std::abs(excess(longer, 1.0, some) - other_way) < 1e-12);
  }
}

TEST_CASE("removing a token, and a law that is certain", "[speculative]") {
  law p = of({0, 2, 5}, {1, 1e20, 2});
  p.block_bounds = {1e21};
  decant::remove_token(p, 2);
  CHECK(p == of({0, 5}, {1, 2}));  // the total too: not what is left of 1e20 after taking 1e20 away
  decant::remove_token(p, 3);
  CHECK(p == of({0, 5}, {1, 2}));
  decant::make_certain(p, 7);
  CHECK(p == of({7}, {1}));
  CHECK(probability_of(p, 7) == 1);
  CHECK(probability_of(p, 8) == 0);
}

}  // namespace residual_tests
