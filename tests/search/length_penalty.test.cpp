// SPDX-License-Identifier: MIT
#include <decant/search/length_penalty.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace length_penalty_test {

using decant::length_penalty;

TEST_CASE("without a penalty, and with exponent 0, a score is the log-probability", "[search][length_penalty]") {
  for (const length_penalty& off :
       {length_penalty(), length_penalty::none(), length_penalty::power(0), length_penalty::gnmt(0)}) {
    for (const std::size_t length : {1U, 2U, 77U}) CHECK(off(-3.25, length) == -3.25);
  }
}

TEST_CASE("penalties divide by their power of the length", "[search][length_penalty]") {
  CHECK(length_penalty::mean()(-6, 3) == -2);
  CHECK(length_penalty::power(2)(-9, 3) == Approx(-1));
  CHECK(length_penalty::power(-1)(-2, 5) == Approx(-10));
  CHECK(length_penalty::power(0.6)(-1, 7) == Approx(-1 / std::pow(7, 0.6)));
  CHECK(length_penalty::power(0.6)(-1.5, 1) == -1.5);
  CHECK(length_penalty::gnmt(0.6)(-1.5, 1) == -1.5);  // exactly
  CHECK(-1 / length_penalty::gnmt(0.6)(-1, 10) == Approx(1.732862108));
  CHECK(-1 / length_penalty::gnmt(0.6)(-1, 20) == Approx(2.354362084));
}

TEST_CASE("any function is a penalty", "[search][length_penalty]") {
  const length_penalty own([](double log_prob, std::size_t length) { return log_prob + static_cast<double>(length); });
  CHECK(own(-3, 2) == -1);
}

TEST_CASE("the best score over lengths is at no length beaten, and reached", "[search][length_penalty]") {
  std::vector<length_penalty> all{{}, length_penalty([](double s, std::size_t n) {
                                    return s - std::abs(static_cast<double>(n) - 4);  // best inside
                                  })};
  for (const double exponent : {-1.0, -0.5, 0.5, 1.0, 2.0}) {
    all.push_back(length_penalty::power(exponent));
    all.push_back(length_penalty::gnmt(exponent));
  }
  for (const length_penalty& penalty : all) {
    for (const double log_prob : {-5.0, -0.1, 0.0, 2.0}) {
      double best = -1e9;
      for (std::size_t n = 2; n <= 9; ++n) best = std::max(best, penalty(log_prob, n));
      CHECK(penalty.best(log_prob, 2, 9) == best);
      CHECK(penalty.best(log_prob, 3, 3) == penalty(log_prob, 3));
    }
  }
}

TEST_CASE("an exponent must be finite", "[search][length_penalty]") {
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH(length_penalty::power(infinite), "length_penalty: exponent = inf must be finite");
  CHECK_THROWS_AS(length_penalty::gnmt(std::nan("")), decant::parameter_error);
  CHECK(length_penalty::validate(-infinite).has_value());
  CHECK_FALSE(length_penalty::validate(-1).has_value());
}

}  // namespace length_penalty_test
