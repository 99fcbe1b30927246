// SPDX-License-Identifier: MIT
#include <decant/processors/min_p.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace min_p_tests {

using namespace policies;
using decant::chain;
using decant::min_p;
using decant::temperature;

TEST_CASE("min_p has the golden sets", "[processors]") {
  CHECK(survivors(min_p(0.1), golden) == tokens{0, 1, 2, 3});
  CHECK(survivors(min_p(0.2), golden) == tokens{0, 1, 2});
}

TEST_CASE("min_p is relative to the largest probability (llama.cpp PR3841)", "[processors]") {
  // p_max = 0.2: the threshold is 0.06, and not 0.3.
  const row logits = logs({0.2, 0.1, 0.07, 0.0599, 0.05, 0.19, 0.18, 0.1501});
  CHECK(survivors(min_p(0.3), logits) == tokens{0, 1, 2, 5, 6, 7});
}

TEST_CASE("min_p 1 keeps the maximum and its exact ties (llama.cpp#13405)", "[processors]") {
  CHECK(survivors(min_p(1), golden) == tokens{0});
  CHECK(survivors(min_p(1), {2, 5, 5, 4.9999995F}) == tokens{1, 2});
  CHECK(survivors(min_p(1), row(7, -3.0F)).size() == 7);
  CHECK(survivors(chain(temperature(0.3), min_p(1)), {2, 5, 5, 4.9999995F}) == tokens{1, 2});
}

TEST_CASE("a probability exactly at the threshold is kept", "[processors]") {
  const auto l = static_cast<float>(std::log(0.5));
  // ln 0.5 in float lies below ln 0.5, or above it: the double comparison decides.
  const bool above = static_cast<double>(l) >= std::log(0.5);
  CHECK(survivors(min_p(0.5), {0, l}).size() == (above ? 2U : 1U));
  CHECK(survivors(min_p(0.5), {0, std::nextafter(l, 0.0F)}).size() == 2);
  CHECK(survivors(min_p(0.5), {0, std::nextafter(l, -1.0F)}).size() ==
        (static_cast<double>(std::nextafter(l, -1.0F)) >= std::log(0.5) ? 2U : 1U));
}

TEST_CASE("min_p 0 is off bit for bit", "[processors]") {
  CHECK(min_p(0).off());
  CHECK(min_p(-0.0).off());
  CHECK(!min_p(denormal).off());
  check_identity(min_p(0));
  check_identity(min_p(-0.0));
}

TEST_CASE("min_p equals the reference, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    row logits = random_row(60, seed);
    logits[7] = gone;
    for (const double p : {0.001, 0.05, 0.1, 0.3, 0.9, 1.0}) {
      const law expected = reference::exact_law(reference::min_p(reference::widened(logits), p));
      CHECK(difference(law_after(min_p(p), logits), expected) < of_float);
      CHECK(difference(enumerated_law(min_p(p), logits), expected) < of_float);
    }
  }
}

TEST_CASE("min_p after temperature T is min_p(p^T) before it", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const row logits = random_row(80, seed);
    for (const double t : {0.25, 0.5, 2.0, 3.0}) {
      for (const double p : {0.02, 0.1, 0.5, 1.0}) {
        CHECK(survivors(chain(temperature(t), min_p(p)), logits) ==
              survivors(chain(min_p(std::pow(p, t)), temperature(t)), logits));
      }
    }
  }
}

TEST_CASE("T = 5 with min_p 0.1 differs by order (llama.cpp#4091, textgen#4463)", "[processors]") {
  CHECK(survivors(chain(min_p(0.1), temperature(5)), golden) == tokens{0, 1, 2, 3});
  CHECK(survivors(chain(temperature(5), min_p(0.1)), golden) == tokens{0, 1, 2, 3, 4, 5});
}

TEST_CASE("a constant added to all logits does not change what min_p keeps", "[processors]") {
  for (const float shift : {-65536.0F, -300.0F, 300.0F, 65536.0F}) {
    row shifted = golden;
    for (float& z : shifted) z += shift;
    CHECK(survivors(min_p(0.1), shifted) == tokens{0, 1, 2, 3});
    CHECK(survivors(min_p(0.2), shifted) == tokens{0, 1, 2});
  }
  CHECK(survivors(min_p(0.1), row(4, -1000.0F)).size() == 4);
}

TEST_CASE("min_p keeps min_keep tokens", "[processors]") {
  CHECK(survivors(min_p(1, 3), golden) == tokens{0, 1, 2});
  CHECK(survivors(min_p(0.1, 2), golden) == tokens{0, 1, 2, 3});
  CHECK(survivors(min_p(1, 0), golden) == tokens{0});
  CHECK(survivors(min_p(1, 50), golden).size() == 6);
}

TEST_CASE("min_p is idempotent", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(40, seed);
    CHECK(survivors(chain(min_p(0.1), min_p(0.1)), logits) == survivors(min_p(0.1), logits));
  }
}

TEST_CASE("min_p 1 is greedy where the maximum is unique", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(40, seed);
    CHECK(survivors(min_p(1), logits) == survivors(decant::top_k(1), logits));
  }
}

TEST_CASE("a tiny p still has its threshold", "[processors]") {
  CHECK(survivors(min_p(1e-300), {0, -690, -691}) == tokens{0, 1});
  // ln of the smallest double is -744.4.
  CHECK(survivors(min_p(denormal), {0, -744, -745}) == tokens{0, 1});
}

TEST_CASE("min_p refuses what is not in [0, 1] (llama.cpp PR13822)", "[processors]") {
  for (const double bad : {not_a_number, -infinity, infinity, -1.0, -denormal, std::nextafter(1.0, 2.0), 1.5}) {
    check_rejects<min_p>(bad, "min_p", "p", "must lie in [0, 1]");
  }
  for (const double good : {0.0, -0.0, denormal, 0.05, std::nextafter(1.0, 0.0), 1.0}) check_accepts<min_p>(good);
  CHECK(min_p::make(0.5, std::size_t{3}).has_value());
  CHECK(min_p(0.05).describe() == "min_p(0.05)");
}

TEST_CASE("min_p on all sizes and on bad rows", "[processors]") {
  for (const double p : {0.0, 0.05, 1.0}) {
    check_sizes(min_p(p));
    check_bad_rows(min_p(p));
  }
}

TEST_CASE("min_p passes check_processor", "[processors]") {
  for (const double p : {0.0, 0.05, 0.5, 1.0}) {
    check_report_of(min_p(p), {.shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace min_p_tests
