// SPDX-License-Identifier: MIT
#include <decant/processors/p_less.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace p_less_tests {

using namespace policies;
using decant::chain;
using decant::p_less;

double collision(const law& p) {
  double sum = 0;
  for (const double x : p) sum += x * x;
  return sum;
}

TEST_CASE("p_less has the golden set of methods.md N", "[processors]") {
  CHECK(collision(reference::exact_law(golden)) == Approx(0.379397416250));
  CHECK(survivors(p_less(), golden) == tokens{0});
}

TEST_CASE("p_less keeps what is as probable as a collision", "[processors]") {
  // L = .1936 + .1156 + .0289 + .0025 = .3406
  CHECK(survivors(p_less(), logs({0.44, 0.34, 0.17, 0.05})) == tokens{0});
  CHECK(survivors(p_less(), logs({0.3, 0.3, 0.2, 0.1, 0.1})) == tokens{0, 1});
  CHECK(survivors(p_less(), logs({0.26, 0.25, 0.25, 0.24})) == tokens{0});
}

TEST_CASE("p_less equals its definition, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    row logits = random_row(60, seed);
    logits[9] = gone;
    const law full = reference::exact_law(logits);
    row kept = logits;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (full[i] < collision(full)) kept[i] = gone;
    }
    CHECK(difference(enumerated_law(p_less(), logits), reference::exact_law(kept)) < of_float);
  }
}

TEST_CASE("the argmax always stays", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const row logits = random_row(30, seed);
    const auto best = static_cast<token_id>(std::ranges::max_element(logits) - logits.begin());
    for (const double t : {1e-9, 0.1, 1.0, 10.0, 1e9}) {
      CHECK(std::ranges::binary_search(survivors(chain(decant::temperature(t), p_less()), logits), best));
    }
  }
}

TEST_CASE("p_less: equal tokens all stay, at any height and in any number", "[processors]") {
  for (const float height : {0.0F, 0.1F, -1000.0F, 65536.0F, 1e30F}) {
    for (const std::size_t size :
         {std::size_t{1}, std::size_t{3}, std::size_t{7}, std::size_t{1000}, std::size_t{50257}}) {
      CHECK(survivors(p_less(), row(size, height)).size() == size);
    }
  }
  CHECK(survivors(p_less(), {5, 5, 5, -60, gone}) == tokens{0, 1, 2});
}

TEST_CASE("p_less: a certain token stays alone", "[processors]") {
  CHECK(survivors(p_less(), {0, 50, 0}) == tokens{1});
  CHECK(survivors(p_less(), {0, 2000, gone}) == tokens{1});
}

TEST_CASE("p_less keeps min_keep tokens", "[processors]") {
  CHECK(survivors(p_less(3), golden) == tokens{0, 1, 2});
  CHECK(survivors(p_less(0), golden) == tokens{0});
  CHECK(survivors(p_less(50), golden).size() == 6);
}

TEST_CASE("p_less sees temperature, and the tokens left", "[processors]") {
  CHECK(survivors(chain(decant::temperature(3), p_less()), golden) != survivors(p_less(), golden));
  CHECK(survivors(chain(decant::top_k(2), p_less()), logs({0.35, 0.33, 0.2, 0.12})) == tokens{0});
  CHECK(survivors(p_less(), logs({0.35, 0.33, 0.2, 0.12})) == tokens{0, 1});
}

TEST_CASE("p_less is right after extreme temperatures and shifts", "[processors]") {
  for (const double by : {-1e18, -1e12, 1e12, 1e18}) {
    const auto shifted = [=](candidates& c, const step_context&) { c.affine(1, by); };
    CHECK(survivors(chain(shifted, p_less()), golden) == tokens{0});
    CHECK(survivors(chain(shifted, p_less()), row(7, 1.0F)).size() == 7);
  }
  CHECK(survivors(chain(decant::temperature(1e-12), p_less()), {1000, 999, 1000}) == tokens{0, 2});
}

TEST_CASE("p_less has no bad parameter and says what it is", "[processors]") {
  CHECK(p_less::make().has_value());
  CHECK(p_less::make(std::size_t{4}).has_value());
  CHECK(p_less().describe() == "p_less");
  CHECK(!decant::is_off(p_less()));
}

TEST_CASE("p_less on all sizes and on bad rows", "[processors]") {
  check_sizes(p_less());
  check_bad_rows(p_less());
  check_bad_rows(p_less(3));
}

TEST_CASE("p_less passes check_processor", "[processors]") {
  check_report_of(p_less(), {.shift_invariant = true, .allocations = decant::testing::allocations});
}

}  // namespace p_less_tests
