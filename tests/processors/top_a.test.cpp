// SPDX-License-Identifier: MIT
#include <decant/processors/top_a.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/min_p.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace top_a_tests {

using namespace policies;
using decant::chain;
using decant::min_p;
using decant::top_a;

TEST_CASE("top_a has the golden set of methods.md N", "[processors]") {
  CHECK(survivors(top_a(0.5), golden) == tokens{0, 1});
}

TEST_CASE("top_a equals its definition, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    row logits = random_row(60, seed);
    logits[9] = gone;
    const law full = reference::exact_law(logits);
    const double best = *std::ranges::max_element(full);
    for (const double a : {0.01, 0.2, 0.7, 1.0}) {
      row kept = logits;
      for (std::size_t i = 0; i < kept.size(); ++i) {
        if (full[i] < a * best * best) kept[i] = gone;
      }
      CHECK(difference(enumerated_law(top_a(a), logits), reference::exact_law(kept)) < of_float);
    }
  }
}

TEST_CASE("top_a is min_p with the base a * max p", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const row logits = random_row(80, seed);
    const double best = std::ranges::max(reference::exact_law(logits));
    for (const double a : {0.01, 0.2, 1.0}) CHECK(survivors(top_a(a), logits) == survivors(min_p(a * best), logits));
  }
}

TEST_CASE("a = 1 keeps the argmax of a certain row, and all of a flat one", "[processors]") {
  CHECK(survivors(top_a(1), {50, 0, 0}) == tokens{0});
  CHECK(survivors(top_a(1), {50, gone, gone}) == tokens{0});
  for (const float height : {0.0F, -1000.0F, 65536.0F}) CHECK(survivors(top_a(1), row(9, height)).size() == 9);
  // p = (.5, .25, .25): 1 * .25 is reached exactly, in exact arithmetic; equal tokens fare alike.
  CHECK(survivors(top_a(0.99), logs({0.5, 0.25, 0.25})) == tokens{0, 1, 2});
  CHECK(survivors(top_a(1), {4, 4, -50}) == tokens{0, 1});
}

TEST_CASE("top_a keeps min_keep tokens", "[processors]") {
  CHECK(survivors(top_a(0.5, 3), golden) == tokens{0, 1, 2});
  CHECK(survivors(top_a(0.5, 1), golden) == tokens{0, 1});
  CHECK(survivors(top_a(0.5, 0), golden) == tokens{0, 1});
  CHECK(survivors(top_a(1, 2), {1, 1, 50, 1}) == tokens{0, 2});
  CHECK(survivors(top_a(0.5, 50), golden).size() == 6);
}

TEST_CASE("top_a: probabilities are those of the tokens left", "[processors]") {
  // .4^2 = .16; after top_k(2), p = (4/7, 3/7) and the threshold 16/49 lets 3/7 through.
  const row logits = logs({0.4, 0.3, 0.2, 0.1});
  CHECK(survivors(top_a(1), logits) == tokens{0, 1, 2});
  CHECK(survivors(chain(decant::top_k(2), top_a(1)), logits) == tokens{0, 1});
}

TEST_CASE("top_a is right after extreme temperatures and shifts", "[processors]") {
  const auto shifted = [](double by) { return [=](candidates& c, const step_context&) { c.affine(1, by); }; };
  for (const double by : {-1e18, -1e12, 1e12, 1e18}) {
    CHECK(survivors(chain(shifted(by), top_a(0.5)), golden) == tokens{0, 1});
    CHECK(survivors(chain(shifted(by), top_a(1)), row(4, 1.0F)).size() == 4);
  }
  CHECK(survivors(chain(decant::temperature(1e-12), top_a(0.2)), {1000, 999, 1000}) == tokens{0, 2});
  CHECK(survivors(chain(decant::temperature(1e12), top_a(0.2)), {1000, 999, 1000}) == tokens{0, 1, 2});
}

TEST_CASE("a = 0 is off bit for bit", "[processors]") {
  for (const double zero : {0.0, -0.0}) {
    CHECK(top_a(zero).off());
    check_identity(top_a(zero));
  }
  CHECK(!top_a(denormal).off());
}

TEST_CASE("top_a refuses what is not in [0, 1]", "[processors]") {
  for (const double bad : {not_a_number, -infinity, infinity, -1.0, -denormal, std::nextafter(1.0, 2.0)}) {
    check_rejects<top_a>(bad, "top_a", "a", "must lie in [0, 1]");
  }
  for (const double good : {0.0, -0.0, denormal, 0.2, 1.0}) check_accepts<top_a>(good);
  CHECK(top_a::make(0.5, std::size_t{3}).has_value());
  CHECK(top_a(0.2).describe() == "top_a(0.2)");
}

TEST_CASE("top_a on all sizes and on bad rows", "[processors]") {
  for (const double a : {0.0, 0.2, 1.0}) {
    check_sizes(top_a(a));
    check_bad_rows(top_a(a));
  }
}

TEST_CASE("top_a passes check_processor", "[processors]") {
  for (const double a : {0.0, 0.2, 1.0}) {
    check_report_of(top_a(a), {.shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace top_a_tests
