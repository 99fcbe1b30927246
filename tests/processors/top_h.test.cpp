// SPDX-License-Identifier: MIT
#include <decant/processors/top_h.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace top_h_tests {

using namespace policies;
using decant::chain;
using decant::top_h;
using decant::top_h_rule;

/// The definition, from probabilities in double: renormalises each set and takes its entropy.
tokens reference_survivors(const row& logits, double alpha) {
  const law full = reference::exact_law(logits);
  const double allowed = alpha * reference::entropy(full);
  const auto order = reference::descending(reference::widened(logits));
  std::size_t kept = 1;
  for (; kept < order.size(); ++kept) {
    law set;
    double mass = 0;
    for (std::size_t i = 0; i <= kept; ++i) {
      set.push_back(full[order[i]]);
      mass += full[order[i]];
    }
    for (double& p : set) p /= mass;
    if (reference::entropy(set) > allowed) break;
  }
  tokens ids;
  for (std::size_t i = 0; i < kept; ++i) ids.push_back(static_cast<token_id>(order[i]));
  std::ranges::sort(ids);
  return ids;
}

TEST_CASE("top_h equals its definition, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    row logits = random_row(60, seed);
    logits[9] = gone;
    for (const double alpha : {0.1, 0.4, 0.7, 0.95}) {
      const tokens expected = reference_survivors(logits, alpha);
      CHECK(survivors(top_h(alpha), logits) == expected);
      row kept(logits.size(), gone);
      for (const token_id id : expected) kept[static_cast<std::size_t>(id)] = logits[static_cast<std::size_t>(id)];
      CHECK(difference(enumerated_law(top_h(alpha), logits), reference::exact_law(kept)) < of_float);
    }
  }
  const row large = random_row(6000, 2);
  CHECK(survivors(top_h(0.9), large) == reference_survivors(large, 0.9));
}

TEST_CASE("the entropy of what top_h keeps is bounded, and one more token would be too much", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(300, seed);
    const double all = reference::entropy(reference::exact_law(logits));
    for (const double alpha : {0.2, 0.4, 0.8}) {
      const std::size_t kept = survivors(top_h(alpha), logits).size();
      const auto entropy_of = [&](std::size_t k) {
        return reference::entropy(law_after(decant::top_k(static_cast<std::int64_t>(k)), logits));
      };
      CHECK((kept == 1 || entropy_of(kept) <= alpha * all + 1e-5));
      CHECK(entropy_of(kept + 1) > alpha * all - 1e-5);
    }
  }
}

TEST_CASE("k equal tokens have entropy ln k", "[processors]") {
  // 16 tokens, ln 16 = 4 ln 2: a half allows ln 4, a quarter ln 2.
  CHECK(survivors(top_h(0.51), row(16, 1.0F)) == tokens{0, 1, 2, 3});
  CHECK(survivors(top_h(0.49), row(16, 1.0F)) == tokens{0, 1, 2});
  CHECK(survivors(top_h(0.26), row(16, -1000.0F)) == tokens{0, 1});
  CHECK(survivors(top_h(0.24), row(16, 1.0F)) == tokens{0});
}

TEST_CASE("alpha = 0 keeps the argmax, also where the entropy vanishes", "[processors]") {
  for (const double alpha : {0.0, -0.0, denormal, 1e-9}) {
    CHECK(survivors(top_h(alpha), golden) == tokens{0});
    CHECK(survivors(top_h(alpha), {1, 5, 5}) == tokens{1});
  }
  // Three tokens of e^-50 share what little entropy there is.
  CHECK(survivors(top_h(0.3), {0, 50, 0, 0}) == tokens{1});
  CHECK(survivors(top_h(0.4), {0, 50, 0, 0}) == tokens{0, 1});
  for (const double alpha : {0.0, 0.4, 0.9}) {
    CHECK(survivors(top_h(alpha), {0, 2000, -5, gone}) == tokens{1});
    CHECK(survivors(top_h(alpha), {0, 700, -5, gone}) == tokens{1});
    CHECK(survivors(top_h(alpha), {gone, 1, gone}) == tokens{1});
  }
}

TEST_CASE("HF's rule: top_h.json", "[processors]") {
  const auto hf = [](double alpha) { return top_h(alpha, 1, top_h_rule::hf); };
  const row g8{2.5F, -1.25F, 0.75F, 3, 0, -2, 1.5F, 0.25F};
  CHECK(survivors(hf(0.4), g8) == tokens{3});
  CHECK(survivors(hf(0.05), g8) == tokens{3});
  CHECK(survivors(hf(1), g8).size() == 8);
  CHECK(survivors(hf(0.5), {1, 2, 3, 50, 4, 5, 6, 0}) == tokens{3});
  CHECK(survivors(hf(0.5), {gone, gone, gone, gone, gone, 1.25F, gone, gone}) == tokens{5});
  CHECK(survivors(hf(0.7), {-3.5F, -0.5F, -7.25F, -1, -12, -0.75F, -2.5F, -4, -1.5F, -9, -0.25F, -6}) ==
        tokens{1, 5, 10});
  CHECK(survivors(hf(0.55), {0.5F, 4, -0.5F, 3.5F, 3, -4, 2.75F, 0, 1.25F, -1.5F}) == tokens{1, 3});
  // A peaked row keeps tail tokens, because its first token carries next to no entropy; the paper's rule does so too.
  const row peak64{0.046875F,  0.5F,       -1,         0.6875F,    -0.421875F, -1.578125F, -0.640625F, 0.59375F,
                   0.328125F,  -1.140625F, 0.625F,     -0.09375F,  0.421875F,  0.328125F,  -1.15625F,  0.34375F,
                   -0.609375F, 20,         0.71875F,   0.046875F,  -0.984375F, 0.046875F,  0.15625F,   -1.203125F,
                   2.21875F,   0.390625F,  1.6875F,    -1.109375F, 1.640625F,  -1.359375F, -0.65625F,  0.546875F,
                   0.046875F,  -2.359375F, -1.109375F, 0.84375F,   2.09375F,   0.921875F,  -0.28125F,  0.796875F,
                   -1.140625F, 0.515625F,  -1.34375F,  -0.015625F, -0.125F,    0.796875F,  -0.296875F, 1.203125F,
                   -0.203125F, 0.84375F,   0.78125F,   -1.84375F,  0.03125F,   0.03125F,   -0.78125F,  0.171875F,
                   -1.453125F, 0.5625F,    0.515625F,  0.296875F,  2.484375F,  0.359375F,  0.0625F,    -0.734375F};
  CHECK(survivors(hf(0.4), peak64) == tokens{17, 24, 26, 28, 36, 60});
  CHECK(survivors(top_h(0.4), peak64) == reference_survivors(peak64, 0.4));
}

TEST_CASE("HF's rule looks at the first 100 tokens only", "[processors]") {
  const auto hf = top_h(0.999999, 1, top_h_rule::hf);
  CHECK(survivors(hf, row(150, 2.0F)).size() <= 100);
  CHECK(survivors(hf, row(150, 2.0F)).size() >= 99);
  CHECK(survivors(top_h(0.5, 1, top_h_rule::hf), row(150, 2.0F)).size() == 50);
  CHECK(survivors(top_h(0.5, 120, top_h_rule::hf), row(150, 2.0F)).size() == 120);
}

TEST_CASE("top_h keeps min_keep tokens", "[processors]") {
  CHECK(survivors(top_h(0, 3), golden) == tokens{0, 1, 2});
  CHECK(survivors(top_h(0, 0), golden) == tokens{0});
  CHECK(survivors(top_h(0.9, 2), golden) == survivors(top_h(0.9), golden));
  CHECK(survivors(top_h(0, 50), golden).size() == 6);
}

TEST_CASE("top_h sees temperature, and the tokens left", "[processors]") {
  const row logits = random_row(60, 4);
  row kept(logits.size(), gone);
  for (const token_id id : survivors(decant::top_k(10), logits))
    kept[static_cast<std::size_t>(id)] = logits[static_cast<std::size_t>(id)];
  CHECK(survivors(chain(decant::top_k(10), top_h(0.5)), logits) == reference_survivors(kept, 0.5));
  CHECK(survivors(chain(decant::temperature(2), top_h(0.5)), logits) ==
        reference_survivors(logits_after(decant::temperature(2), logits), 0.5));
}

TEST_CASE("top_h is right after extreme temperatures and shifts", "[processors]") {
  for (const double by : {-1e18, -1e12, 1e12, 1e18}) {
    const auto shifted = [=](candidates& c, const step_context&) { c.affine(1, by); };
    for (const double alpha : {0.3, 0.6, 0.9}) {
      CHECK(survivors(chain(shifted, top_h(alpha)), golden) == survivors(top_h(alpha), golden));
      CHECK(survivors(chain(shifted, top_h(alpha, 1, top_h_rule::hf)), golden) ==
            survivors(top_h(alpha, 1, top_h_rule::hf), golden));
    }
  }
  for (const top_h_rule rule : {top_h_rule::paper, top_h_rule::hf}) {
    CHECK(survivors(chain(decant::temperature(1e-12), top_h(0.4, 1, rule)), {1000, 999, 1000.5F, 3}) == tokens{2});
  }
}

TEST_CASE("alpha >= 1 is off bit for bit", "[processors]") {
  for (const double alpha : {1.0, 1.5, infinity}) {
    CHECK(top_h(alpha).off());
    check_identity(top_h(alpha));
    check_identity(top_h(alpha, 1, top_h_rule::hf));
  }
  CHECK(!top_h(0.999).off());
}

TEST_CASE("top_h refuses what is not a number >= 0", "[processors]") {
  for (const double bad : {not_a_number, -infinity, -1.0, -denormal}) {
    check_rejects<top_h>(bad, "top_h", "alpha", "must be a number >= 0");
  }
  for (const double good : {0.0, -0.0, denormal, 0.4, 1.0, infinity}) check_accepts<top_h>(good);
  CHECK(top_h::make(0.5, std::size_t{3}, top_h_rule::hf).has_value());
  CHECK(top_h(0.4).describe() == "top_h(0.4)");
}

TEST_CASE("top_h on all sizes and on bad rows", "[processors]") {
  for (const double alpha : {0.0, 0.4}) {
    for (const top_h_rule rule : {top_h_rule::paper, top_h_rule::hf}) {
      check_sizes(top_h(alpha, 1, rule));
      check_bad_rows(top_h(alpha, 1, rule));
    }
  }
}

TEST_CASE("top_h passes check_processor", "[processors]") {
  for (const top_h_rule rule : {top_h_rule::paper, top_h_rule::hf}) {
    check_report_of(top_h(0.4, 1, rule),
                    {.permutation = false, .shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace top_h_tests
