// SPDX-License-Identifier: MIT
// What llama.cpp's own tests state about its samplers, as facts: rows of probabilities, what is applied, and the
// probabilities after it, to 1e-5.
#include "processors/policies.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <decant/chain.hpp>
#include <decant/processors.hpp>

#include "processors/texts.hpp"

namespace llama_cpp_facts_tests {

using namespace policies;
using decant::chain;

constexpr double close = 1e-5;
const row rising = logs({0.1, 0.2, 0.3, 0.4});

/// The law after a policy, by id.
template <class P>
void check(const P& policy, const row& logits, const law& expected, const past& before = {}) {
  INFO(decant::describe(policy));
  CHECK(difference(law_after(policy, logits, before), expected) < close);
}

TEST_CASE("temperature 1 changes nothing and 0 is greedy") {
  check(decant::temperature(1), rising, {0.1, 0.2, 0.3, 0.4});
  check(decant::temperature(0), rising, {0, 0, 0, 1});
  check(decant::dynamic_temperature(1, 1), rising, {0.1, 0.2, 0.3, 0.4});  // its extended form, with no range
  check(decant::dynamic_temperature(0, 0), rising, {0, 0, 0, 1});
}

TEST_CASE("the laws of top_k") {
  check(decant::top_k(1), rising, {0, 0, 0, 1});
  check(decant::top_k(3), rising, {0, 0.22222, 0.33333, 0.44444});
  check(decant::top_k(4), rising, {0.1, 0.2, 0.3, 0.4});
  check(decant::top_k(0), rising, {0.1, 0.2, 0.3, 0.4});
}

TEST_CASE("the laws of top_p") {
  check(decant::top_p(0), rising, {0, 0, 0, 1});
  check(decant::top_p(0.7), rising, {0, 0, 0.428571, 0.571429});
  check(decant::top_p(0.8), rising, {0, 0.22222, 0.33333, 0.44444});
  check(decant::top_p(1), rising, {0.1, 0.2, 0.3, 0.4});
}

TEST_CASE("the laws of min_p") {
  const law all{0.1, 0.2, 0.3, 0.4}, three{0, 0.2 / 0.9, 0.3 / 0.9, 0.4 / 0.9}, two{0, 0, 0.3 / 0.7, 0.4 / 0.7};
  for (const double p : {0.0, 0.24}) check(decant::min_p(p), rising, all);
  for (const double p : {0.26, 0.49}) check(decant::min_p(p), rising, three);
  for (const double p : {0.51, 0.74}) check(decant::min_p(p), rising, two);
  for (const double p : {0.76, 1.0}) check(decant::min_p(p), rising, {0, 0, 0, 1});
  CHECK(!decant::min_p::make(1.05).has_value());  // the argmax alone there, an error here
}

TEST_CASE("XTC leaves the least probable token above the threshold") {
  const row falling = logs({0.4, 0.3, 0.2, 0.1});
  check(decant::xtc(1, 0.09), falling, {0, 0, 0, 1});
  check(decant::xtc(1, 0.19), falling, {0, 0, 0.2 / 0.3, 0.1 / 0.3});
  check(decant::xtc(1, 0.29), falling, {0, 0.3 / 0.6, 0.2 / 0.6, 0.1 / 0.6});
  check(decant::xtc(1, 0.39), falling, {0.4, 0.3, 0.2, 0.1});
}

TEST_CASE("the sets of typical sampling") {
  check(decant::typical(0.5), logs({0.97, 0.01, 0.01, 0.01}), {1, 0, 0, 0});
  check(decant::typical(0.5), logs({0.4, 0.2, 0.2, 0.2}), {0, 1.0 / 3, 1.0 / 3, 1.0 / 3});
}

TEST_CASE("the laws under penalties") {
  const row five = logs(law(5, 0.2));
  const decant::history_scope window{.window = 64, .prompt = true};
  for (const tokens& last : {tokens{0, 1, 2}, tokens{0, 1, 2, 0, 0}}) {
    check(decant::repetition_penalty(50, window), five, {0, 0, 0, 0.5, 0.5}, {last, last.size()});
  }
  check(decant::repetition_penalty(50, window), five, {0, 0.25, 0.25, 0.25, 0.25}, {{0}, 1});
  const auto both = chain(decant::frequency_penalty(5, window), decant::presence_penalty(5, window));
  check(both, five, {0.000011, 0.249997, 0.249997, 0.249997, 0.249997}, {{0}, 1});
  check(both, five, {0.000023, 0.000023, 0.000023, 0.499966, 0.499966}, {{0, 1, 2}, 3});
  check(both, five, {0, 0.000023, 0.000023, 0.499977, 0.499977}, {{0, 1, 2, 0, 0}, 5});
}

TEST_CASE("the laws under DRY") {
  const law four(4, 0.25), five(5, 0.2);
  const auto dry = [](double multiplier, std::size_t allowed, std::size_t range) {
    return decant::dry({.multiplier = multiplier, .base = 1.1, .allowed_length = allowed, .range = range});
  };
  check(dry(1, 2, 4), logs(four), four, {{0, 1}});
  check(dry(1, 2, 5), logs(four), {0.296923, 0.296923, 0.109232, 0.296923}, {{0, 1, 2, 0, 1}});
  check(dry(2, 2, 5), logs(five), {0.241818, 0.241818, 0.032727, 0.241818, 0.241818}, {{0, 1, 2, 0, 1}});
  check(dry(1, 4, 7), logs(five), five, {{0, 1, 2, 3, 4, 0, 1}});
  const decant::dry_options six{.multiplier = 1, .base = 1.1, .allowed_length = 2, .range = 6};
  const decant::dry broken(six, {{"d"}, texts::vocabulary({"a", "b", "c", "d", "e"})});
  check(broken, logs(five), five, {{0, 1, 3, 4, 0, 1}});
}

TEST_CASE("the laws of top_n_sigma") {
  check(decant::top_n_sigma(1), rising, {0, 0, 0.428571, 0.571429});
  check(decant::top_n_sigma(3), rising, {0.1, 0.2, 0.3, 0.4});
  check(decant::top_n_sigma(0), rising, {0, 0, 0, 1});  // off there, the argmax here
}

/// The ids that are forced, one a step along a text, no_token where more than one is left.
tokens forced_along(const decant::thinking_budget& policy, const tokens& text, std::size_t prompt = 0) {
  tokens forced;
  for (std::size_t size = prompt; size <= text.size(); ++size) {
    const tokens left =
        survivors(policy, row(128, 0.0F), {{text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size)}, prompt});
    forced.push_back(left.size() == 1 ? left.front() : no_token);
  }
  return forced;
}

TEST_CASE("a budget of thinking forces its end at the steps stated") {
  const decant::thinking_markers markers{.start = {100}, .end = {101}, .forced = {102, 101}};
  const decant::thinking_budget two(2, markers);
  CHECK(forced_along(two, {100, 50, 51, 102, 101}) == tokens{no_token, no_token, no_token, 102, 101, no_token});
  CHECK(forced_along(two, {100, 50, 101, 100, 60, 61, 102, 101}) ==
        tokens{no_token, no_token, no_token, no_token, no_token, no_token, 102, 101, no_token});
  const decant::thinking_budget none(0, {.start = {100}, .end = {101}, .forced = {102, 101}, .prompt = true});
  CHECK(forced_along(none, {100, 102, 101}, 1) == tokens{102, 101, no_token});
}

/// The logits ln 0, ln 1, ..., ln 9999: the probability of id i is proportional to i.
row large_row() {
  row logits(10'000);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = i == 0 ? gone : static_cast<float>(std::log(static_cast<double>(i)));
  }
  return logits;
}

TEST_CASE("top_k, top_p and min_p in every order leave what the closed forms say") {
  constexpr std::size_t size = 10'000, k = 100;
  const row logits = large_row();
  std::string order = "kmp";
  do {
    // Ids first .. size - 1 are left, with weights equal to the ids.
    decant::dynamic_chain steps;
    std::size_t first = 1;
    for (const char step : order) {
      if (step == 'k') {
        steps.push_back(decant::top_k(k));
        first = std::max(first, size - k);
      } else if (step == 'p') {
        steps.push_back(decant::top_p(0.8));
        double total = 0, mass = 0;
        for (std::size_t id = first; id < size; ++id) total += static_cast<double>(id);
        std::size_t last = size;
        while (mass < 0.8 * total) mass += static_cast<double>(--last);
        first = last;
      } else {
        steps.push_back(decant::min_p(0.1));
        first = std::max(first, (size - 1 + 9) / 10);
      }
    }
    INFO(order);
    const tokens left = survivors(steps, logits);
    REQUIRE(left.size() == size - first);
    CHECK(left.front() == static_cast<token_id>(first));
    CHECK(left.back() == static_cast<token_id>(size - 1));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("a draw from a single token moves no later draw") {
  const row single{1}, pair{1, 1}, flat(256, 0.5F);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    // A draw is a function of its position, so what was drawn before cannot matter.
    const auto four_draws_after = [&](const row& logits) {
      candidates c;
      tokens drawn;
      for (std::size_t position = 0; position <= 4; ++position) {
        c.bind(std::span<const float>(position == 0 ? logits : flat));
        const token_id token = c.draw(draw_stream(seed).at(position));
        if (position > 0) drawn.push_back(token);
      }
      return drawn;
    };
    CHECK(four_draws_after(single) == four_draws_after(pair));
  }
}

}  // namespace llama_cpp_facts_tests
