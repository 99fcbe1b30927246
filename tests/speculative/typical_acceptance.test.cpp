// SPDX-License-Identifier: MIT
#include <decant/speculative/typical_acceptance.hpp>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "speculative/golden_laws.hpp"
#include "support/catch.hpp"

namespace typical_acceptance_tests {

using decant::draft;
using decant::law;
using decant::no_parent;
using decant::typical_acceptance;
using decant::verdict;
using path = std::vector<std::size_t>;

law of(std::initializer_list<double> weights) {
  law out;
  for (const double w : weights) {
    out.ids.push_back(static_cast<decant::token_id>(out.ids.size()));
    out.weights.push_back(w);
    out.total += w;
  }
  return out;
}

/// Accepts with the same target law everywhere.
path accepted(const typical_acceptance& rule, const draft& drafted, const law& p) {
  verdict found;
  struct never_asked {};
  rule(drafted, [&](std::int32_t) -> const law& { return p; }, never_asked{}, found);
  CHECK(found.next == &p);
  return found.path;
}

TEST_CASE("the threshold is the smaller of epsilon and delta e^-H", "[speculative]") {
  const typical_acceptance rule;
  const law p = golden_laws::target();  // H = 1.226783295532
  CHECK(std::abs(rule.threshold(p) - std::min(0.09, 0.3 * std::exp(-1.226783295532))) < 1e-12);
  CHECK(std::abs(typical_acceptance(1, 0.3).threshold(p) - 0.3 * std::exp(-1.226783295532)) < 1e-12);
  CHECK(std::abs(typical_acceptance(0.9, 0.8).threshold(of({1})) - 0.8) < 1e-12);
}

TEST_CASE("accepted tokens stand above the threshold, rejected ones do not", "[speculative]") {
  const law p = golden_laws::target();  // .561 .206 .125 .076 .028 .004
  const typical_acceptance rule(0.1, 1);
  for (decant::token_id token = 0; token < 6; ++token) {
    draft drafted;
    drafted.add(token);
    CHECK(accepted(rule, drafted, p).size() == (token < 3 ? 1U : 0U));
  }
}

TEST_CASE("the longest path wins, then the most probable, then the first", "[speculative]") {
  const law p = golden_laws::target();
  const typical_acceptance rule(0.1, 1);
  draft drafted;
  const auto top = drafted.add(0), second = drafted.add(1);
  CHECK(accepted(rule, drafted, p) == path{0});
  const auto below = drafted.add(2, second);
  CHECK(accepted(rule, drafted, p) == path{1, static_cast<std::size_t>(below)});
  drafted.add(5, below);  // not typical
  CHECK(accepted(rule, drafted, p) == path{1, static_cast<std::size_t>(below)});
  const auto likelier = drafted.add(1, top);
  CHECK(accepted(rule, drafted, p) == path{0, static_cast<std::size_t>(likelier)});
  drafted.add(1, top);
  CHECK(accepted(rule, drafted, p) == path{0, static_cast<std::size_t>(likelier)});
}

TEST_CASE("typical acceptance of a certain target is greedy verification", "[speculative]") {
  draft drafted;
  drafted.add(1);
  const auto right = drafted.add(0);
  CHECK(accepted(typical_acceptance{}, drafted, of({1})) == path{static_cast<std::size_t>(right)});
}

TEST_CASE("typical acceptance is not lossless", "[speculative]") {
  // A drafter that always says 1 is believed every time, where the target says 1 in 30 % of cases.
  draft drafted;
  drafted.add(1);
  CHECK(accepted(typical_acceptance{}, drafted, of({0.7, 0.3})) == path{0});
  CHECK(!typical_acceptance::lossless);
}

TEST_CASE("typical acceptance ends before a target row that cannot be decoded", "[speculative]") {
  draft drafted;
  drafted.add(0, drafted.add(0));
  const law good = of({1}), bad;
  verdict found;
  struct never_asked {};
  typical_acceptance{}(
      drafted, [&](std::int32_t n) -> const law& { return n == no_parent ? good : bad; }, never_asked{}, found);
  CHECK(found.path == path{0});
  CHECK(found.next == &bad);
}

TEST_CASE("typical acceptance parameters", "[speculative]") {
  for (const double bad : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS(typical_acceptance(bad, 0.3), decant::parameter_error);
    CHECK_THROWS_AS(typical_acceptance(0.09, bad), decant::parameter_error);
    CHECK(!typical_acceptance::make(0.09, bad).has_value());
  }
  CHECK(typical_acceptance{}.describe() == "typical_acceptance(0.09, 0.3)");
}

}  // namespace typical_acceptance_tests
