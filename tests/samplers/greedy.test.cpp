// SPDX-License-Identifier: MIT
#include <decant/samplers/greedy.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/processors.hpp>
#include <decant/testing/markov_model.hpp>

namespace greedy_tests {

using namespace policies;
using decant::decode_with;
using decant::greedy;

static_assert(decant::LawSampler<greedy>);

token_id pick(const row& logits) {
  candidates c;
  c.bind(std::span<const float>(logits));
  return greedy{}(c, {});
}

token_id best_of(const row& logits) {
  const auto order = reference::descending(reference::widened(logits));
  return order.empty() ? no_token : static_cast<token_id>(order[0]);
}

TEST_CASE("greedy takes the largest logit, the lowest id among equals", "[samplers]") {
  CHECK(pick({1, 3, 2}) == 1);
  CHECK(pick({1, 3, 3, 2, 3}) == 1);
  CHECK(pick({5}) == 0);
  CHECK(pick({gone, -5, gone}) == 1);
  CHECK(pick(row(70, -3)) == 0);
  CHECK(pick({-1e30F, -3e38F}) == 0);
  CHECK(pick(golden) == 0);
}

TEST_CASE("greedy ties -0 and 0, and a denormal, by id", "[samplers]") {
  CHECK(pick({-0.0F, 0.0F}) == 0);
  CHECK(pick({0.0F, 1e-45F}) == 0);
  CHECK(pick({0.0F, 1.2e-38F}) == 1);
}

TEST_CASE("greedy works where all logits are far below 0 (MNN: a maximum that starts at FLT_MIN)", "[samplers]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    row logits = random_row(50, seed), low = logits;
    for (float& z : low) z -= 512;
    CHECK(pick(low) == best_of(low));
    CHECK(pick(row(8, -1000.0F)) == 0);
  }
}

TEST_CASE("greedy leaves its token alone", "[samplers]") {
  candidates c;
  c.bind(std::span<const float>(golden));
  greedy{}.narrow(c, {});
  CHECK(c.size() == 1);
  CHECK(c.contains(0));
  CHECK(decode_with(greedy{}).law_of(std::span<const float>(golden), {}).ids == tokens{0});
}

TEST_CASE("greedy does not ask for a random number", "[samplers]") {
  auto model = decant::testing::random_markov_model(5, 1, 4);
  CHECK(decant::testing::sequence_law(model, tokens{0}, decode_with(greedy{}), 6).size() == 1);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    candidates c;
    c.bind(std::span<const float>(golden));
    CHECK(greedy{}(c, context_after({}, 0, draw_stream(seed))) == 0);
  }
}

TEST_CASE("greedy does not change under a z + b with a > 0", "[samplers]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const row logits = random_row(60, seed);
    for (const float a : {0.25F, 1.0F, 8.0F}) {
      for (const float b : {-64.0F, 0.0F, 64.0F}) {
        row moved = logits;
        for (float& z : moved) z = a * z + b;
        CHECK(pick(moved) == best_of(moved));
        candidates c;
        c.bind(std::span<const float>(logits));
        c.affine(static_cast<double>(a), static_cast<double>(b));
        CHECK(greedy{}(c, {}) == best_of(logits));
      }
    }
  }
}

TEST_CASE("greedy equals every sampler that is turned down to one token", "[samplers]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const row logits = random_row(60, seed);
    const tokens best(10, best_of(logits));
    CHECK(drawn_after(decant::temperature(0), logits, 10) == best);
    CHECK(drawn_after(decant::temperature(1e-20), logits, 10) == best);
    CHECK(drawn_after(decant::top_k(1), logits, 10) == best);
    CHECK(drawn_after(decant::top_p(0), logits, 10) == best);
    CHECK(drawn_after(decant::top_p(1e-12), logits, 10) == best);
    CHECK(drawn_after(decant::min_p(1), logits, 10) == best);
  }
}

TEST_CASE("greedy on a model equals a loop by hand", "[samplers]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    auto model = decant::testing::random_markov_model(7, 2, seed);
    tokens text{3};
    decant::generate_options options;
    options.max_new_tokens = 20;
    const auto result = decant::generate(model, text, decode_with(greedy{}), options);
    for (int i = 0; i < 20; ++i) {
      const auto next = model.row_after(text);
      text.push_back(best_of(row(next.begin(), next.end())));
    }
    CHECK(result.tokens == tokens(text.begin() + 1, text.end()));
  }
}

TEST_CASE("greedy uses all of a penalty's history (CTranslate2#615)", "[samplers]") {
  auto decoder = decant::repetition_penalty(2) | greedy{};
  const row logits{4, 3, 2.5F};
  CHECK(decoder.step(std::span<const float>(logits), context_after(tokens{0, 2, 2}, 0, {})) == 1);
}

TEST_CASE("greedy gives no token on a bad row (colibri#369, rten#1089)", "[samplers]") {
  CHECK(pick(row(5, gone)) == no_token);
  for (std::size_t place = 0; place < 5; ++place) {
    for (const float bad : {nan_float, infinite_float}) {
      row logits{1, 2, 3, 4, 5};
      logits[place] = bad;
      CHECK(pick(logits) == no_token);
      CHECK_THROWS_AS(decode_with(greedy{}).step(std::span<const float>(logits), step_context{}), decant::decode_error);
    }
  }
}

TEST_CASE("greedy on every size of vocabulary", "[samplers]") {
  for (const std::size_t size : {std::size_t{32'001}, std::size_t{151'937}}) {
    for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
      row logits = random_row(size, 3);
      logits[place] = 1000;
      CHECK(pick(logits) == static_cast<token_id>(place));
    }
  }
  for (std::size_t size = 1; size <= 70; ++size) CHECK(pick(random_row(size, size)) == best_of(random_row(size, size)));
}

TEST_CASE("greedy passes check_sampler", "[samplers]") {
  const auto report = decant::testing::check_sampler(
      greedy{}, {.shift_invariant = true, .discrete = true, .allocations = decant::testing::allocations});
  INFO(report.text());
  CHECK(report.ok);
  CHECK(greedy{}.describe() == "greedy");
}

}  // namespace greedy_tests
