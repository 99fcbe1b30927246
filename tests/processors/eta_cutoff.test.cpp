// SPDX-License-Identifier: MIT
#include <decant/processors/eta_cutoff.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/epsilon_cutoff.hpp>
#include <decant/processors/temperature.hpp>

namespace eta_cutoff_tests {

using namespace policies;
using decant::chain;
using decant::epsilon_cutoff;
using decant::eta_cutoff;
using decant::ties;

TEST_CASE("eta_cutoff has the golden sets of methods.md N", "[processors]") {
  CHECK(survivors(eta_cutoff(0.05), golden) == tokens{0, 1, 2, 3});
  CHECK(survivors(eta_cutoff(0.02), golden) == tokens{0, 1, 2, 3, 4});
}

TEST_CASE("HF's cases: eta_cutoff.json", "[processors]") {
  const row g8{2.5F, -1.25F, 0.75F, 3, 0, -2, 1.5F, 0.25F};
  CHECK(survivors(eta_cutoff(0.1), g8) == tokens{0, 3, 6});
  CHECK(survivors(eta_cutoff(0.01), g8) == tokens{0, 2, 3, 4, 6, 7});
  CHECK(survivors(eta_cutoff(0.9), g8) == tokens{0, 3});
  CHECK(survivors(eta_cutoff(0.5), {1, 1, 1, 2, 2, 0, 0, -1}) == tokens{3, 4});
  CHECK(survivors(eta_cutoff(0.2), row(8, 0.0F)).size() == 8);
  CHECK(survivors(eta_cutoff(0.2), {2, gone, 1, gone, 3, gone, 0, 0.5F}) == tokens{0, 4});
  CHECK(survivors(eta_cutoff(0.5), {gone, gone, gone, gone, gone, 1.25F, gone, gone}) == tokens{5});
}

TEST_CASE("eta_cutoff equals its definition, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    row logits = random_row(60, seed);
    logits[9] = gone;
    const law full = reference::exact_law(logits);
    for (const double epsilon : {3e-4, 4e-3, 0.05, 0.2}) {
      const double threshold = std::min(epsilon, std::sqrt(epsilon) * std::exp(-reference::entropy(full)));
      row kept = logits;
      for (std::size_t i = 0; i < kept.size(); ++i) {
        if (full[i] < threshold) kept[i] = gone;
      }
      CHECK(difference(enumerated_law(eta_cutoff(epsilon), logits), reference::exact_law(kept)) < of_float);
    }
  }
}

TEST_CASE("eta_cutoff keeps a superset of epsilon_cutoff", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const row logits = random_row(80, seed);
    for (const double epsilon : {1e-3, 0.02, 0.1}) {
      CHECK(std::ranges::includes(survivors(eta_cutoff(epsilon), logits), survivors(epsilon_cutoff(epsilon), logits)));
    }
  }
}

TEST_CASE("equal tokens are judged by sqrt(epsilon) / n, a certain one by epsilon", "[processors]") {
  // n = 100 and epsilon = 0.05: min(0.05, 0.224 / 100), below 1 / 100.
  CHECK(survivors(eta_cutoff(0.05), row(100, 2.0F)).size() == 100);
  CHECK(survivors(eta_cutoff(1), row(100, 2.0F)).size() == 100);
  CHECK(survivors(eta_cutoff(0.5), {0, -50}) == tokens{0});
  // Entropy 0 with a vanishing second token: the threshold is epsilon itself.
  CHECK(survivors(eta_cutoff(1e-10), {0, -22}) == tokens{0, 1});
  CHECK(survivors(eta_cutoff(1e-9), {0, -22}) == tokens{0});
}

TEST_CASE("eta_cutoff keeps min_keep tokens, ties by lower id or all of them", "[processors]") {
  CHECK(survivors(eta_cutoff(1, 3), golden) == tokens{0, 1, 2});
  CHECK(survivors(eta_cutoff(1, 0), golden) == survivors(eta_cutoff(1), golden));
  CHECK(survivors(eta_cutoff(0.05, 50), golden).size() == 6);
  CHECK(survivors(eta_cutoff(1, 3, ties::keep), {3, 1, 1, 1, 0}) == tokens{0, 1, 2, 3});
  CHECK(survivors(eta_cutoff(1, 3), {3, 1, 1, 1, 0}) == tokens{0, 1, 2});
}

TEST_CASE("eta_cutoff is right after extreme temperatures and shifts", "[processors]") {
  const auto shifted = [](double by) { return [=](candidates& c, const step_context&) { c.affine(1, by); }; };
  for (const double by : {-1e18, -1e12, 1e12, 1e18}) {
    CHECK(survivors(chain(shifted(by), eta_cutoff(0.05)), golden) == tokens{0, 1, 2, 3});
    CHECK(survivors(chain(shifted(by), eta_cutoff(1)), row(100, 1.0F)).size() == 100);
  }
  CHECK(survivors(chain(decant::temperature(1e-12), eta_cutoff(0.05)), {1000, 999, 1000}) == tokens{0, 2});
  CHECK(survivors(chain(decant::temperature(1e12), eta_cutoff(0.05)), {1000, 999, 1000}) == tokens{0, 1, 2});
}

TEST_CASE("an entropy with gone and vanishing tokens is finite (trl#7221, transformers#45413)", "[processors]") {
  CHECK(survivors(eta_cutoff(0.1), {0, gone}) == tokens{0});
  CHECK(survivors(eta_cutoff(0.1), {0, -2000, gone}) == tokens{0});
}

TEST_CASE("epsilon 0 turns eta_cutoff off bit for bit", "[processors]") {
  for (const double zero : {0.0, -0.0}) {
    CHECK(eta_cutoff(zero).off());
    check_identity(eta_cutoff(zero));
  }
  CHECK(!eta_cutoff(denormal).off());
}

TEST_CASE("eta_cutoff refuses what is not in [0, 1]", "[processors]") {
  for (const double bad : {not_a_number, -infinity, infinity, -1.0, -denormal, std::nextafter(1.0, 2.0)}) {
    check_rejects<eta_cutoff>(bad, "eta_cutoff", "epsilon", "must lie in [0, 1]");
  }
  for (const double good : {0.0, -0.0, denormal, 4e-3, 1.0}) check_accepts<eta_cutoff>(good);
  CHECK(eta_cutoff::make(0.5, std::size_t{3}, ties::keep).has_value());
  CHECK(eta_cutoff(0.004).describe() == "eta_cutoff(0.004)");
}

TEST_CASE("eta_cutoff on all sizes and on bad rows", "[processors]") {
  for (const double epsilon : {3e-4, 1.0}) {
    check_sizes(eta_cutoff(epsilon));
    check_bad_rows(eta_cutoff(epsilon, 2, ties::keep));
    check_bad_rows(eta_cutoff(epsilon));
  }
}

TEST_CASE("eta_cutoff passes check_processor", "[processors]") {
  for (const double epsilon : {3e-4, 0.05}) {
    check_report_of(eta_cutoff(epsilon, 1, ties::keep),
                    {.shift_invariant = true, .allocations = decant::testing::allocations});
    check_report_of(eta_cutoff(epsilon), {.shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace eta_cutoff_tests
