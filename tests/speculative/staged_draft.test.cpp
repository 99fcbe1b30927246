// SPDX-License-Identifier: MIT
#include <decant/speculative/staged_draft.hpp>

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/processors/frequency_penalty.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/xtc.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/speculative/draft_model.hpp>
#include <decant/speculative/prompt_lookup.hpp>
#include <decant/testing/chi_square.hpp>
#include <decant/testing/enumerate.hpp>
#include <decant/testing/markov_model.hpp>

#include "speculative/output_law.hpp"
#include "speculative/proposals.hpp"
#include "support/catch.hpp"

namespace staged_draft_tests {

using namespace decant;
using drafter_tests::ids;
using drafter_tests::proposed;
using drafter_tests::request_after;
using drafter_tests::tokens_of;

auto penalised() { return frequency_penalty(0.4) | multinomial{}; }

// Kept alive here: drafters hold them by reference.
auto table = testing::random_markov_model(3, 1, 40), smaller = testing::random_markov_model(3, 1, 41);

template <class S>
void check_law_of_chain(staged_draft<testing::markov_model, S, decltype(penalised())>& staged, const ids& text,
                        std::size_t depth) {
  auto alone = table;
  draft_model direct(alone, penalised());
  const auto law_of = [&](auto& drafter) {
    return testing::enumerate_law([&](decision_hook& hook) {
      draft_request request = request_after(text, depth);
      request.draws = request.draws.with_hook(&hook);
      request.context.draws = request.context.draws.with_hook(&hook);
      return tokens_of(proposed(drafter, request));
    });
  };
  CHECK(testing::distance(law_of(staged), law_of(direct)) < 1e-12);
}

TEST_CASE("a staged draft has the law of the draft model's own", "[speculative][staged_draft]") {
  staged_draft over_model(table, draft_model(smaller, penalised()), penalised(), 2);
  check_law_of_chain(over_model, {0, 1}, 3);
  staged_draft over_text(table, prompt_lookup(), penalised(), 2);
  check_law_of_chain(over_text, {0, 1, 2, 0, 1}, 4);
}

TEST_CASE("each token carries the draft model's law at its place", "[speculative][staged_draft]") {
  staged_draft drafter(table, draft_model(smaller, penalised()), penalised(), 2);
  auto reference = penalised();
  for (token_id last = 0; last < 3; ++last) {
    ids text{1, last};
    const draft chain = proposed(drafter, request_after(text, 6));
    CHECK(chain.size() == 6);
    CHECK(chain.is_chain());
    CHECK(chain.mode() == proposal::with_replacement);
    ids history = text;
    for (std::int32_t node = no_parent; node < 5; ++node) {
      CHECK(chain.children_law(node) == reference.law_of(table.row_after(history), context_after(history, 2, {})));
      history.push_back(chain.token(node + 1));
    }
  }
}

TEST_CASE("a drafter that is drafted for itself agrees with all it is given", "[speculative][staged_draft]") {
  // The same model twice: each pass of it decides inner_depth + 1 tokens.
  struct counting : testing::markov_model {
    explicit counting(const testing::markov_model& model) : testing::markov_model(model) {}
    void score(std::span<const token_id> tokens) {
      ++passes;
      testing::markov_model::score(tokens);
    }
    std::size_t passes = 0;
  };
  counting model(table);
  auto same = table;
  staged_draft drafter(model, draft_model(same, penalised()), penalised(), 2);
  CHECK(proposed(drafter, request_after({0, 1}, 6)).size() == 6);
  CHECK(model.passes == 2);
}

TEST_CASE("an inner drafter is told of all tokens of its round", "[speculative][staged_draft]") {
  struct watching {
    void propose(const draft_request&, draft& out) const { out.add(1); }
    void feedback(const round_outcome& outcome) {
      told.assign(outcome.tokens.begin(), outcome.tokens.end());
      bases.push_back(outcome.base);
      CHECK(outcome.tokens.size() > outcome.base);
    }
    ids& told;
    std::vector<std::size_t>& bases;
  };
  ids told;
  std::vector<std::size_t> bases;
  staged_draft staged(table, watching{told, bases}, penalised(), 2);
  const ids text{0, 1};
  const draft chain = proposed(staged, request_after(text, 40));
  ids all = text;
  all.insert(all.end(), chain.tokens().begin(), chain.tokens().end());
  CHECK(told == all);
  CHECK(bases.size() > 10);
  CHECK(std::ranges::is_sorted(bases));
}

TEST_CASE("a coin in a nested chain is an error", "[speculative][staged_draft]") {
  const auto coins = xtc(0.5, 0.1) | multinomial{};
  staged_draft outer(table, prompt_lookup(), coins, 2);
  CHECK_THROWS_WITH(proposed(outer, request_after({0, 1, 0}, 3)),
                    Catch::Contains("staged_draft: decoder") && Catch::Contains("must hold no random processor"));
  staged_draft inner(table, draft_model(smaller, coins), penalised(), 2);
  CHECK_THROWS_AS(proposed(inner, request_after({0, 1, 0}, 3)), parameter_error);
  CHECK_THROWS_WITH(staged_draft(table, prompt_lookup(), penalised(), 0),
                    "staged_draft: inner_depth = 0 must be at least 1");
}

TEST_CASE("staged drafts keep to the request", "[speculative][staged_draft]") {
  staged_draft drafter(table, prompt_lookup(), penalised(), 3);
  const ids text{0, 1, 2, 0, 1}, all{0, 1, 2};
  CHECK(proposed(drafter, request_after(text, 0)).empty());
  CHECK(proposed(drafter, request_after(text, 5, 2)).size() == 2);
  draft_request request = request_after(text, 5);
  request.stop_tokens = all;
  CHECK(proposed(drafter, request).size() == 1);
  request.min_confidence = 1.01;
  CHECK(proposed(drafter, request).empty());
}

void check_seeded_law(std::size_t seeds) {
  auto model = drafter_tests::table_model(3, 1, 42);
  staged_draft drafter(table, draft_model(smaller, penalised()), penalised(), 2);
  const ids prompt{0, 1};
  const auto expected = testing::sequence_law(model, prompt, penalised(), 4);
  std::map<ids, std::size_t> seen;
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    ++seen[speculate(model, prompt, drafter, penalised(), {.max_new_tokens = 4, .seed = seed},
                     {.length = draft_length::fixed(3)})
               .tokens];
  }
  std::vector<double> probabilities;
  std::vector<std::size_t> counts;
  for (const auto& [tokens, probability] : expected) {
    probabilities.push_back(probability);
    counts.push_back(seen[tokens]);
  }
  CHECK(seen.size() <= expected.size());
  CHECK(testing::chi_square(counts, probabilities).p_value > 1e-4);
}

TEST_CASE("staged speculation has the target's law: 20,000 seeds", "[speculative][staged_draft]") {
  check_seeded_law(20'000);
}
TEST_CASE("staged speculation has the target's law: 400,000 seeds", "[speculative][staged_draft][long]") {
  check_seeded_law(400'000);
}

}  // namespace staged_draft_tests
