// SPDX-License-Identifier: MIT
#include <decant/processors/renormalise.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/repetition_penalty.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace renormalise_tests {

using namespace policies;
using decant::chain;
using decant::renormalise;

void check_near(const row& left, const law& expected) {
  REQUIRE(left.size() == expected.size());
  for (std::size_t i = 0; i < left.size(); ++i)
    CHECK(static_cast<double>(left[i]) == Approx(expected[i]).epsilon(1e-6));
}

TEST_CASE("logits become log-probabilities: renormalize_logits.json", "[processors]") {
  check_near(logits_after(renormalise(), {2.5F, -1.25F, 0.75F, 3, 0, -2, 1.5F, 0.25F}),
             {-1.2274409468471177, -4.977440946847118, -2.9774409468471177, -0.7274409468471178, -3.7274409468471177,
              -5.727440946847118, -2.2274409468471177, -3.4774409468471177});
  check_near(logits_after(renormalise(), row(8, 0.0F)), law(8, -2.0794415416798357));
  const row left = logits_after(renormalise(), {2, gone, 1, gone, 3, gone, 0, 0.5F});
  CHECK(left[1] == gone);
  CHECK(left[0] == Approx(-1.4916958863653067F));
  CHECK(left[4] == Approx(-0.49169588636530664F));
}

TEST_CASE("the golden probabilities of methods.md N", "[processors]") {
  const row left = logits_after(renormalise(), golden);
  const law expected{0.560893422, 0.206341159, 0.125152239, 0.075908670, 0.027925239, 0.003779270};
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(std::exp(static_cast<double>(left[i])) == Approx(expected[i]).epsilon(1e-6));
}

TEST_CASE("renormalise changes neither the law nor what is drawn", "[processors]") {
  const auto nothing = [](candidates&, const step_context&) {};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    row logits = random_row(seed * 30, seed);
    logits[3] = gone;
    CHECK(law_after(renormalise(), logits) == law_after(nothing, logits));
    CHECK(enumerated_law(renormalise(), logits) == enumerated_law(nothing, logits));
    CHECK(drawn_after(renormalise(), logits) == drawn_after(nothing, logits));
  }
  const row large = random_row(9000, 3);
  CHECK(drawn_after(renormalise(), large) == drawn_after(nothing, large));
}

TEST_CASE("the sum is over the tokens left, and comes out as 0 in logarithms", "[processors]") {
  for (const double t : {1e-12, 0.5, 3.0, 1e12}) {
    const auto policy = chain(decant::temperature(t), decant::top_k(5), renormalise());
    CHECK(std::abs(ask(policy, random_row(60, 2), {}, [](candidates& c) { return c.log_sum(); })) < 1e-3);
  }
  CHECK(ask(chain(decant::top_k(1), renormalise()), golden, {}, [](candidates& c) { return c.max(); }) == 0);
}

TEST_CASE("renormalise twice is once", "[processors]") {
  const row once = logits_after(renormalise(), golden),
            twice = logits_after(chain(renormalise(), renormalise()), golden);
  for (std::size_t i = 0; i < once.size(); ++i) CHECK(twice[i] == Approx(once[i]).epsilon(1e-6));
}

TEST_CASE("after it, what depends on the zero does not depend on a shift (transformers#47595)", "[processors]") {
  const past before{{0, 4}, 0};
  const decant::repetition_penalty penalty(1.3);
  row shifted = golden;
  for (float& z : shifted) z += 4;
  CHECK(difference(law_after(chain(renormalise(), penalty), shifted, before),
                   law_after(chain(renormalise(), penalty), golden, before)) < of_float);
  CHECK(difference(law_after(penalty, shifted, before), law_after(penalty, golden, before)) > 0.01);
}

TEST_CASE("renormalise says what it is", "[processors]") {
  CHECK(renormalise::make().has_value());
  CHECK(renormalise().describe() == "renormalise");
}

TEST_CASE("renormalise on all sizes and on bad rows", "[processors]") {
  check_sizes(renormalise());
  check_bad_rows(renormalise());
}

TEST_CASE("renormalise passes check_processor", "[processors]") {
  check_report_of(renormalise(), {.shift_invariant = true, .allocations = decant::testing::allocations});
}

}  // namespace renormalise_tests
