// SPDX-License-Identifier: MIT
#include <decant/processors/dynamic_temperature.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>

namespace dynamic_temperature_tests {

using namespace policies;
using decant::chain;
using decant::dynamic_temperature;
using decant::temperature;

double temperature_on(const dynamic_temperature& policy, const row& logits) {
  return ask([](candidates&, const step_context&) {}, logits, {},
             [&](candidates& c) { return policy.temperature_for(c); });
}

TEST_CASE("dynamic_temperature has the golden number of methods.md N", "[processors]") {
  CHECK(temperature_on(dynamic_temperature(0.5, 1.5), golden) == Approx(1.184680793712).epsilon(1e-11));
  CHECK(difference(law_after(dynamic_temperature(0.5, 1.5), golden), law_after(temperature(1.184680793712), golden)) <
        1e-9);
}

TEST_CASE("the exponent bends the share of the entropy", "[processors]") {
  const double share = 1.226783295532 / std::log(6.0);
  for (const double exponent : {0.1, 0.5, 2.0, 5.0}) {
    CHECK(temperature_on(dynamic_temperature(0.5, 1.5, exponent), golden) ==
          Approx(0.5 + std::pow(share, exponent)).epsilon(1e-11));
  }
}

TEST_CASE("equal tokens get the high temperature, a certain one the low", "[processors]") {
  for (const std::size_t size : {std::size_t{2}, std::size_t{7}, std::size_t{1000}}) {
    CHECK(temperature_on(dynamic_temperature(0.25, 3), row(size, 4.0F)) == 3);
  }
  CHECK(temperature_on(dynamic_temperature(0.25, 3), {0, -2000, gone}) == 0.25);
  CHECK(temperature_on(dynamic_temperature(0.25, 3, 0.001), {0, -2000}) == 0.25);
}

TEST_CASE("the law is that of the temperature, by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    row logits = random_row(30, seed);
    logits[4] = gone;
    const double share = reference::entropy(reference::exact_law(logits)) / std::log(29.0);
    const double t = 0.2 + 1.7 * share * share;
    const law expected = reference::exact_law(reference::temperature(reference::widened(logits), t));
    CHECK(difference(enumerated_law(dynamic_temperature(0.2, 1.9, 2), logits), expected) < of_float);
  }
}

TEST_CASE("low = high is a fixed temperature bit for bit", "[processors]") {
  for (const double t : {0.0, 0.3, 2.0}) {
    const row logits = random_row(40, 3);
    CHECK(same_bits(logits_after(dynamic_temperature(t, t, 2), logits), logits_after(temperature(t), logits)));
    CHECK(drawn_after(dynamic_temperature(t, t), logits) == drawn_after(temperature(t), logits));
  }
}

TEST_CASE("the entropy is that of the tokens left, at the temperature they have", "[processors]") {
  const row logits = random_row(40, 5);
  const row doubled = logits_after(temperature(0.5), logits);
  CHECK(difference(law_after(chain(temperature(0.5), dynamic_temperature(0.5, 1.5)), logits),
                   law_after(dynamic_temperature(0.5, 1.5), doubled)) < 1e-9);
}

TEST_CASE("a temperature of 0 keeps the argmax, and vanishing ones stay finite (llama.cpp temp_ext {100, 0, 0})",
          "[processors]") {
  CHECK(survivors(dynamic_temperature(0, 1), {0, -2000, 0 - 2001.0F}) == tokens{0});
  CHECK(law_after(dynamic_temperature(0, 1), {100, 0, 0}) == law{1, 0, 0});
  CHECK(status_after(dynamic_temperature(0, 1), {100, 0, 0}) == row_status::ok);
  CHECK(survivors(dynamic_temperature(0, 0), {1, 3, 3}) == tokens{1});
  for (const double low : {1e-310, denormal}) CHECK(law_after(dynamic_temperature(low, 1), {0, -2000}) == law{1, 0});
  CHECK(difference(law_after(dynamic_temperature(0, largest), {1, 1, 1}), {1.0 / 3, 1.0 / 3, 1.0 / 3}) < of_float);
}

TEST_CASE("ranks and ties stay", "[processors]") {
  const row logits{1, 3, 3, -2, 0.1F, 3, gone};
  const tokens order = ask(dynamic_temperature(0.1, 4), logits, {}, [](candidates& c) {
    tokens ids;
    for (const auto& e : c.descending(10)) ids.push_back(e.id);
    return ids;
  });
  CHECK(order == tokens{1, 2, 5, 0, 4, 3});
}

TEST_CASE("a single token is left as it is", "[processors]") {
  CHECK(same_bits(logits_after(dynamic_temperature(0.5, 2), {3}), {3}));
  CHECK(same_bits(logits_after(dynamic_temperature(0, 2), {gone, 3, gone}), {gone, 3, gone}));
}

TEST_CASE("low = high = 1 is off bit for bit", "[processors]") {
  CHECK(dynamic_temperature(1, 1).off());
  CHECK(dynamic_temperature(1, 1, 3).off());
  CHECK(!dynamic_temperature(0.9, 1).off());
  CHECK(!dynamic_temperature(1, 1.1).off());
  check_identity(dynamic_temperature(1, 1));
}

TEST_CASE("dynamic_temperature refuses bad parameters", "[processors]") {
  const auto refused = [](double low, double high, double exponent, const std::string& parameter, double value,
                          const std::string& rule) {
    const std::string expected =
        "dynamic_temperature: " + parameter + " = " + decant::detail::number_text(value) + " " + rule;
    CHECK(complaint([&] { return dynamic_temperature(low, high, exponent); }) == expected);
    const auto made = dynamic_temperature::make(low, high, exponent);
    REQUIRE(!made.has_value());
    CHECK(made.error().message == expected);
    CHECK(made.error().where == "dynamic_temperature." + parameter);
  };
  for (const double bad : {not_a_number, -infinity, infinity, -1.0, -denormal}) {
    refused(bad, 1, 1, "low", bad, "must be a finite number >= 0");
    refused(0.5, bad, 1, "high", bad, "must be a finite number >= low");
    refused(0.5, 1, bad, "exponent", bad, "must be a finite number > 0");
  }
  refused(1, std::nextafter(1.0, 0.0), 1, "high", std::nextafter(1.0, 0.0), "must be a finite number >= low");
  refused(0.5, 1, 0, "exponent", 0, "must be a finite number > 0");
  for (const double good : {0.0, denormal, 1.0, largest}) CHECK(dynamic_temperature::make(good, good).has_value());
  CHECK(dynamic_temperature::make(0.5, 1.5, denormal).has_value());
  CHECK(dynamic_temperature(0.5, 1.5).describe() == "dynamic_temperature(0.5, 1.5, 1)");
}

TEST_CASE("dynamic_temperature on all sizes and on bad rows", "[processors]") {
  for (const auto& policy :
       {dynamic_temperature(0, 2), dynamic_temperature(0.5, 1.5, 0.3), dynamic_temperature(0, 0)}) {
    check_sizes(policy);
    check_bad_rows(policy);
  }
}

TEST_CASE("dynamic_temperature passes check_processor", "[processors]") {
  for (const auto& policy :
       {dynamic_temperature(0.2, 2), dynamic_temperature(1, 1), dynamic_temperature(0.5, 1.5, 3)}) {
    check_report_of(policy, {.shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace dynamic_temperature_tests
