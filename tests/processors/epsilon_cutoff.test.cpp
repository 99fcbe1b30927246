// SPDX-License-Identifier: MIT
#include <decant/processors/epsilon_cutoff.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace epsilon_cutoff_tests {

using namespace policies;
using decant::chain;
using decant::epsilon_cutoff;
using decant::ties;

TEST_CASE("epsilon_cutoff has the golden sets of methods.md N", "[processors]") {
  CHECK(survivors(epsilon_cutoff(0.05), golden) == tokens{0, 1, 2, 3});
  CHECK(survivors(epsilon_cutoff(0.02), golden) == tokens{0, 1, 2, 3, 4});
}

TEST_CASE("HF's cases: epsilon_cutoff.json", "[processors]") {
  const row g8{2.5F, -1.25F, 0.75F, 3, 0, -2, 1.5F, 0.25F};
  CHECK(survivors(epsilon_cutoff(0.1), g8) == tokens{0, 3, 6});
  CHECK(survivors(epsilon_cutoff(0.001), g8).size() == 8);
  CHECK(survivors(epsilon_cutoff(0.9), g8) == tokens{3});
  CHECK(survivors(epsilon_cutoff(0.3), {0, 0, 0, 50, 0, 0, 0, 0}) == tokens{3});
  CHECK(survivors(epsilon_cutoff(0.05), {2, gone, 1, gone, 3, gone, 0, 0.5F}) == tokens{0, 2, 4, 7});
  CHECK(survivors(epsilon_cutoff(0.1), {-3.5F, -0.5F, -7.25F, -1, -12, -0.75F, -2.5F, -4, -1.5F, -9, -0.25F, -6}) ==
        tokens{1, 3, 5, 10});
  // Level with the largest, and below the threshold: HF keeps both, decant the lower id.
  const row level{1, 1, 1, 2, 2, 0, 0, -1};
  CHECK(survivors(epsilon_cutoff(0.9), level) == tokens{3});
  CHECK(survivors(epsilon_cutoff(0.9, 1, ties::keep), level) == tokens{3, 4});
  CHECK(survivors(epsilon_cutoff(0.9, 3), level) == tokens{0, 3, 4});
  CHECK(survivors(epsilon_cutoff(0.9, 3, ties::keep), level) == tokens{0, 1, 2, 3, 4});
}

TEST_CASE("a probability of exactly epsilon is kept, at any height", "[processors]") {
  for (const float height : {0.0F, 3.0F, -1000.0F, 65536.0F, 1e30F}) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{8}, std::size_t{1024}}) {
      const double p = 1.0 / static_cast<double>(size);
      CHECK(survivors(epsilon_cutoff(p), row(size, height)).size() == size);
      if (size > 1) CHECK(survivors(epsilon_cutoff(p * (1 + 1e-9)), row(size, height)) == tokens{0});
    }
  }
}

TEST_CASE("epsilon_cutoff equals its definition, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    row logits = random_row(60, seed);
    logits[9] = gone;
    const law full = reference::exact_law(logits);
    for (const double epsilon : {3e-4, 4e-3, 0.05, 0.2}) {
      row kept = logits;
      for (std::size_t i = 0; i < kept.size(); ++i) {
        if (full[i] < epsilon) kept[i] = gone;
      }
      if (std::ranges::all_of(kept, decant::is_gone)) continue;
      CHECK(difference(enumerated_law(epsilon_cutoff(epsilon), logits), reference::exact_law(kept)) < of_float);
    }
  }
}

TEST_CASE("where nothing reaches epsilon the argmax stays", "[processors]") {
  CHECK(survivors(epsilon_cutoff(0.5), {1, 1.1F, 1}) == tokens{1});
  CHECK(survivors(epsilon_cutoff(1), golden) == tokens{0});
  CHECK(survivors(epsilon_cutoff(1), {1, gone, gone}) == tokens{0});
}

TEST_CASE("epsilon_cutoff keeps min_keep tokens", "[processors]") {
  CHECK(survivors(epsilon_cutoff(0.5, 3), golden) == tokens{0, 1, 2});
  CHECK(survivors(epsilon_cutoff(0.05, 2), golden) == tokens{0, 1, 2, 3});
  CHECK(survivors(epsilon_cutoff(1, 0), golden) == tokens{0});
  CHECK(survivors(epsilon_cutoff(1, 50), golden).size() == 6);
}

TEST_CASE("epsilon_cutoff: probabilities are those of the tokens left", "[processors]") {
  const row logits = logs({0.4, 0.3, 0.2, 0.1});
  CHECK(survivors(epsilon_cutoff(0.41), logits) == tokens{0});
  CHECK(survivors(chain(decant::top_k(2), epsilon_cutoff(0.41)), logits) == tokens{0, 1});
}

TEST_CASE("epsilon_cutoff is right after extreme temperatures and shifts", "[processors]") {
  const auto shifted = [](double by) { return [=](candidates& c, const step_context&) { c.affine(1, by); }; };
  for (const double by : {-1e18, -1e12, 1e12, 1e18}) {
    CHECK(survivors(chain(shifted(by), epsilon_cutoff(0.05)), golden) == tokens{0, 1, 2, 3});
    CHECK(survivors(chain(shifted(by), epsilon_cutoff(0.25)), row(4, 1.0F)).size() == 4);
  }
  CHECK(survivors(chain(decant::temperature(1e-12), epsilon_cutoff(0.05)), {1000, 999, 1000}) == tokens{0, 2});
  CHECK(survivors(chain(decant::temperature(1e12), epsilon_cutoff(0.3)), {1000, 999, 1000}) == tokens{0, 1, 2});
  CHECK(survivors(chain(decant::temperature(1e12), epsilon_cutoff(0.34)), {1000, 999, 1000}) == tokens{0});
}

TEST_CASE("epsilon 0 is off bit for bit", "[processors]") {
  for (const double zero : {0.0, -0.0}) {
    CHECK(epsilon_cutoff(zero).off());
    check_identity(epsilon_cutoff(zero));
  }
  CHECK(!epsilon_cutoff(denormal).off());
  CHECK(survivors(epsilon_cutoff(denormal), {0, -744, -745}) == tokens{0, 1});
}

TEST_CASE("epsilon_cutoff refuses what is not in [0, 1]", "[processors]") {
  for (const double bad : {not_a_number, -infinity, infinity, -1.0, -denormal, std::nextafter(1.0, 2.0)}) {
    check_rejects<epsilon_cutoff>(bad, "epsilon_cutoff", "epsilon", "must lie in [0, 1]");
  }
  for (const double good : {0.0, -0.0, denormal, 3e-4, 1.0}) check_accepts<epsilon_cutoff>(good);
  CHECK(epsilon_cutoff::make(0.5, std::size_t{3}, ties::keep).has_value());
  CHECK(epsilon_cutoff(0.05).describe() == "epsilon_cutoff(0.05)");
}

TEST_CASE("epsilon_cutoff on all sizes and on bad rows", "[processors]") {
  for (const double epsilon : {3e-4, 0.1, 1.0}) {
    check_sizes(epsilon_cutoff(epsilon));
    check_bad_rows(epsilon_cutoff(epsilon, 2, ties::keep));
    check_bad_rows(epsilon_cutoff(epsilon));
  }
}

TEST_CASE("epsilon_cutoff passes check_processor", "[processors]") {
  for (const double epsilon : {3e-4, 0.05}) {
    check_report_of(epsilon_cutoff(epsilon, 1, ties::keep),
                    {.shift_invariant = true, .allocations = decant::testing::allocations});
  }
  check_report_of(epsilon_cutoff(0.9),
                  {.permutation = false, .shift_invariant = true, .allocations = decant::testing::allocations});
}

}  // namespace epsilon_cutoff_tests
