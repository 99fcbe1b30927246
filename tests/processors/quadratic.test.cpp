// SPDX-License-Identifier: MIT
#include <decant/processors/quadratic.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace quadratic_tests {

using namespace policies;
using decant::chain;
using decant::quadratic;

TEST_CASE("quadratic has the golden numbers of methods.md N", "[processors]") {
  const row left = logits_after(quadratic(0.3, 2), golden);
  const law expected{2, 1.7, 1.15625, 0.2, -3.4, -20.5};
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(static_cast<double>(left[i]) == Approx(expected[i]).epsilon(1e-6));
}

TEST_CASE("curve 1 is purely quadratic, curve 3 purely cubic", "[processors]") {
  CHECK(logits_after(quadratic(0.5), {3, 2, 1, gone}) == row{3, 2.5F, 1, gone});
  CHECK(logits_after(quadratic(0.5, 3), {3, 2, 1, gone}) == row{3, 2.5F, -1, gone});
}

TEST_CASE("quadratic's law is softmax of the bent logits, by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    row logits = random_row(30, seed);
    logits[4] = gone;
    const double top = static_cast<double>(*std::ranges::max_element(logits));
    for (const double factor : {0.05, 0.3, 2.0}) {
      for (const double curve : {1.0, 2.2, 3.0}) {
        reference::logits bent = reference::widened(logits);
        for (double& z : bent) {
          const double d = z - top;
          if (std::isfinite(z)) z = top - (3 - curve) / 2 * factor * d * d + (curve - 1) / 2 * factor * d * d * d;
        }
        CHECK(difference(enumerated_law(quadratic(factor, curve), logits), reference::exact_law(bent)) < of_float);
      }
    }
  }
}

TEST_CASE("the maximum, ranks and ties stay", "[processors]") {
  const row logits{1, 3, 3, -2, 0.1F, 3, gone};
  for (const double curve : {1.0, 2.0, 3.0}) {
    const tokens order = ask(quadratic(0.3, curve), logits, {}, [](candidates& c) {
      tokens ids;
      for (const auto& e : c.descending(10)) ids.push_back(e.id);
      CHECK(c.max() == 3);
      return ids;
    });
    CHECK(order == tokens{1, 2, 5, 0, 4, 3});
  }
}

TEST_CASE("quadratic is right however high the logits stand", "[processors]") {
  // Only distances matter: far from zero they are still told apart.
  for (const double by : {-1e18, -1e12, 1e12, 1e18}) {
    const auto shifted = [=](candidates& c, const step_context&) { c.affine(1, by); };
    CHECK(law_after(chain(shifted, quadratic(0.3, 2)), golden) == law_after(quadratic(0.3, 2), golden));
    CHECK(ask(chain(shifted, quadratic(0.3, 2)), golden, {}, [](candidates& c) { return c.max(); }) == Approx(by));
  }
  for (const double t : {1e-30, 1e-12, 1e-3, 0.7}) {
    const row logits{1000, 1000, 999, 1000.0001F};
    const auto best =
        ask(chain(decant::temperature(t), quadratic(0.3, 2)), logits, {}, [](candidates& c) { return c.argmax(); });
    CHECK(best == 3);
    CHECK(status_after(chain(decant::temperature(t), quadratic(0.3, 2)), logits) == row_status::ok);
  }
  // f (d / T)^2: a temperature before it is a factor of f / T^2.
  CHECK(difference(law_after(chain(decant::temperature(0.5), quadratic(0.25)), golden),
                   law_after(quadratic(1), golden)) < 1e-9);
}

TEST_CASE("extreme distances saturate and ban nothing", "[processors]") {
  for (const double curve : {1.0, 2.0, 3.0}) {
    for (const double factor : {denormal, 0.3, largest}) {
      const row logits{3e38F, -3e38F, 0, gone};
      CHECK(survivors(quadratic(factor, curve), logits) == tokens{0, 1, 2});
      CHECK(survivors(chain(decant::temperature(1e-200), quadratic(factor, curve)), logits) == tokens{0, 1, 2});
      CHECK(status_after(chain(decant::temperature(1e-200), quadratic(factor, curve)), logits) == row_status::ok);
    }
  }
}

TEST_CASE("quadratic works on what a truncation has left", "[processors]") {
  const row left = logits_after(chain(decant::top_k(2), quadratic(0.5)), {1, 3, 2});
  CHECK(same_bits(left, {gone, 3, 2.5F}));
  const row large = random_row(9000, 4);
  CHECK(difference(law_after(chain(quadratic(0.5), decant::top_k(5000)), large),
                   law_after(chain(decant::top_k(5000), quadratic(0.5)), large)) < 1e-9);
}

TEST_CASE("factor 0 is off bit for bit", "[processors]") {
  for (const quadratic& policy : {quadratic(0), quadratic(-0.0), quadratic(0, 2.5)}) {
    CHECK(policy.off());
    check_identity(policy);
  }
  CHECK(!quadratic(denormal).off());
}

TEST_CASE("quadratic refuses bad parameters", "[processors]") {
  for (const double bad : {not_a_number, -infinity, infinity, -1.0, -denormal}) {
    check_rejects<quadratic>(bad, "quadratic", "factor", "must be a finite number >= 0");
  }
  for (const double good : {0.0, -0.0, denormal, 0.3, largest}) check_accepts<quadratic>(good);
  for (const double bad :
       {not_a_number, -infinity, infinity, 0.0, std::nextafter(1.0, 0.0), std::nextafter(3.0, 4.0)}) {
    const std::string expected = "quadratic: curve = " + decant::detail::number_text(bad) + " must lie in [1, 3]";
    CHECK(complaint([&] { return quadratic(0.3, bad); }) == expected);
    CHECK(quadratic::make(0.3, bad).error().message == expected);
    CHECK(quadratic::make(0.3, bad).error().where == "quadratic.curve");
  }
  for (const double good : {1.0, 2.0, 3.0}) CHECK(quadratic::make(0.3, good).has_value());
  CHECK(quadratic(0.3, 2).describe() == "quadratic(0.3, 2)");
}

TEST_CASE("quadratic on all sizes and on bad rows", "[processors]") {
  for (const double curve : {1.0, 3.0}) {
    check_sizes(quadratic(0.3, curve));
    check_bad_rows(quadratic(0.3, curve));
  }
}

TEST_CASE("quadratic passes check_processor", "[processors]") {
  for (const quadratic& policy : {quadratic(0), quadratic(0.3), quadratic(0.3, 2), quadratic(0.2, 3)}) {
    check_report_of(policy, {.shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace quadratic_tests
