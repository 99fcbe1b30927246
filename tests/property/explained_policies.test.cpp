// SPDX-License-Identifier: MIT
#include <decant/chain/explain.hpp>

#include "processors/policies.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <decant/chain.hpp>
#include <decant/processors.hpp>

// explain() names the step that removed a token, for every policy that can remove one, and tells the rank and
// probability of those that stay.

namespace explained_policies_test {

using namespace policies;

const past before{{0, 1, 2, 3, 0, 1}, 2};

std::vector<any_processor> removing() {
  return {decant::top_k(2),
          decant::top_p(0.6),
          decant::min_p(0.3),
          decant::typical(0.3),
          decant::epsilon_cutoff(0.1),
          decant::eta_cutoff(0.5),
          decant::top_a(0.4),
          decant::tail_free(0.5),
          decant::top_n_sigma(0.7),
          decant::xtc(1, 0.1),
          decant::p_less(),
          decant::p_less_norm(),
          decant::top_h(0.3),
          decant::confidence_increment(0.05),
          decant::temperature(0),
          decant::edt(0, 1),
          decant::no_repeat_ngram(2),
          decant::encoder_no_repeat_ngram(2, tokens{1, 4}),
          decant::bad_words({{1, 3}, {5}}),
          decant::sequence_bias({{{1, 2}, -infinity}}),
          decant::logit_bias({{2, -infinity}}),
          decant::suppress_tokens({0, 4}),
          decant::suppress_at_begin({0, 4}, {.begin_index = 6}),
          decant::allowed_tokens({1, 5}),
          decant::prefix_allowed_tokens([](const step_context&) { return tokens{2, 3}; }),
          decant::min_length(9, {0}),
          decant::min_new_tokens(9, {1, 2}),
          decant::forced_bos(3, {.begin_index = 6}),
          decant::forced_eos(7, {4}),
          decant::thinking_budget(2, {.start = {2}, .end = {5}}),
          decant::green_list_watermark({.fraction = 0.5, .hard = true}),
          decant::unigram_watermark({.hard = true})};
}

TEST_CASE("every policy that removes tokens is named for each that it removes") {
  for (const any_processor& policy : removing()) {
    const std::string text = policy.describe();
    const tokens left = survivors(policy, golden, before);
    CAPTURE(text, left);
    CHECK(left.size() < golden.size());
    CHECK(!left.empty());
    decant::chain steps(decant::temperature(1), policy, decant::top_k(100));
    const auto context = context_after(before.text, before.prompt, draw_stream(1));
    const law staying = law_after(policy, golden, before);
    for (token_id id = 0; id < static_cast<token_id>(golden.size()); ++id) {
      CAPTURE(id);
      row logits = golden;
      const decant::explanation e = decant::explain(logits, context, id, steps);
      CHECK(logits == golden);
      CHECK(e.survives == (std::ranges::find(left, id) != left.end()));
      if (e.survives) {
        CHECK(e.step.empty());
        CHECK(e.probability == Approx(staying[static_cast<std::size_t>(id)]).epsilon(1e-6));
        CHECK(e.rank >= 1);
        CHECK(e.rank <= left.size());
        CHECK(e.tokens_after == left.size());
      } else {
        CHECK(e.step == text);
        CHECK(e.step_index == 1);
        CHECK(e.rank == static_cast<std::size_t>(id) + 1);  // the golden row falls
        CHECK(e.logit == golden[static_cast<std::size_t>(id)]);
        CHECK(e.tokens_before == golden.size());
        CHECK(e.tokens_after == left.size());
        CHECK(e.reason.starts_with(text + " removed it"));
      }
    }
  }
}

TEST_CASE("policies that only reshape are never named, and what they leave is told") {
  for (const any_processor& policy : std::vector<any_processor>{
           decant::temperature(0.7), decant::dynamic_temperature(0.5, 2), decant::edt(0.7, 0.5),
           decant::quadratic(0.3, 1.5), decant::renormalise(), decant::exponential_decay_length(1, 1.3, {2}),
           decant::repetition_penalty(1.3), decant::frequency_penalty(0.4), decant::presence_penalty(0.4),
           decant::encoder_repetition_penalty(1.3, tokens{1, 4}), decant::dry({}), decant::green_list_watermark(),
           decant::unigram_watermark(), decant::synthid_watermark({.keys = {1, 2, 3}})}) {
    CAPTURE(policy.describe());
    const row after = logits_after(policy, golden, before);
    const law left = law_after(policy, golden, before);
    decant::chain steps(policy);
    for (token_id id = 0; id < static_cast<token_id>(golden.size()); ++id) {
      const decant::explanation e =
          decant::explain(golden, context_after(before.text, before.prompt, draw_stream(1)), id, steps);
      CAPTURE(id);
      CHECK(e.survives);
      CHECK(e.step.empty());
      CHECK(e.logit == after[static_cast<std::size_t>(id)]);
      CHECK(e.probability == Approx(left[static_cast<std::size_t>(id)]).epsilon(1e-6));
    }
  }
}

}  // namespace explained_policies_test
