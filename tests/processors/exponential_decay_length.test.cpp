// SPDX-License-Identifier: MIT
#include <decant/processors/exponential_decay_length.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>

namespace exponential_decay_length_tests {

using namespace policies;
using decant::chain;
using decant::exponential_decay_length;

const row g8{2.5F, -1.25F, 0.75F, 3, 0, -2, 1.5F, 0.25F};

past after(std::size_t length, std::size_t prompt) { return {tokens(length, 1), prompt}; }

row with(row logits, std::size_t id, float z) { return logits[id] = z, logits; }

TEST_CASE("HF's cases: exponential_decay_length_penalty.json", "[processors]") {
  CHECK(same_bits(logits_after(exponential_decay_length(2, 1.5, {0}), g8, after(3, 1)), g8));
  CHECK(same_bits(logits_after(exponential_decay_length(2, 1.5, {0}), g8, after(4, 1)), with(g8, 0, 3.75F)));
  CHECK(same_bits(logits_after(exponential_decay_length(2, 1.5, {0}), g8, after(6, 1)), with(g8, 0, 8.4375F)));
  CHECK(same_bits(logits_after(exponential_decay_length(0, 2, {4}), g8, after(5, 1)), g8));
  CHECK(same_bits(logits_after(exponential_decay_length(1, 1, {0}), g8, after(9, 1)), g8));
  const row n12{-3.5F, -0.5F, -7.25F, -1, -12, -0.75F, -2.5F, -4, -1.5F, -9, -0.25F, -6};
  CHECK(logits_after(exponential_decay_length(3, 1.1, {2}), n12, after(10, 1))[2] == Approx(-1.656182749999994F));
  CHECK(logits_after(exponential_decay_length(0, 1.01, {5}), g8, after(5, 4))[5] == Approx(-1.98F));
  const row ties8{1, 1, 1, 2, 2, 0, 0, -1};
  CHECK(same_bits(logits_after(exponential_decay_length(0, 1.75, {7}), ties8, after(2, 1)), with(ties8, 7, -0.25F)));
}

TEST_CASE("a negative logit rises too (transformers#25416)", "[processors]") {
  CHECK(logits_after(exponential_decay_length(0, 1.5, {0}), {-2, 1}, after(1, 0)) == row{-1, 1});
  float before = -2;
  for (std::size_t length = 1; length < 40; ++length) {
    const float now = logits_after(exponential_decay_length(0, 1.2, {0}), {-2, 1}, after(length, 0))[0];
    CHECK(now > before);
    before = now;
  }
}

TEST_CASE("a factor below 1 puts the end off", "[processors]") {
  CHECK(logits_after(exponential_decay_length(0, 0.5, {0}), {2, 1}, after(2, 0)) == row{0.5F, 1});
  CHECK(logits_after(exponential_decay_length(0, 0.5, {0}), {-2, 1}, after(2, 0)) == row{-3.5F, 1});
}

TEST_CASE("only the output counts, and only beyond the start", "[processors]") {
  const exponential_decay_length policy(3, 2, {0});
  for (const std::size_t prompt : {std::size_t{0}, std::size_t{7}}) {
    for (std::size_t output = 0; output <= 3; ++output) {
      CHECK(same_bits(logits_after(policy, g8, after(prompt + output, prompt)), g8));
    }
    CHECK(logits_after(policy, g8, after(prompt + 4, prompt))[0] == 5);
    CHECK(logits_after(policy, g8, after(prompt + 5, prompt))[0] == 10);
  }
}

TEST_CASE("every end token is raised, once each time it is named", "[processors]") {
  CHECK(logits_after(exponential_decay_length(0, 2, {0, 1, 3}), g8, after(1, 0)) ==
        row{5, 0, 0.75F, 6, 0, -2, 1.5F, 0.25F});
  CHECK(same_bits(logits_after(exponential_decay_length(0, 2, {}), g8, after(1, 0)), g8));
}

TEST_CASE("0 stays, gone stays gone, overflow saturates", "[processors]") {
  const exponential_decay_length policy(0, 1e300, {0, 1, 2, 3});
  const row left = logits_after(policy, {0, gone, 1, -1}, after(50, 0));
  CHECK(left[0] == 0);
  CHECK(left[1] == gone);
  CHECK(left[2] == std::numeric_limits<float>::max());
  CHECK(left[3] == std::numeric_limits<float>::max());
  CHECK(status_after(policy, {0, gone, 1, -1}, after(50, 0)) == row_status::ok);
  CHECK(status_after(exponential_decay_length(0, largest, {0}), {1, 2}, after(5000, 0)) == row_status::ok);
  // A vanishing factor ends at z - |z|.
  CHECK(logits_after(exponential_decay_length(0, denormal, {0, 1}), {3, -3}, after(5, 0)) == row{0, -6});
}

TEST_CASE("the end comes to win", "[processors]") {
  CHECK(drawn_after(exponential_decay_length(0, 1.5, {0}), {0.5F, 3, 2}, 50, after(30, 0)) == tokens(50, 0));
}

TEST_CASE("the law is that of the raised logit, by enumeration", "[processors]") {
  CHECK(difference(enumerated_law(exponential_decay_length(1, 1.5, {2, 0}), golden, after(4, 1)),
                   reference::exact_law(row{4.5F, 1, 1.125F, 0, -1, -3})) < of_float);
}

TEST_CASE("it works on the logit as it stands", "[processors]") {
  const row left =
      logits_after(chain(decant::temperature(0.5), exponential_decay_length(0, 1.5, {0})), {1, 2}, after(1, 0));
  CHECK(left == row{3, 4});
}

TEST_CASE("factor 1 is off bit for bit", "[processors]") {
  CHECK(exponential_decay_length(0, 1, {0}).off());
  CHECK(!exponential_decay_length(0, std::nextafter(1.0, 2.0), {0}).off());
  check_identity(exponential_decay_length(0, 1, {0}));
}

TEST_CASE("an id outside the vocabulary is misuse", "[processors]") {
  CHECK_THROWS_AS(logits_after(exponential_decay_length(0, 2, {8}), g8, after(1, 0)), assertion_error);
}

TEST_CASE("exponential_decay_length refuses bad parameters", "[processors]") {
  const auto refused = [](std::int64_t start, double factor, const tokens& ends, const std::string& parameter,
                          const std::string& text) {
    const std::string expected = "exponential_decay_length: " + parameter + " = " + text;
    CHECK(complaint([&] { return exponential_decay_length(start, factor, ends); }) == expected);
    const auto made = exponential_decay_length::make(start, factor, ends);
    REQUIRE(!made.has_value());
    CHECK(made.error().message == expected);
    CHECK(made.error().where == "exponential_decay_length." + parameter);
  };
  for (const double bad : {not_a_number, -infinity, infinity, -1.0, -denormal, 0.0}) {
    refused(0, bad, {0}, "factor", decant::detail::number_text(bad) + " must be a finite number > 0");
  }
  refused(-1, 1.5, {0}, "start", "-1 must be >= 0");
  refused(0, 1.5, {0, -1}, "ends", "-1 must be >= 0");
  for (const double good : {denormal, 0.5, 1.0, largest})
    CHECK(exponential_decay_length::make(0, good, tokens{0}).has_value());
  CHECK(exponential_decay_length(100, 1.5, {0}).describe() == "exponential_decay_length(100, 1.5)");
}

TEST_CASE("exponential_decay_length on all sizes and on bad rows", "[processors]") {
  check_sizes(exponential_decay_length(0, 1.5, {0}));
  check_bad_rows(exponential_decay_length(0, 1.5, {0}));
}

TEST_CASE("exponential_decay_length passes check_processor", "[processors]") {
  check_report_of(exponential_decay_length(0, 1.5, {0}),
                  {.permutation = false, .allocations = decant::testing::allocations});
}

}  // namespace exponential_decay_length_tests
