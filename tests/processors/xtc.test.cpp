// SPDX-License-Identifier: MIT
#include <decant/processors/xtc.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace xtc_tests {

using namespace policies;
using decant::chain;
using decant::xtc;

const row four = logs({0.4, 0.3, 0.2, 0.1});

TEST_CASE("all above the threshold go but the least probable of them (llama.cpp's own cases)", "[processors]") {
  CHECK(survivors(xtc(1, 0.09), four) == tokens{3});
  CHECK(survivors(xtc(1, 0.19), four) == tokens{2, 3});
  CHECK(survivors(xtc(1, 0.29), four) == tokens{1, 2, 3});
  CHECK(survivors(xtc(1, 0.39), four) == tokens{0, 1, 2, 3});
  CHECK(survivors(xtc(1, 0.5), four) == tokens{0, 1, 2, 3});
}

TEST_CASE("fewer than two tokens above the threshold: nothing happens", "[processors]") {
  CHECK(same_bits(logits_after(xtc(1, 0.35), four), four));
  CHECK(same_bits(logits_after(xtc(1, 0.5), {50, 0, 0}), {50, 0, 0}));
  CHECK(same_bits(logits_after(xtc(1, 0.3), row(8, 1.0F)), row(8, 1.0F)));
  CHECK(survivors(xtc(1, 0), {gone, 4, gone}) == tokens{1});
}

TEST_CASE("a probability of exactly the threshold qualifies, at any height", "[processors]") {
  for (const float height : {0.0F, 3.0F, -1000.0F, 65536.0F}) {
    CHECK(survivors(xtc(1, 0.5), {height, height}) == tokens{1});
    CHECK(survivors(xtc(1, 0.25), row(4, height)) == tokens{3});
    CHECK(survivors(xtc(1, 0.2500001), row(4, height)).size() == 4);
  }
}

TEST_CASE("of equally least probable tokens the highest id stays", "[processors]") {
  CHECK(survivors(xtc(1, 0.19), logs({0.2, 0.4, 0.2, 0.2})) == tokens{3});
}

TEST_CASE("threshold 0 leaves the least probable token", "[processors]") {
  CHECK(survivors(xtc(1, 0), golden) == tokens{5});
  CHECK(survivors(xtc(1, 0), random_row(300, 1)).size() == 1);
}

TEST_CASE("the law is the mixture (1 - probability) p + probability p_cut, by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    row logits = random_row(30, seed);
    logits[4] = gone;
    for (const double threshold : {0.0, 0.02, 0.1, 0.3}) {
      const law full = reference::exact_law(logits);
      std::vector<std::size_t> above;
      for (const std::size_t id : reference::descending(reference::widened(logits))) {
        if (full[id] >= threshold) above.push_back(id);
      }
      row cut = logits;
      for (std::size_t i = 0; i + 1 < above.size(); ++i) cut[above[i]] = gone;
      const law less = reference::exact_law(cut);
      for (const double probability : {0.0, 0.3, 0.5, 1.0}) {
        law expected(full.size());
        for (std::size_t i = 0; i < full.size(); ++i) expected[i] = (1 - probability) * full[i] + probability * less[i];
        CHECK(difference(enumerated_law(xtc(probability, threshold), logits), expected) < of_float);
      }
    }
  }
}

TEST_CASE("the coin is tossed afresh at each position and equally for equal keys", "[processors]") {
  int cut = 0;
  for (std::size_t length = 0; length < 2000; ++length) {
    const past before{tokens(length, 1), 0};
    const tokens left = survivors(xtc(0.5, 0.09), four, before);
    CHECK((left == tokens{3} || left.size() == 4));
    CHECK(survivors(xtc(0.5, 0.19), four, before).size() == (left.size() == 4 ? 4U : 2U));
    cut += left.size() == 1;
  }
  CHECK(cut > 900);
  CHECK(cut < 1100);
}

TEST_CASE("protected ids are never removed (textgen PR6335)", "[processors]") {
  CHECK(survivors(xtc(1, 0.09, {0}), four) == tokens{0, 3});
  CHECK(survivors(xtc(1, 0.09, {2, 0}), four) == tokens{0, 2, 3});
  CHECK(survivors(xtc(1, 0.09, {3}), four) == tokens{3});
  CHECK(survivors(xtc(1, 0.09, {0, 1, 2}), four).size() == 4);
  CHECK(survivors(xtc(1, 0.09, {9999, -4}), four) == tokens{3});
}

TEST_CASE("xtc leaves min_keep tokens or does nothing", "[processors]") {
  CHECK(survivors(xtc(1, 0.19, {}, 2), four) == tokens{2, 3});
  CHECK(survivors(xtc(1, 0.19, {}, 3), four).size() == 4);
  CHECK(survivors(xtc(1, 0.19, {}, 0), four) == tokens{2, 3});
  CHECK(survivors(xtc(1, 0.19, {0}, 3), four) == tokens{0, 2, 3});
  CHECK(survivors(xtc(1, 0.19, {}, 50), four).size() == 4);
}

TEST_CASE("xtc: probabilities are those of the tokens left", "[processors]") {
  CHECK(survivors(xtc(1, 0.42), four).size() == 4);
  CHECK(survivors(chain(decant::top_k(2), xtc(1, 0.42)), four) == tokens{1});
}

TEST_CASE("xtc is right after extreme temperatures and shifts", "[processors]") {
  const auto shifted = [](double by) { return [=](candidates& c, const step_context&) { c.affine(1, by); }; };
  for (const double by : {-1e18, -1e12, 1e12, 1e18}) {
    CHECK(survivors(chain(shifted(by), xtc(1, 0.19)), four) == tokens{2, 3});
    CHECK(survivors(chain(shifted(by), xtc(1, 0.25)), row(4, 1.0F)) == tokens{3});
  }
  CHECK(survivors(chain(decant::temperature(1e-12), xtc(1, 0.1)), {1000, 999, 1000}) == tokens{1, 2});
  CHECK(survivors(chain(decant::temperature(1e12), xtc(1, 0.1)), {1000, 999, 1000}) == tokens{1});
}

TEST_CASE("probability 0 and a threshold above 0.5 are off bit for bit", "[processors]") {
  for (const xtc& policy : {xtc(0), xtc(-0.0, 0), xtc(1, 0.6), xtc(1, std::nextafter(0.5, 1.0)), xtc(0.5, infinity)}) {
    CHECK(policy.off());
    check_identity(policy);
  }
  CHECK(!xtc(1, 0.5).off());
  CHECK(!xtc(denormal).off());
}

TEST_CASE("xtc refuses bad parameters", "[processors]") {
  for (const double bad : {not_a_number, -infinity, infinity, -1.0, -denormal, std::nextafter(1.0, 2.0)}) {
    check_rejects<xtc>(bad, "xtc", "probability", "must lie in [0, 1]");
  }
  for (const double good : {0.0, -0.0, denormal, 0.5, 1.0}) check_accepts<xtc>(good);
  for (const double bad : {not_a_number, -infinity, -0.1, -denormal}) {
    const std::string expected = "xtc: threshold = " + decant::detail::number_text(bad) + " must be a number >= 0";
    CHECK(complaint([&] { return xtc(0.5, bad); }) == expected);
    CHECK(xtc::make(0.5, bad).error().message == expected);
    CHECK(xtc::make(0.5, bad).error().where == "xtc.threshold");
  }
  CHECK(xtc::make(0.5, 0.1, tokens{1, 2}, std::size_t{2}).has_value());
  CHECK(xtc(0.5, 0.1).describe() == "xtc(0.5, 0.1)");
}

TEST_CASE("xtc on all sizes and on bad rows", "[processors]") {
  for (const double threshold : {0.05, 0.1}) {
    check_sizes(xtc(0.5, threshold));
    check_sizes(xtc(1, threshold, {0}));
    check_bad_rows(xtc(1, threshold));
  }
}

TEST_CASE("xtc passes check_processor", "[processors]") {
  check_report_of(xtc(0.5, 0.1),
                  {.permutation = false, .shift_invariant = true, .allocations = decant::testing::allocations});
  check_report_of(xtc(1, 0.02),
                  {.permutation = false, .shift_invariant = true, .allocations = decant::testing::allocations});
}

}  // namespace xtc_tests
