// SPDX-License-Identifier: MIT
#include <decant/processors/typical.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace typical_tests {

using namespace policies;
using decant::chain;
using decant::ties;
using decant::typical;

/// The definition, from probabilities in double.
tokens reference_survivors(const row& logits, double p) {
  const law full = reference::exact_law(logits);
  const double entropy = reference::entropy(full);
  tokens order;
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (full[i] > 0) order.push_back(static_cast<token_id>(i));
  }
  const auto distance = [&](token_id id) { return std::abs(-std::log(full[static_cast<std::size_t>(id)]) - entropy); };
  std::ranges::stable_sort(order, {}, distance);
  double mass = 0;
  std::size_t kept = 0;
  while (kept < order.size() && (kept == 0 || mass < p)) mass += full[static_cast<std::size_t>(order[kept++])];
  order.resize(kept);
  std::ranges::sort(order);
  return order;
}

TEST_CASE("typical has the golden sets of methods.md N", "[processors]") {
  CHECK(survivors(typical(0.2), golden) == tokens{1});
  CHECK(survivors(typical(0.5), golden) == tokens{0, 1});
  CHECK(survivors(typical(0.9), golden) == tokens{0, 1, 2, 3});
}

TEST_CASE("typical may exclude the argmax (methods.md B5)", "[processors]") {
  // In float logits five times .1 is a rounding short of .5.
  CHECK(survivors(typical(0.4999999), logs({0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1})) == tokens{1, 2, 3, 4, 5});
  CHECK(survivors(typical(0.5), logs({0.9, 0.02, 0.02, 0.02, 0.02, 0.02})) == tokens{0});
  // llama.cpp's own cases.
  CHECK(survivors(typical(0.5), logs({0.97, 0.01, 0.01, 0.01})) == tokens{0});
  CHECK(survivors(typical(0.5), logs({0.4, 0.2, 0.2, 0.2})) == tokens{1, 2, 3});
  // So a greedy decoder must not leave it out.
  CHECK(!is_argmax_invariant(typical(0.5)));
}

TEST_CASE("equal distances go by lower id", "[processors]") {
  CHECK(survivors(typical(0.5), row(8, 0.0F)) == tokens{0, 1, 2, 3});
  CHECK(survivors(typical(0.1), row(8, -1000.0F)) == tokens{0});
}

TEST_CASE("typical equals its definition, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    row logits = random_row(60, seed);
    logits[9] = gone;
    for (const double p : {0.05, 0.2, 0.5, 0.9, 0.99}) {
      const tokens expected = reference_survivors(logits, p);
      CHECK(survivors(typical(p), logits) == expected);
      row kept(logits.size(), gone);
      for (const token_id id : expected) kept[static_cast<std::size_t>(id)] = logits[static_cast<std::size_t>(id)];
      CHECK(difference(enumerated_law(typical(p), logits), reference::exact_law(kept)) < of_float);
    }
  }
}

TEST_CASE("HF's cases: typical_p.json", "[processors]") {
  const row g8{2.5F, -1.25F, 0.75F, 3, 0, -2, 1.5F, 0.25F};
  for (const ties how : {ties::lower_id, ties::keep}) {
    CHECK(survivors(typical(0.2, 1, how), g8) == tokens{0});
    CHECK(survivors(typical(0.5, 1, how), g8) == tokens{0, 3});
    CHECK(survivors(typical(0.9, 1, how), g8) == tokens{0, 2, 3, 6});
    CHECK(survivors(typical(0.5, 1, how), {0, 0, 0, 50, 0, 0, 0, 0}) == tokens{3});
    CHECK(survivors(typical(0.5, 1, how), {gone, gone, gone, gone, gone, 1.25F, gone, gone}) == tokens{5});
    CHECK(survivors(typical(0.95, 1, how), {2, gone, 1, gone, 3, gone, 0, 0.5F}) == tokens{0, 2, 4, 7});
    CHECK(survivors(typical(0.6, 1, how), {-3.5F, -0.5F, -7.25F, -1, -12, -0.75F, -2.5F, -4, -1.5F, -9, -0.25F, -6}) ==
          tokens{1, 3, 5, 10});
    CHECK(survivors(typical(0.4, 1, how), {0.5F, 4, -0.5F, 3.5F, 3, -4, 2.75F, 0, 1.25F, -1.5F}) == tokens{3, 4});
  }
  CHECK(survivors(typical(0.5, 1, ties::keep), row(8, 0.0F)).size() == 8);
}

TEST_CASE("ties::keep keeps all tokens as far from the entropy as the last", "[processors]") {
  const row logits = logs({0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1});
  CHECK(survivors(typical(0.25, 1, ties::keep), logits) == tokens{1, 2, 3, 4, 5, 6});
  CHECK(survivors(typical(0.25), logits) == tokens{1, 2, 3});
  CHECK(survivors(typical(0, 1, ties::keep), logits) == tokens{1, 2, 3, 4, 5, 6});
  CHECK(survivors(typical(0.25, 7, ties::keep), logits).size() == 7);
  // What only min_keep lets stay brings no others along.
  CHECK(survivors(typical(0.2, 3, ties::keep), logs({0.3, 0.3, 0.1, 0.1, 0.1, 0.1})) == tokens{0, 1, 2});
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row random = random_row(50, seed);
    for (const double p : {0.1, 0.5, 0.9})
      CHECK(survivors(typical(p, 1, ties::keep), random) == survivors(typical(p), random));
  }
}

TEST_CASE("typical keeps min_keep tokens, the most typical ones", "[processors]") {
  CHECK(survivors(typical(0.2, 2), golden) == tokens{0, 1});
  CHECK(survivors(typical(0.2, 3), golden) == tokens{0, 1, 2});
  CHECK(survivors(typical(0, 0), golden) == tokens{1});
  CHECK(survivors(typical(0.2, 50), golden).size() == 6);
}

TEST_CASE("entropy and mass are those of the tokens left", "[processors]") {
  const row logits = logs({0.4, 0.3, 0.2, 0.1});
  CHECK(survivors(chain(decant::top_k(2), typical(0.5)), logits) ==
        reference_survivors(logs({0.4 / 0.7, 0.3 / 0.7}), 0.5));
}

TEST_CASE("typical after temperatures and shifts", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const row logits = random_row(40, seed);
    for (const double t : {0.3, 0.9, 2.0}) {
      const auto raised = [](candidates& c, const step_context&) { c.affine(1, 1e6); };
      const tokens left = survivors(chain(decant::temperature(t), typical(0.6)), logits);
      CHECK(survivors(chain(decant::temperature(t), raised, typical(0.6)), logits) == left);
      CHECK(survivors(chain(decant::temperature(t), raised, typical(0.6, 1, ties::keep)), logits) == left);
    }
    const auto best = static_cast<token_id>(std::ranges::max_element(logits) - logits.begin());
    CHECK(survivors(chain(decant::temperature(1e-12), typical(0.6)), logits) == tokens{best});
    CHECK(survivors(chain(decant::temperature(1e-12), typical(0.6, 1, ties::keep)), logits) == tokens{best});
  }
}

TEST_CASE("an entropy with gone and vanishing tokens is finite (trl#7221)", "[processors]") {
  CHECK(survivors(typical(0.5), {0, gone}) == tokens{0});
  CHECK(survivors(typical(0.9), {0, -2000, gone}) == tokens{0});
}

TEST_CASE("p >= 1 is off bit for bit", "[processors]") {
  for (const double p : {1.0, 1.5, infinity}) {
    CHECK(typical(p).off());
    check_identity(typical(p));
    check_identity(typical(p, 1, ties::keep));
  }
  CHECK(!typical(0.999).off());
}

TEST_CASE("typical refuses what is not a number >= 0", "[processors]") {
  for (const double bad : {not_a_number, -infinity, -1.0, -denormal}) {
    check_rejects<typical>(bad, "typical", "p", "must be a number >= 0");
  }
  for (const double good : {0.0, -0.0, denormal, 0.2, 1.0, infinity}) check_accepts<typical>(good);
  CHECK(typical::make(0.5, std::size_t{3}, ties::keep).has_value());
  CHECK(typical(0.2).describe() == "typical(0.2)");
}

TEST_CASE("typical on all sizes and on bad rows", "[processors]") {
  for (const double p : {0.0, 0.9}) {
    for (const ties how : {ties::lower_id, ties::keep}) {
      check_sizes(typical(p, 1, how));
      check_bad_rows(typical(p, 1, how));
    }
  }
}

TEST_CASE("typical passes check_processor", "[processors]") {
  for (const double p : {0.2, 0.95}) {
    check_report_of(typical(p),
                    {.permutation = false, .shift_invariant = true, .allocations = decant::testing::allocations});
    check_report_of(typical(p, 1, ties::keep), {.shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace typical_tests
