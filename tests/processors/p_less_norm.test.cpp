// SPDX-License-Identifier: MIT
#include <decant/processors/p_less_norm.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/p_less.hpp>
#include <decant/processors/temperature.hpp>

namespace p_less_norm_tests {

using namespace policies;
using decant::chain;
using decant::p_less;
using decant::p_less_norm;

/// L less the mean of p_u p_v over unequal pairs: the definition, before it is simplified.
double threshold_of(const law& p, double count) {
  double squares = 0, pairs = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    squares += p[i] * p[i];
    for (std::size_t j = 0; j < p.size(); ++j) pairs += i == j ? 0 : p[i] * p[j];
  }
  return squares - pairs / (count - 1);
}

TEST_CASE("p_less_norm has the golden set of methods.md N", "[processors]") {
  CHECK(threshold_of(reference::exact_law(golden), 6) == Approx(0.255276899500));
  CHECK(survivors(p_less_norm(), golden) == tokens{0});
}

TEST_CASE("p_less_norm equals its definition, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    row logits = random_row(60, seed);
    logits[9] = gone;
    const law full = reference::exact_law(logits);
    row kept = logits;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (full[i] < threshold_of(full, 59)) kept[i] = gone;
    }
    CHECK(difference(enumerated_law(p_less_norm(), logits), reference::exact_law(kept)) < of_float);
  }
}

TEST_CASE("p_less_norm keeps a superset of p_less", "[processors]") {
  bool more = false;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const row logits = random_row(12, seed);
    const tokens less = survivors(p_less(), logits), norm = survivors(p_less_norm(), logits);
    CHECK(std::ranges::includes(norm, less));
    more = more || norm.size() > less.size();
  }
  CHECK(more);
}

TEST_CASE("p_less_norm: equal tokens all stay, at any height and in any number", "[processors]") {
  for (const float height : {0.0F, 0.1F, -1000.0F, 65536.0F, 1e30F}) {
    for (const std::size_t size :
         {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}, std::size_t{1000}, std::size_t{50257}}) {
      CHECK(survivors(p_less_norm(), row(size, height)).size() == size);
    }
  }
}

TEST_CASE("next to equal tokens are cut only where they stand out", "[processors]") {
  // p = (.26, .25, .25, .24): n L - 1 = .0008, threshold .00027.
  CHECK(survivors(p_less_norm(), logs({0.26, 0.25, 0.25, 0.24})).size() == 4);
}

TEST_CASE("p_less_norm: a certain token stays alone", "[processors]") {
  CHECK(survivors(p_less_norm(), {0, 50, 0}) == tokens{1});
  CHECK(survivors(p_less_norm(), {0, 2000, gone}) == tokens{1});
  CHECK(survivors(p_less_norm(), {0, 2000, -2000}) == tokens{1});
}

TEST_CASE("of two tokens the lesser stays while p >= (p - q)^2", "[processors]") {
  // n = 2: 2 L - 1 = (p - q)^2; q = (p - q)^2 at q = 1/4.
  CHECK(survivors(p_less_norm(), logs({0.74, 0.26})) == tokens{0, 1});
  CHECK(survivors(p_less_norm(), logs({0.76, 0.24})) == tokens{0});
}

TEST_CASE("p_less_norm keeps min_keep tokens", "[processors]") {
  CHECK(survivors(p_less_norm(3), golden) == tokens{0, 1, 2});
  CHECK(survivors(p_less_norm(0), golden) == tokens{0});
  CHECK(survivors(p_less_norm(50), golden).size() == 6);
}

TEST_CASE("p_less_norm is right after extreme temperatures and shifts", "[processors]") {
  for (const double by : {-1e18, -1e12, 1e12, 1e18}) {
    const auto shifted = [=](candidates& c, const step_context&) { c.affine(1, by); };
    CHECK(survivors(chain(shifted, p_less_norm()), golden) == tokens{0});
    CHECK(survivors(chain(shifted, p_less_norm()), row(7, 1.0F)).size() == 7);
  }
  CHECK(survivors(chain(decant::temperature(1e-12), p_less_norm()), {1000, 999, 1000}) == tokens{0, 2});
}

TEST_CASE("p_less_norm has no bad parameter and says what it is", "[processors]") {
  CHECK(p_less_norm::make().has_value());
  CHECK(p_less_norm::make(std::size_t{4}).has_value());
  CHECK(p_less_norm().describe() == "p_less_norm");
}

TEST_CASE("p_less_norm on all sizes and on bad rows", "[processors]") {
  check_sizes(p_less_norm());
  check_bad_rows(p_less_norm());
  check_bad_rows(p_less_norm(3));
}

TEST_CASE("p_less_norm passes check_processor", "[processors]") {
  check_report_of(p_less_norm(), {.shift_invariant = true, .allocations = decant::testing::allocations});
}

}  // namespace p_less_norm_tests
