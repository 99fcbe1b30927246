// SPDX-License-Identifier: MIT
#include <decant/processors/top_n_sigma.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace top_n_sigma_tests {

using namespace policies;
using decant::chain;
using decant::deviation;
using decant::top_n_sigma;

TEST_CASE("top_n_sigma has the golden set of methods.md N", "[processors]") {
  CHECK(survivors(top_n_sigma(1), golden) == tokens{0, 1, 2});
  // sigma is 1.592081097879, and 1.744037461371 unbiased: both sides of the distances 3 and 5.
  CHECK(survivors(top_n_sigma(3 / 1.592081097880), golden) == tokens{0, 1, 2, 3});
  CHECK(survivors(top_n_sigma(3 / 1.592081097878), golden) == tokens{0, 1, 2, 3, 4});
  CHECK(survivors(top_n_sigma(3 / 1.744037461372, 1, deviation::unbiased), golden) == tokens{0, 1, 2, 3});
  CHECK(survivors(top_n_sigma(3 / 1.744037461370, 1, deviation::unbiased), golden) == tokens{0, 1, 2, 3, 4});
}

TEST_CASE("llama.cpp's own cases", "[processors]") {
  const row logits = logs({0.1, 0.2, 0.3, 0.4});
  CHECK(survivors(top_n_sigma(1), logits) == tokens{2, 3});
  CHECK(difference(law_after(top_n_sigma(1), logits), {0, 0, 3.0 / 7, 4.0 / 7}) < of_float);
  CHECK(survivors(top_n_sigma(3), logits).size() == 4);
}

TEST_CASE("top_n_sigma equals its definition, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    row logits = random_row(60, seed);
    logits[9] = gone;
    for (const double n : {0.3, 1.0, 2.0}) {
      for (const deviation kind : {deviation::population, deviation::unbiased}) {
        double sum = 0, squares = 0;
        for (const float z : logits) sum += decant::is_gone(z) ? 0 : static_cast<double>(z);
        for (const float z : logits) squares += decant::is_gone(z) ? 0 : std::pow(static_cast<double>(z) - sum / 59, 2);
        const double sigma = std::sqrt(squares / (kind == deviation::population ? 59 : 58));
        const double threshold = static_cast<double>(*std::ranges::max_element(logits)) - n * sigma;
        row kept = logits;
        for (float& z : kept) z = static_cast<double>(z) >= threshold ? z : gone;
        CHECK(difference(enumerated_law(top_n_sigma(n, 1, kind), logits), reference::exact_law(kept)) < of_float);
      }
    }
  }
}

TEST_CASE("what top_n_sigma keeps does not depend on temperature (methods.md B12)", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const row logits = random_row(80, seed);
    for (const double n : {0.0, 0.5, 1.0, 2.0}) {
      const tokens left = survivors(top_n_sigma(n), logits);
      for (const double t : {1e-30, 1e-12, 0.3, 0.7, 2.0, 1e12, 1e30}) {
        CHECK(survivors(chain(decant::temperature(t), top_n_sigma(n)), logits) == left);
      }
      CHECK(law_after(chain(decant::temperature(0.6), top_n_sigma(n)), logits) ==
            law_after(chain(top_n_sigma(n), decant::temperature(0.6)), logits));
    }
  }
}

TEST_CASE("a constant added to all logits changes nothing", "[processors]") {
  for (const float shift : {-65536.0F, -300.0F, 300.0F, 65536.0F}) {
    row moved = golden;
    for (float& z : moved) z += shift;
    CHECK(survivors(top_n_sigma(1), moved) == tokens{0, 1, 2});
  }
  for (const double by : {-1e18, 1e18}) {
    const auto shifted = [=](candidates& c, const step_context&) { c.affine(1, by); };
    CHECK(survivors(chain(shifted, top_n_sigma(1)), golden) == tokens{0, 1, 2});
  }
}

TEST_CASE("n = 0 keeps the maximum and its exact ties", "[processors]") {
  CHECK(survivors(top_n_sigma(0), golden) == tokens{0});
  CHECK(survivors(top_n_sigma(0), {2, 5, 5, 4.9999995F}) == tokens{1, 2});
  CHECK(survivors(top_n_sigma(-0.0), {2, 5, 5}) == tokens{1, 2});
  CHECK(survivors(top_n_sigma(denormal), {2, 5, 5}) == tokens{1, 2});
}

TEST_CASE("equal tokens have no deviation and all stay", "[processors]") {
  for (const double n : {0.0, 1.0, 1e300}) CHECK(survivors(top_n_sigma(n), row(7, -3.0F)).size() == 7);
}

TEST_CASE("gone tokens do not count towards sigma (koboldcpp PR1400, llama.cpp PR11896)", "[processors]") {
  row logits = golden;
  logits.insert(logits.end(), 40, gone);
  CHECK(survivors(top_n_sigma(1), logits) == tokens{0, 1, 2});
  CHECK(survivors(chain(decant::top_k(2), top_n_sigma(1)), golden) == tokens{0});
  CHECK(survivors(chain(decant::top_k(2), top_n_sigma(2)), golden) == tokens{0, 1});
  CHECK(survivors(top_n_sigma(1, 1, deviation::unbiased), {gone, 3, gone}) == tokens{1});
}

TEST_CASE("top_n_sigma keeps min_keep tokens", "[processors]") {
  CHECK(survivors(top_n_sigma(0, 2), golden) == tokens{0, 1});
  CHECK(survivors(top_n_sigma(1, 2), golden) == tokens{0, 1, 2});
  CHECK(survivors(top_n_sigma(0, 0), golden) == tokens{0});
  CHECK(survivors(top_n_sigma(0, 50), golden).size() == 6);
}

TEST_CASE("n = +infinity is off bit for bit, a huge n keeps all", "[processors]") {
  CHECK(top_n_sigma(infinity).off());
  CHECK(!top_n_sigma(largest).off());
  check_identity(top_n_sigma(infinity));
  CHECK(survivors(top_n_sigma(largest), golden).size() == 6);
}

TEST_CASE("top_n_sigma refuses what is not a number >= 0", "[processors]") {
  for (const double bad : {not_a_number, -infinity, -1.0, -denormal}) {
    check_rejects<top_n_sigma>(bad, "top_n_sigma", "n", "must be a number >= 0");
  }
  for (const double good : {0.0, -0.0, denormal, 1.0, largest, infinity}) check_accepts<top_n_sigma>(good);
  CHECK(top_n_sigma::make(0.5, std::size_t{3}, deviation::unbiased).has_value());
  CHECK(top_n_sigma(1.5).describe() == "top_n_sigma(1.5)");
}

TEST_CASE("top_n_sigma on all sizes and on bad rows", "[processors]") {
  for (const double n : {0.0, 1.0}) {
    for (const deviation kind : {deviation::population, deviation::unbiased}) {
      check_sizes(top_n_sigma(n, 1, kind));
      check_bad_rows(top_n_sigma(n, 1, kind));
    }
  }
}

TEST_CASE("top_n_sigma passes check_processor", "[processors]") {
  for (const double n : {0.0, 1.0, infinity}) {
    check_report_of(top_n_sigma(n), {.shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace top_n_sigma_tests
