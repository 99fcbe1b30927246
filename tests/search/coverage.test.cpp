// SPDX-License-Identifier: MIT
#include <decant/search/coverage.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace coverage_test {

using decant::coverage_options;

TEST_CASE("coverage is 0 where all was attended to, and falls where little was", "[search][coverage]") {
  const coverage_options half{.beta = 0.5};
  CHECK(half.score(std::vector<double>{1, 2.5, 1}) == 0);
  CHECK(half.score(std::vector<double>{1, 0.25}) == Approx(0.5 * std::log(0.25)));
  CHECK(half.score(std::vector<double>{0.5, 0.25}) == Approx(0.5 * std::log(0.125)));
  CHECK(half.score({}) == 0);
  CHECK(half.score(std::vector<double>{0}) == Approx(0.5 * std::log(std::numeric_limits<double>::min())));
}

TEST_CASE("coverage is off without a weight, and without an alignment", "[search][coverage]") {
  const auto alignment = [](const decant::alignment_step&) { return std::span<const float>(); };
  CHECK(coverage_options{}.off());
  CHECK(coverage_options{.beta = 0.2}.off());
  CHECK(coverage_options{.beta = 0, .alignment = alignment}.off());
  CHECK_FALSE(coverage_options{.beta = 0.2, .alignment = alignment}.off());
}

TEST_CASE("a weight must be a finite number >= 0", "[search][coverage]") {
  for (const double bad : {-0.1, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const auto fault = coverage_options{.beta = bad}.validate();
    REQUIRE(fault.has_value());
    CHECK(fault->policy == "coverage");
    CHECK(fault->parameter == "beta");
  }
  CHECK_FALSE(coverage_options{.beta = 0.2}.validate().has_value());
}

}  // namespace coverage_test
