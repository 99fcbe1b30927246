// SPDX-License-Identifier: MIT
#include <decant/processors/temperature.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/processors/top_p.hpp>
#include <decant/samplers/greedy.hpp>

namespace temperature_tests {

using namespace policies;
using decant::chain;
using decant::temperature;

TEST_CASE("temperature has the golden numbers", "[processors]") {
  CHECK(difference(law_after(temperature(0.5), golden),
                   {0.829213426, 0.112221834, 0.041284106, 0.015187574, 0.002055415, 0.000037646}) < of_float);
  CHECK(difference(law_after(temperature(2), golden),
                   {0.363373174, 0.220396971, 0.171645334, 0.133677520, 0.081079515, 0.029827486}) < of_float);
}

TEST_CASE("temperature's law is softmax(z / T), by enumeration", "[processors]") {
  for (const double t : {0.05, 0.3, 0.9, 1.0, 1.7, 10.0, 1e6}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      row logits = random_row(30, seed);
      logits[4] = gone;
      const law expected = reference::exact_law(reference::temperature(reference::widened(logits), t));
      CHECK(difference(law_after(temperature(t), logits), expected) < of_float);
      CHECK(difference(enumerated_law(temperature(t), logits), law_after(temperature(t), logits)) < 1e-12);
    }
  }
}

TEST_CASE("temperature divides the logits", "[processors]") {
  CHECK(logits_after(temperature(2), golden) == row{1, 0.5F, 0.25F, 0, -0.5F, -1.5F});
  CHECK(logits_after(temperature(0.5), {1, gone, -2}) == row{2, gone, -4});
}

TEST_CASE("temperature before the softmax, as softmax(l / T) (Kimi-Audio PR161)", "[processors]") {
  const row logits{2, 1, 0};
  CHECK(difference(law_after(temperature(2), logits), reference::exact_law(row{1, 0.5F, 0})) < of_float);
}

TEST_CASE("temperature 1 is the identity bit for bit", "[processors]") {
  check_identity(temperature(1));
  CHECK(temperature(1).off());
  CHECK(!temperature(0.999).off());
  CHECK(!temperature(0).off());
}

TEST_CASE("temperature 0 keeps the argmax and draws nothing (ggml#37, CTranslate2#1511)", "[processors]") {
  const row logits{1, 3, 2};
  CHECK(survivors(temperature(0), logits) == tokens{1});
  CHECK(law_after(temperature(0), logits) == law{0, 1, 0});
  CHECK(drawn_after(temperature(0), logits) == tokens(50, 1));
  int decisions = 0;
  const auto exact = decant::testing::enumerate_law([&](decant::decision_hook& hook) {
    candidates c;
    c.bind(std::span<const float>(logits));
    const step_context context{{}, 0, draw_stream(1).with_hook(&hook)};
    temperature(0)(c, context);
    ++decisions;
    return c.draw(context.draws);
  });
  CHECK(decisions == 1);
  CHECK(exact.size() == 1);
  CHECK(survivors(temperature(-0.0), logits) == tokens{1});
}

TEST_CASE("temperature 0 keeps the lowest id among equals", "[processors]") {
  CHECK(survivors(temperature(0), {1, 3, 3, 3}) == tokens{1});
  CHECK(survivors(temperature(denormal), {1, 3, 3, 3}) == tokens{1});
}

TEST_CASE("tiny temperatures keep the argmax and stay finite (TensorRT-LLM#15715, transformers#11267)",
          "[processors]") {
  const row logits{1000, 999, -1000};
  for (const double t : {1e-6, 1e-12, 1e-38, 1e-45, 1e-120, 1e-200, 1e-300, 1e-308, 1e-310, denormal}) {
    INFO("T = " << t);
    CHECK(law_after(temperature(t), logits) == law{1, 0, 0});
    CHECK(drawn_after(temperature(t), logits) == tokens(50, 0));
    CHECK(status_after(temperature(t), logits) == row_status::ok);
    for (const float z : logits_after(temperature(t), logits))
      CHECK((decant::math::is_finite(z) || decant::is_gone(z)));
    CHECK(drawn_after(temperature(t), {-1000, 999, 1000}) == tokens(50, 2));
    CHECK(drawn_after(temperature(t), {-1000, -2000, -1001}) == tokens(50, 0));
  }
}

TEST_CASE("ties stay even at a tiny temperature, unless it is 0", "[processors]") {
  CHECK(difference(law_after(temperature(1e-30), {5, 7, 7}), {0, 0.5, 0.5}) < 1e-12);
}

TEST_CASE("a huge temperature is uniform on the support", "[processors]") {
  for (const double t : {1e9, 1e38, 1e39, 1e120, 1e300, largest}) {
    INFO("T = " << t);
    CHECK(difference(law_after(temperature(t), {9, gone, -9, 0}), {1.0 / 3, 0, 1.0 / 3, 1.0 / 3}) < of_float);
    CHECK(status_after(temperature(t), {9, gone, -9, 0}) == row_status::ok);
  }
}

TEST_CASE("extreme but finite logits at a huge temperature keep their law", "[processors]") {
  for (const double t : {1e38, 1e39, 1e40}) {
    INFO("T = " << t);
    const row logits{3e38F, -3e38F, 0};
    CHECK(difference(law_after(temperature(t), logits),
                     reference::exact_law(reference::temperature(reference::widened(logits), t))) < of_float);
  }
}

TEST_CASE("temperatures compose: T1 then T2 is T1 * T2", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(50, seed);
    CHECK(difference(law_after(chain(temperature(0.5), temperature(3)), logits), law_after(temperature(1.5), logits)) <
          1e-7);
    CHECK(difference(law_after(chain(temperature(0.5), temperature(2)), logits), law_after(temperature(1), logits)) ==
          0);
    CHECK(difference(law_after(chain(temperature(1e-30), temperature(1e30)), logits),
                     law_after(temperature(1), logits)) < of_float);
  }
}

TEST_CASE("temperature keeps ranks and ties", "[processors]") {
  const row logits{1, 3, 3, -2, 0.1F, 3, gone};
  for (const double t : {1e-30, 0.01, 0.7, 3.0, 1e30}) {
    const tokens order = ask(temperature(t), logits, {}, [](candidates& c) {
      tokens ids;
      for (const auto& e : c.descending(10)) ids.push_back(e.id);
      return ids;
    });
    CHECK(order == tokens{1, 2, 5, 0, 4, 3});
  }
}

TEST_CASE("the entropy does not fall with the temperature", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(40, seed);
    double before = 0;
    for (const double t : {0.0, 0.01, 0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 10.0, 1000.0}) {
      const double entropy = ask(temperature(t), logits, {}, [](candidates& c) { return c.entropy(); });
      CHECK(entropy >= before - 1e-12);
      before = entropy;
    }
    CHECK(before == Approx(std::log(40)).epsilon(1e-4));
  }
}

TEST_CASE("temperature is greedy in the limit", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(40, seed);
    const auto best = static_cast<token_id>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    for (const double t : {0.0, 1e-9, 1e-30}) CHECK(drawn_after(temperature(t), logits, 20) == tokens(20, best));
  }
}

TEST_CASE("top_k commutes with temperature, top_p does not (Kimi-Audio PR161)", "[processors]") {
  const row logits{3, 2, 1};
  CHECK(survivors(chain(temperature(0.5), decant::top_p(0.8)), logits) == tokens{0});
  CHECK(survivors(chain(decant::top_p(0.8), temperature(0.5)), logits) == tokens{0, 1});
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const row random = random_row(40, seed);
    CHECK(law_after(chain(temperature(0.6), decant::top_k(7)), random) ==
          law_after(chain(decant::top_k(7), temperature(0.6)), random));
  }
}

TEST_CASE("temperature refuses what is not a number >= 0 (lattice#295)", "[processors]") {
  for (const double bad : {not_a_number, -not_a_number, infinity, -infinity, -1.0, -1e-300, -denormal}) {
    check_rejects<temperature>(bad, "temperature", "t", "must be a finite number >= 0");
  }
  for (const double good : {0.0, -0.0, denormal, 1e-310, 0.5, 1.0, 2.0, 1e300, largest})
    check_accepts<temperature>(good);
}

TEST_CASE("temperature says what it is", "[processors]") {
  CHECK(temperature(0.7).describe() == "temperature(0.7)");
  CHECK(temperature(2).describe() == "temperature(2)");
}

TEST_CASE("temperature on all sizes and on bad rows", "[processors]") {
  for (const double t : {0.0, 0.7, 1.0, 1.3}) {
    check_sizes(temperature(t));
    check_bad_rows(temperature(t));
  }
}

TEST_CASE("temperature passes check_processor", "[processors]") {
  for (const double t : {0.0, 0.7, 1.0, 1.3, 1e-12, 1e12}) {
    check_report_of(temperature(t), {.shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace temperature_tests
