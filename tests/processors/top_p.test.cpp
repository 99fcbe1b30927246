// SPDX-License-Identifier: MIT
#include <decant/processors/top_p.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>

namespace top_p_tests {

using namespace policies;
using decant::chain;
using decant::top_k;
using decant::top_p;

tokens reference_survivors(const row& logits, double p) {
  tokens ids;
  for (const std::size_t id : reference::descending(reference::top_p(reference::widened(logits), p))) {
    ids.push_back(static_cast<token_id>(id));
  }
  std::ranges::sort(ids);
  return ids;
}

TEST_CASE("top_p has the golden sets", "[processors]") {
  CHECK(survivors(top_p(0.8), golden) == tokens{0, 1, 2});
  CHECK(survivors(top_p(0.9), golden) == tokens{0, 1, 2, 3});
  CHECK(survivors(top_p(0.95), golden) == tokens{0, 1, 2, 3});
}

TEST_CASE("the token that crosses p is kept (llama.cpp PR1953, esm#360, fish-speech#1171)", "[processors]") {
  CHECK(survivors(top_p(0.8), logs({0.4, 0.3, 0.2, 0.1})) == tokens{0, 1, 2});
  CHECK(survivors(top_p(0.9), logs({0.95, 0.05})) == tokens{0});
}

TEST_CASE("a mass that reaches p exactly is enough (transformers#18976)", "[processors]") {
  // 2 ln 2, ln 2, ln 2, 0 ... in powers of two the masses are exact: 1/2 + 1/4 reaches 3/4.
  const float l = static_cast<float>(std::log(2.0));
  const tokens left = survivors(top_p(0.75), {0, 2 * l, l, 0});
  CHECK(left == reference_survivors({0, 2 * l, l, 0}, 0.75));
  CHECK(survivors(top_p(0.5), {0, 0, 0, 0}) == tokens{0, 1});
  CHECK(survivors(top_p(0.25), {0, 0, 0, 0}) == tokens{0});
  CHECK(survivors(top_p(0.2500001), {0, 0, 0, 0}) == tokens{0, 1});
  // As reported. Rounded to float these logits carry a mass of 0.8000000042, which reaches 0.8.
  const row reported = logs({0.3, 0.1, 0.1, 0.5});
  CHECK(survivors(top_p(0.8), reported) == tokens{0, 3});
  CHECK(survivors(top_p(0.7999), reported) == tokens{0, 3});
  CHECK(survivors(top_p(0.8001), reported) == tokens{0, 1, 3});
}

TEST_CASE("p = 0 keeps the argmax (transformers#23688, simply#42, tiny-llm#32)", "[processors]") {
  for (const double p : {0.0, -0.0, denormal, 1e-300, 1e-9}) {
    CHECK(survivors(top_p(p), golden) == tokens{0});
    CHECK(survivors(top_p(p), {1, 5, 5}) == tokens{1});
    CHECK(drawn_after(top_p(p), {1, 5, 3}) == tokens(50, 1));
  }
}

TEST_CASE("p >= 1 is off bit for bit (FlashInfer#708)", "[processors]") {
  for (const double p : {1.0, 1.5, 100.0, infinity}) {
    CHECK(top_p(p).off());
    check_identity(top_p(p));
  }
  CHECK(!top_p(0.999999).off());
  // Probabilities of 1e-9 and below live on.
  CHECK(survivors(top_p(1), {0, -21, -40}) == tokens{0, 1, 2});
}

TEST_CASE("a p just below 1 keeps what its mass needs, all if it takes all", "[processors]") {
  const row flat(500, 1.0F);
  CHECK(survivors(top_p(std::nextafter(1.0, 0.0)), flat).size() == 500);
  CHECK(survivors(top_p(0.9999999), {0, 0, 0}).size() == 3);
  CHECK(survivors(top_p(0.9999), {0, -21, -40}) == tokens{0});
}

TEST_CASE("top_p after top_k sees the mass that is left (mlx-lm PR388)", "[processors]") {
  const row logits = logs({0.4, 0.3, 0.2, 0.1});
  CHECK(survivors(chain(top_k(2), top_p(0.5)), logits) == tokens{0});
  CHECK(survivors(chain(top_k(1), top_p(0.8)), logits) == tokens{0});
  CHECK(survivors(top_p(0.5), logits) == tokens{0, 1});
}

TEST_CASE("the kept mass reaches p, and without its smallest member it does not (FlashInfer#2202)", "[processors]") {
  for (const std::size_t size : {std::size_t{3}, std::size_t{50}, std::size_t{500}, std::size_t{9000}}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const row logits = random_row(size, seed);
      const law full = reference::exact_law(logits);
      for (const double p : {0.1, 0.5, 0.9, 0.95, 0.99}) {
        double mass = 0, smallest = 1;
        const tokens left = survivors(top_p(p), logits);
        for (const token_id id : left) {
          mass += full[static_cast<std::size_t>(id)];
          smallest = std::min(smallest, full[static_cast<std::size_t>(id)]);
        }
        CHECK(mass >= p - 1e-12);
        CHECK(mass - smallest < p + 1e-12);
        CHECK(left == reference_survivors(logits, p));
      }
    }
  }
}

TEST_CASE("a flat row of thousands keeps its share, lowest ids first", "[processors]") {
  const row flat(10'000, -2.0F);
  const tokens left = survivors(top_p(0.5), flat);
  CHECK(left.size() == 5000);
  CHECK(left.back() == 4999);
  CHECK(survivors(top_p(0.4), flat).size() == 4000);
}

TEST_CASE("top_p's law is the renormalised nucleus, by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    row logits = random_row(60, seed);
    logits[3] = gone;
    for (const double p : {0.0, 0.3, 0.9, 0.99, 1.0}) {
      const law expected = reference::exact_law(reference::top_p(reference::widened(logits), p));
      CHECK(difference(law_after(top_p(p), logits), expected) < of_float);
      CHECK(difference(enumerated_law(top_p(p), logits), expected) < of_float);
    }
  }
}

TEST_CASE("top_p is not idempotent", "[processors]") {
  const row logits = logs({0.6, 0.15, 0.15, 0.1});
  CHECK(survivors(top_p(0.7), logits) == tokens{0, 1});
  CHECK(survivors(chain(top_p(0.7), top_p(0.7)), logits) == tokens{0});
}

TEST_CASE("top_p breaks ties by lower id", "[processors]") {
  CHECK(survivors(top_p(0.6), logs({0.1, 0.3, 0.3, 0.3})) == survivors(top_p(0.59), logs({0.1, 0.3, 0.3, 0.3})));
  CHECK(survivors(top_p(0.55), logs({0.1, 0.3, 0.3, 0.3})) == tokens{1, 2});
}

TEST_CASE("top_p keeps min_keep tokens", "[processors]") {
  CHECK(survivors(top_p(0, 3), golden) == tokens{0, 1, 2});
  CHECK(survivors(top_p(0.95, 2), golden) == tokens{0, 1, 2, 3});
  CHECK(survivors(top_p(0.5, 0), golden) == tokens{0});
  CHECK(survivors(top_p(0, 100), golden).size() == 6);
  CHECK(survivors(top_p(0.1, 2), {gone, 3, gone}) == tokens{1});
}

TEST_CASE("top_p is greedy in the limit", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(40, seed);
    CHECK(survivors(top_p(0), logits) == survivors(top_k(1), logits));
  }
}

TEST_CASE("top_p works far from 0 (MNN: a maximum that starts at FLT_MIN)", "[processors]") {
  row low = golden, high = golden;
  for (float& z : low) z -= 4096;
  for (float& z : high) z += 4096;
  CHECK(survivors(top_p(0.8), low) == tokens{0, 1, 2});
  CHECK(survivors(top_p(0.8), high) == tokens{0, 1, 2});
  CHECK(survivors(top_p(0.5), {-3e38F, 3e38F, 1e38F}) == tokens{1});
}

TEST_CASE("top_p refuses NaN and negative p", "[processors]") {
  for (const double bad : {not_a_number, -infinity, -1.0, -1e-300, -denormal}) {
    check_rejects<top_p>(bad, "top_p", "p", "must be a number >= 0");
  }
  for (const double good : {0.0, -0.0, denormal, 0.5, 1.0, 1.5, largest, infinity}) check_accepts<top_p>(good);
  CHECK(top_p::make(0.5, std::size_t{3}).has_value());
  CHECK(!top_p::make(-0.5, std::size_t{3}).has_value());
}

TEST_CASE("top_p says what it is, as it was given (tabbyAPI#316)", "[processors]") {
  CHECK(top_p(0.95).describe() == "top_p(0.95)");
}

TEST_CASE("top_p on all sizes and on bad rows", "[processors]") {
  for (const double p : {0.0, 0.5, 0.95, 1.0}) {
    check_sizes(top_p(p));
    check_bad_rows(top_p(p));
  }
}

TEST_CASE("top_p passes check_processor", "[processors]") {
  for (const double p : {0.0, 0.5, 0.95, 0.999, 1.0}) {
    check_report_of(top_p(p), {.shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace top_p_tests
