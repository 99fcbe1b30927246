// SPDX-License-Identifier: MIT
#include <decant/generate/repetition_detection.hpp>

#include "generate/models.hpp"
#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <decant/chain.hpp>
#include <decant/generate/generate.hpp>
#include <decant/testing/counting_allocator.hpp>

namespace repetition_detection_test {

using decant::context_after;
using decant::draw_stream;
using decant::finish_reason;
using decant::repetition_detection;
using decant::repetition_options;
using decant::token_id;
using ids = std::vector<token_id>;

static_assert(decant::StoppingCriterion<repetition_detection>);

bool stops(const repetition_options& options, const ids& tokens, std::size_t prompt = 0) {
  return repetition_detection(options)(context_after(tokens, prompt, draw_stream(1)));
}

/// The definition, by comparing.
bool ends_in_repeats(std::span<const token_id> output, const repetition_options& options) {
  for (std::size_t length = options.min_length; length <= options.max_length; ++length) {
    const std::size_t all = length * options.repeats;
    if (all > output.size()) continue;
    const auto tail = output.last(all);
    bool repeats = true;
    for (std::size_t i = length; i < all; ++i) repeats = repeats && tail[i] == tail[i - length];
    if (repeats) return true;
  }
  return false;
}

std::string complaint(const repetition_options& options) {
  try {
    static_cast<void>(repetition_detection(options));
  } catch (const decant::parameter_error& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("an output that ends in repeats of a block stops", "[generate][repetition_detection]") {
  const repetition_options three{.repeats = 3, .min_length = 2, .max_length = 4};
  CHECK(stops(three, {9, 1, 2, 1, 2, 1, 2}));
  CHECK_FALSE(stops(three, {9, 2, 1, 2, 1, 2}));
  CHECK_FALSE(stops(three, {1, 2, 1, 2, 1, 2, 9}));
  CHECK_FALSE(stops(three, {1, 2, 1, 2, 1, 3}));
  CHECK(stops(three, {5, 6, 7, 5, 6, 7, 5, 6, 7}));
  CHECK(stops(three, {5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8}));
  CHECK_FALSE(stops(three, {4, 5, 6, 7, 8, 4, 5, 6, 7, 8, 4, 5, 6, 7, 8}));
  CHECK_FALSE(stops(three, {}));
}

TEST_CASE("a block may itself be made of repeats", "[generate][repetition_detection]") {
  const repetition_options two{.repeats = 2, .min_length = 2, .max_length = 2};
  CHECK(stops(two, {1, 1, 1, 1}));
  CHECK_FALSE(stops(two, {1, 1, 1}));
  CHECK(stops({.repeats = 4, .min_length = 1, .max_length = 1}, {1, 1, 1, 1}));
}

TEST_CASE("the prompt does not count", "[generate][repetition_detection]") {
  const repetition_options two{.repeats = 2, .min_length = 1, .max_length = 8};
  CHECK_FALSE(stops(two, {1, 2, 1, 2}, 4));
  CHECK_FALSE(stops(two, {1, 2, 1, 2}, 1));
  CHECK(stops(two, {1, 2, 1, 2}, 0));
  CHECK(stops(two, {1, 2, 3, 3}, 2));
}

TEST_CASE("repetition detection equals the definition, for any text", "[generate][repetition_detection]") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const draw_stream draws(seed);
    ids text;
    for (std::size_t i = 0; i < 60; ++i) {
      // Now and then a stretch of what was before.
      const double u = draws.at(i).uniform(decant::purpose::user);
      const std::size_t back = 1 + seed % 7;
      text.push_back(u < 0.85 && i >= back ? text[i - back] : static_cast<token_id>(u * 1000) % 3);
    }
    const repetition_options options{.repeats = 2 + seed % 4, .min_length = 1 + seed % 3, .max_length = 3 + seed % 6};
    repetition_detection criterion(options);
    for (std::size_t n = 0; n <= text.size(); ++n) {
      const std::span<const token_id> output = std::span<const token_id>(text).first(n);
      if (criterion(context_after(output, 0, draws)) != ends_in_repeats(output, options))
        FAIL("seed " << seed << ", " << n << " tokens");
    }
  }
  SUCCEED();
}

TEST_CASE("the largest numbers are numbers like any other", "[generate][repetition_detection]") {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  CHECK(stops({.repeats = 2, .min_length = 1, .max_length = most}, {1, 2, 3, 1, 2, 3}));
  CHECK_FALSE(stops({.repeats = most, .min_length = 1, .max_length = most}, {1, 1, 1}));
  CHECK_FALSE(stops({.repeats = 2, .min_length = most, .max_length = most}, {1, 1, 1}));
}

TEST_CASE("a long loop is found in linear time, and nothing is allocated the second time",
          "[generate][repetition_detection]") {
  ids text;
  for (std::size_t i = 0; i < 1'000'000; ++i) text.push_back(i % 2 == 0 ? 1 : 2);
  text.back() = 3;
  repetition_detection criterion({.repeats = 2, .min_length = 1, .max_length = 500'000});
  CHECK_FALSE(criterion(context_after(text, 0, draw_stream(1))));
  text.back() = 2;
  const std::size_t before = decant::testing::allocations();
  CHECK(criterion(context_after(text, 0, draw_stream(1))));
  CHECK(decant::testing::allocations() == before);
}

TEST_CASE("a generation that loops is ended, and says why", "[generate][repetition_detection]") {
  // Always the next of three tokens.
  generate_models::markov model({{0, 9, 0}, {0, 0, 9}, {9, 0, 0}});
  const ids prompt{0};
  decant::generate_options options;
  options.seed = 1;
  options.stop = repetition_detection({.repeats = 3, .min_length = 2, .max_length = 5});
  const auto result = decant::generate(model, prompt, decant::top_k(0) | decant::greedy{}, options);
  CHECK(result.tokens == ids{1, 2, 0, 1, 2, 0, 1, 2, 0});
  CHECK(result.finish == finish_reason::criterion);
}

TEST_CASE("it composes with other criteria", "[generate][repetition_detection]") {
  decant::stop_any any(decant::max_new_tokens{9},
                       repetition_detection({.repeats = 2, .min_length = 1, .max_length = 3}));
  CHECK_FALSE(any(context_after(ids{1, 2, 3}, 0, draw_stream(1))));
  CHECK(any(context_after(ids{1, 2, 3, 3}, 0, draw_stream(1))));
  CHECK(any.why() == finish_reason::criterion);
}

TEST_CASE("repetition detection refuses numbers that make no block", "[generate][repetition_detection]") {
  CHECK(complaint({.repeats = 1}) == "repetition_detection: repeats = 1 must be >= 2");
  CHECK(complaint({.repeats = 0}) == "repetition_detection: repeats = 0 must be >= 2");
  CHECK(complaint({.min_length = 0}) == "repetition_detection: min_length = 0 must be >= 1");
  CHECK(complaint({.min_length = 5, .max_length = 4}) == "repetition_detection: max_length = 4 must be >= min_length");
  CHECK(complaint({.repeats = 2, .min_length = 5, .max_length = 5}).empty());
  CHECK(complaint({}).empty());
  const auto made = repetition_detection::make(repetition_options{.repeats = 1});
  REQUIRE(!made.has_value());
  CHECK(made.error().where == "repetition_detection.repeats");
  CHECK(made.error().message == "repetition_detection: repeats = 1 must be >= 2");
  CHECK(repetition_detection().describe() == "repetition_detection(4, 1, 64)");
}

}  // namespace repetition_detection_test
