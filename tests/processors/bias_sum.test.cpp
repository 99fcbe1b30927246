// SPDX-License-Identifier: MIT
#include <decant/processors/bias_sum.hpp>

#include "processors/lists.hpp"

namespace bias_sum_tests {

using namespace lists;
using decant::bias_sum;

float applied(const law& biases, float logit) {
  const row logits{logit, 0};
  candidates c;
  c.bind(std::span<const float>(logits));
  bias_sum sum;
  for (const double bias : biases) sum.add(bias);
  sum.apply(c, 0);
  CHECK(c.logit(1) == 0);
  return c.logit(0);
}

TEST_CASE("biases add up in double before the logit is rounded", "[processors]") {
  CHECK(applied({1.5, 2}, 1) == 4.5F);
  CHECK(applied({1e8, 0.25, -1e8}, 0.5F) == 0.75F);
  CHECK(applied({}, 1) == 1);
}

TEST_CASE("a bias of -inf bans whatever is added before or after", "[processors]") {
  CHECK(decant::is_gone(applied({-infinity}, 5)));
  CHECK(decant::is_gone(applied({1e300, -infinity}, 5)));
  CHECK(decant::is_gone(applied({-infinity, 1e300}, 5)));
}

TEST_CASE("a finite bias never bans, however large", "[processors]") {
  CHECK(applied({-largest}, 5) == -std::numeric_limits<float>::max());
  CHECK(applied({-largest, -largest}, -3e38F) == -std::numeric_limits<float>::max());
  CHECK(applied({largest, largest}, 3e38F) == std::numeric_limits<float>::max());
  CHECK(applied({largest, -largest}, 5) == 5);
}

TEST_CASE("bias_sum: a sum of 0 leaves the logit bit for bit, and a gone token stays gone", "[processors]") {
  CHECK(same_bits({applied({0, 2, -2}, -0.0F)}, {-0.0F}));
  CHECK(decant::is_gone(applied({7}, gone)));
  CHECK(decant::is_gone(applied({largest}, gone)));
  bias_sum sum;
  CHECK(sum.none());
  sum.add(2);
  CHECK(!sum.none());
  sum.add(-2);
  CHECK(sum.none());
  sum.add(-infinity);
  CHECK(!sum.none());
}

TEST_CASE("a bias is a finite number or -inf", "[processors]") {
  for (const double good : {0.0, -0.0, denormal, -100.0, 100.0, largest, -largest, -infinity})
    CHECK(bias_sum::valid(good));
  for (const double bad : {not_a_number, -not_a_number, infinity}) CHECK(!bias_sum::valid(bad));
  CHECK(bias_sum::bans(-infinity));
  CHECK(!bias_sum::bans(-largest));
}

}  // namespace bias_sum_tests
