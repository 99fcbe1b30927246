// SPDX-License-Identifier: MIT
#include <decant/chain.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <decant/processors.hpp>
#include <decant/samplers.hpp>

#include "support/catch.hpp"

// What says of itself that it leaves the argmax alone must do so, and a greedy decoder that leaves such steps out must
// still take the same token.

namespace argmax_invariant_test {

using namespace decant;

std::vector<any_processor> invariant_policies() {
  return {temperature(0),
          temperature(1e-30),
          temperature(0.3),
          temperature(1e30),
          dynamic_temperature(0.2, 3),
          edt(0.7, 0.6),
          renormalise{},
          top_k(1),
          top_k(3),
          top_p(0),
          top_p(0.4),
          min_p(0.3),
          min_p(1),
          epsilon_cutoff(0.05),
          epsilon_cutoff(1),
          eta_cutoff(0.3),
          top_a(0.4),
          top_a(1),
          tail_free(0),
          tail_free(0.7),
          top_n_sigma(0),
          top_n_sigma(0.7),
          p_less{},
          p_less_norm{},
          top_h(0.2),
          confidence_increment(0),
          confidence_increment(0.2, 1, increment_rule::each)};
}

std::vector<any_processor> other_policies() {
  const std::vector<token_id> zero{0};
  return {repetition_penalty(1.7),
          encoder_repetition_penalty(3, zero),
          frequency_penalty(0.9),
          presence_penalty(1.1),
          dry({.multiplier = 2, .allowed_length = 1}),
          no_repeat_ngram(1),
          encoder_no_repeat_ngram(1, zero),
          logit_bias({{0, 1.5F}}),
          sequence_bias({{zero, 1.5}}),
          bad_words({zero}),
          allowed_tokens(zero),
          suppress_tokens(zero),
          suppress_at_begin(zero, {.begin_index = 6}),
          min_length(7, zero),
          min_new_tokens(5, zero),
          exponential_decay_length(0, 1.5, zero),
          forced_bos(0, {.begin_index = 6}),
          forced_eos(7, zero),
          thinking_budget(0, {.start = zero, .end = zero, .prompt = true}),
          remove_invalid_values(),
          green_list_watermark(),
          unigram_watermark(),
          synthid_watermark({.keys = {1, 2, 3}}),
          xtc(1, 0.05),
          typical(0.3),
          quadratic(0.4, 2)};
}

/// Small rows with ties, gone tokens and far values; bad ones among them.
std::vector<float> some_row(std::uint64_t seed) {
  const draw_stream draws(seed);
  const auto unit = [&](std::uint32_t i) { return draws.uniform(purpose::user, i); };
  std::vector<float> row(1 + static_cast<std::size_t>(unit(0) * 40));
  const double spread = unit(1) < 0.2 ? 1e30 : unit(1) < 0.4 ? 1e-3 : 4;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double u = unit(static_cast<std::uint32_t>(2 + i));
    row[i] = u < 0.1 ? gone : static_cast<float>(unit(1) < 0.6 ? u * spread : static_cast<double>(int(u * 4)));
  }
  if (seed % 50 == 0) row[row.size() / 2] = std::numeric_limits<float>::quiet_NaN();
  return row;
}

const std::vector<token_id> history{0, 1, 2, 0, 3, 0};

template <class P>
token_id argmax_after(P& processor, const std::vector<float>& logits, std::uint64_t seed) {
  std::vector<token_id> past;
  for (const token_id id : history) past.push_back(id % static_cast<token_id>(logits.size()));
  candidates row;
  row.bind(logits);
  processor(row, context_after(past, 2, draw_stream(seed)));
  return row.argmax();
}

TEST_CASE("policies that call themselves argmax-invariant never move the argmax", "[chain]") {
  auto nothing = chain();
  std::vector<any_processor> policies = invariant_policies();
  for (any_processor& policy : policies) {
    INFO(policy.describe());
    CHECK(policy.is_argmax_invariant());
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
      const auto logits = some_row(seed);
      REQUIRE(argmax_after(policy, logits, seed) == argmax_after(nothing, logits, seed));
    }
  }
}

TEST_CASE("policies that do not call themselves so do move it somewhere", "[chain]") {
  auto nothing = chain();
  std::vector<any_processor> policies = other_policies();
  policies.pop_back();  // quadratic keeps the order, but may make ties of what differs by less than a float holds
  for (any_processor& policy : policies) {
    INFO(policy.describe());
    CHECK(!policy.is_argmax_invariant());
    bool moved = false;
    for (std::uint64_t seed = 1; seed <= 1000 && !moved; ++seed) {
      const auto logits = some_row(seed);
      moved = argmax_after(policy, logits, seed) != argmax_after(nothing, logits, seed);
    }
    CHECK(moved);
  }
}

TEST_CASE("the trait is known when compiled, for chains too", "[chain]") {
  STATIC_REQUIRE(argmax_invariant_v<top_p>);
  STATIC_REQUIRE(!argmax_invariant_v<repetition_penalty>);
  STATIC_REQUIRE(argmax_invariant_v<chain<top_k, temperature>>);
  STATIC_REQUIRE(!argmax_invariant_v<chain<top_k, frequency_penalty>>);
  const auto lambda = [](candidates&, const step_context&) {};
  STATIC_REQUIRE(!argmax_invariant_v<decltype(lambda)>);
  CHECK(!is_argmax_invariant(lambda));
}

TEST_CASE("the run-time twin knows policies at their off value and what is put together at run time", "[chain]") {
  CHECK(is_argmax_invariant(frequency_penalty(0)));
  CHECK(!is_argmax_invariant(frequency_penalty(0.1)));
  CHECK(is_argmax_invariant(chain(top_k(3), repetition_penalty(1))));
  CHECK(!is_argmax_invariant(chain(top_k(3), repetition_penalty(2))));
  CHECK(is_argmax_invariant(dynamic_chain{}));
  CHECK(is_argmax_invariant(dynamic_chain{top_k(3), chain(min_p(0.1))}));
  CHECK(!is_argmax_invariant(dynamic_chain{top_k(3), no_repeat_ngram(2)}));
  CHECK(is_argmax_invariant(named("mine", top_p(0.5))));
  CHECK(takes_argmax(greedy{}));
  CHECK(!takes_argmax(multinomial{}));
  CHECK(takes_argmax(any_sampler(greedy{})));
  CHECK(!takes_argmax(any_sampler(gumbel{})));
}

/// Counts its calls, and says that it leaves the argmax alone.
struct counted {
  static constexpr bool argmax_invariant = true;
  int* calls;
  void operator()(candidates&, const step_context&) const { ++*calls; }
};
struct counted_other {
  int* calls;
  void operator()(candidates&, const step_context&) const { ++*calls; }
};

TEST_CASE("a greedy decoder leaves out the steps at the end that cannot change the argmax, and no others", "[chain]") {
  const std::vector<float> logits{1, 3, 2};
  const std::vector<token_id> none;
  const step_context context = context_after(none, 0, draw_stream(1));
  int invariant = 0, other = 0;
  const auto run = [&](auto decoding) {
    invariant = other = 0;
    CHECK(decoding.step(logits, context) == 1);
  };
  const counted a{&invariant};
  const counted_other b{&other};
  run(chain(a, b, a, a) | greedy{});
  CHECK((invariant == 1 && other == 1));
  run(chain(b, chain(b, a), a) | greedy{});
  CHECK((invariant == 0 && other == 2));
  run(dynamic_chain{a, b, chain(a, b, a)} | any_sampler(greedy{}));
  CHECK((invariant == 2 && other == 2));
  run(chain(a, a) | greedy{});
  CHECK(invariant == 0);
  run(chain(a, b, a) | decant::named("x", a) | any_sampler(greedy{}));
  CHECK((invariant == 1 && other == 1));
  // What is reported of a token needs every step.
  invariant = other = 0;
  token_log_probs report;
  auto asked = chain(b, a) | greedy{};
  CHECK(asked.try_step(logits, context, {.mode = log_prob_mode::processed_logits}, report).token == 1);
  CHECK((invariant == 1 && other == 2));
}

TEST_CASE("greedy with steps left out takes the token that it takes with all of them", "[chain]") {
  std::vector<any_processor> policies = invariant_policies();
  for (const any_processor& other : other_policies()) policies.push_back(other);
  candidates row;
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    const draw_stream draws(seed, 1);
    const auto logits = some_row(seed);
    std::vector<token_id> past;
    for (const token_id id : history) past.push_back(id % static_cast<token_id>(logits.size()));
    const step_context context = context_after(past, 2, draw_stream(seed));
    dynamic_chain steps;
    const std::size_t length = 1 + static_cast<std::size_t>(draws.uniform(purpose::user, 0) * 6);
    for (std::size_t i = 1; i <= length; ++i) {
      const double u = draws.uniform(purpose::user, static_cast<std::uint32_t>(i));
      steps.push_back(policies[static_cast<std::size_t>(u * static_cast<double>(policies.size()))]);
    }
    INFO(steps.describe());
    row.bind(logits);
    steps(row, context);
    const token_id expected = greedy{}(row, context);
    const row_status status = row.status();
    row.release();
    auto decoding = steps | greedy{};
    const step_outcome outcome = decoding.try_step(logits, context);
    REQUIRE(outcome.token == expected);
    REQUIRE(outcome.status == status);
  }
}

}  // namespace argmax_invariant_test
