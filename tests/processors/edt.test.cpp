// SPDX-License-Identifier: MIT
#include <decant/processors/edt.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>

namespace edt_tests {

using namespace policies;
using decant::edt;
using decant::temperature;

double temperature_on(const edt& policy, const row& logits) {
  return ask([](candidates&, const step_context&) {}, logits, {},
             [&](candidates& c) { return policy.temperature_for(c); });
}

TEST_CASE("edt has the golden number of methods.md N", "[processors]") {
  CHECK(temperature_on(edt(1, 1), golden) == Approx(0.833690365650).epsilon(1e-11));
  CHECK(difference(law_after(edt(1, 1), golden), law_after(temperature(0.833690365650), golden)) < 1e-9);
}

TEST_CASE("edt's law is that of T = t0 base^(theta / H), by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    row logits = random_row(30, seed);
    logits[4] = gone;
    const double t = 1.3 * std::pow(0.7, 0.5 / reference::entropy(reference::exact_law(logits)));
    CHECK(temperature_on(edt(1.3, 0.5, 0.7), logits) == Approx(t).epsilon(1e-11));
    CHECK(difference(enumerated_law(edt(1.3, 0.5, 0.7), logits),
                     reference::exact_law(reference::temperature(reference::widened(logits), t))) < of_float);
  }
}

TEST_CASE("theta = 0 or base = 1 is a fixed temperature bit for bit", "[processors]") {
  for (const double t : {0.0, 0.3, 2.0}) {
    for (const row& logits : {random_row(40, 3), row{0, -2000}, row{5}}) {
      CHECK(same_bits(logits_after(edt(t, 0), logits), logits_after(temperature(t), logits)));
      CHECK(same_bits(logits_after(edt(t, 2, 1), logits), logits_after(temperature(t), logits)));
    }
  }
}

TEST_CASE("no entropy, and next to none, is greedy", "[processors]") {
  CHECK(temperature_on(edt(1, 1), {0, -2000}) == 0);
  CHECK(survivors(edt(1, 1), {0, -2000}) == tokens{0});
  CHECK(law_after(edt(1, 1), {100, 0, 0}) == law{1, 0, 0});
  CHECK(law_after(edt(1, largest), golden) == law{1, 0, 0, 0, 0, 0});
  CHECK(law_after(edt(1, denormal), {100, 0, 0}) == law{1, 0, 0});
  CHECK(law_after(edt(1, 1, denormal), golden) == law{1, 0, 0, 0, 0, 0});
  CHECK(survivors(edt(0, 1), {1, 3, 3}) == tokens{1});
  for (const float below : {-5.0F, -50.0F, -500.0F}) CHECK(status_after(edt(1, 1), {0, below}) == row_status::ok);
}

TEST_CASE("the temperature rises with the entropy and stays below t0", "[processors]") {
  double before = 0;
  for (const double t : {0.2, 0.5, 1.0, 2.0, 10.0}) {
    const double now = temperature_on(edt(1.5, 1), logits_after(temperature(t), golden));
    CHECK(now > before);
    CHECK(now < 1.5);
    before = now;
  }
}

TEST_CASE("edt keeps ranks and ties", "[processors]") {
  const tokens order = ask(edt(1.2, 0.7), {1, 3, 3, -2, 0.1F, 3, gone}, {}, [](candidates& c) {
    tokens ids;
    for (const auto& e : c.descending(10)) ids.push_back(e.id);
    return ids;
  });
  CHECK(order == tokens{1, 2, 5, 0, 4, 3});
}

TEST_CASE("t0 = 1 with theta = 0 or base = 1 is off bit for bit", "[processors]") {
  for (const edt& policy : {edt(1, 0), edt(1, -0.0), edt(1, 5, 1)}) {
    CHECK(policy.off());
    check_identity(policy);
  }
  CHECK(!edt(1, denormal).off());
  CHECK(!edt(0.9, 0).off());
}

TEST_CASE("edt refuses bad parameters", "[processors]") {
  const auto refused = [](double t0, double theta, double base, const std::string& parameter, double value,
                          const std::string& rule) {
    const std::string expected = "edt: " + parameter + " = " + decant::detail::number_text(value) + " " + rule;
    CHECK(complaint([&] { return edt(t0, theta, base); }) == expected);
    const auto made = edt::make(t0, theta, base);
    REQUIRE(!made.has_value());
    CHECK(made.error().message == expected);
    CHECK(made.error().where == "edt." + parameter);
  };
  for (const double bad : {not_a_number, -infinity, infinity, -1.0, -denormal}) {
    refused(bad, 1, 0.8, "t0", bad, "must be a finite number >= 0");
    refused(1, bad, 0.8, "theta", bad, "must be a finite number >= 0");
    refused(1, 1, bad, "base", bad, "must lie in (0, 1]");
  }
  refused(1, 1, 0, "base", 0, "must lie in (0, 1]");
  refused(1, 1, std::nextafter(1.0, 2.0), "base", std::nextafter(1.0, 2.0), "must lie in (0, 1]");
  for (const double good : {0.0, denormal, 1.0, largest}) CHECK(edt::make(good, good).has_value());
  for (const double good : {denormal, 0.8, 1.0}) CHECK(edt::make(1.0, 1.0, good).has_value());
  CHECK(edt(1, 0.5).describe() == "edt(1, 0.5, 0.8)");
}

TEST_CASE("edt on all sizes and on bad rows", "[processors]") {
  for (const edt& policy : {edt(1, 1), edt(0, 0), edt(1.4, 0.1, 0.5)}) {
    check_sizes(policy);
    check_bad_rows(policy);
  }
}

TEST_CASE("edt passes check_processor", "[processors]") {
  for (const edt& policy : {edt(1, 1), edt(1, 0), edt(1.4, 0.1, 0.5)}) {
    check_report_of(policy, {.shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace edt_tests
