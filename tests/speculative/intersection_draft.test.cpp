// SPDX-License-Identifier: MIT
#include <decant/speculative/intersection_draft.hpp>

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/processors/frequency_penalty.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/speculative/draft_model.hpp>
#include <decant/testing/markov_model.hpp>

#include "speculative/output_law.hpp"
#include "speculative/proposals.hpp"
#include "speculative/two_alphabets.hpp"
#include "support/catch.hpp"

namespace intersection_draft_tests {

using namespace decant;
using drafter_tests::ids;
using drafter_tests::proposed;
using drafter_tests::request_after;
using drafter_tests::tokens_of;

auto penalised() { return frequency_penalty(0.3) | multinomial{}; }
auto plain() { return temperature(1) | multinomial{}; }

TEST_CASE("with one vocabulary it drafts as the draft model does", "[speculative][intersection_draft]") {
  // Each letter for itself, so that texts are split as they were.
  const std::vector<std::string> letters{"a", "b", "c"};
  auto table = testing::random_markov_model(3, 2, 1), same = table;
  draft_model direct(table, penalised());
  intersection_draft mapped(same, penalised(), vocabulary_map(letters, letters),
                            two_alphabets::between(letters, letters));
  for (token_id last = 0; last < 3; ++last) {
    const ids text{0, 2, last};
    const draft wanted = proposed(direct, request_after(text, 5)), got = proposed(mapped, request_after(text, 5));
    CHECK(tokens_of(got) == tokens_of(wanted));
    CHECK(got.mode() == wanted.mode());
    for (std::int32_t node = no_parent; node < 4; ++node) {
      for (token_id token = 0; token < 3; ++token) {
        CHECK(got.children_law(node).probability(token) ==
              Approx(wanted.children_law(node).probability(token)).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("only what both vocabularies hold is drafted, with its law", "[speculative][intersection_draft]") {
  const vocabulary_map map(two_alphabets::draft_names, two_alphabets::target_names);
  CHECK(map.size() == 2);
  auto table = testing::random_markov_model(3, 1, 2);
  const auto rows = table;
  intersection_draft drafter(table, plain(), map, two_alphabets::to_draft());
  const ids text{2, 0, 1};  // "ba" "a" "b" = b a ab to the draft model
  const draft drafted = proposed(drafter, request_after(text, 4));
  CHECK(drafted.size() == 4);
  const auto row = rows.row_after(ids{1, 2, 0});
  const double a = std::exp(static_cast<double>(row[2])), b = std::exp(static_cast<double>(row[1]));
  const law& first = drafted.children_law(no_parent);
  CHECK(first.ids == ids{0, 1});
  CHECK(first.probability(0) == Approx(a / (a + b)).epsilon(1e-6));
  for (const token_id token : tokens_of(drafted)) CHECK(token != 2);
}

TEST_CASE("the law stays the target's: two alphabets", "[speculative][intersection_draft]") {
  auto small = testing::random_markov_model(3, 1, 4);
  auto model = drafter_tests::table_model(3, 1, 3);
  intersection_draft drafter(small, plain(), {two_alphabets::draft_names, two_alphabets::target_names},
                             two_alphabets::to_draft());
  const ids prompt{2, 0};
  CHECK(drafter_tests::distance_from_plain(model, prompt, drafter, plain(), 3, {.length = draft_length::fixed(2)}) <=
        1e-12);
}

TEST_CASE("chains of common tokens keep to the request", "[speculative][intersection_draft]") {
  auto table = testing::random_markov_model(3, 1, 5);
  intersection_draft drafter(table, plain(), {two_alphabets::draft_names, two_alphabets::target_names},
                             two_alphabets::to_draft());
  const ids text{0, 1}, all{0, 1, 2};
  CHECK(proposed(drafter, request_after(text, 0)).empty());
  CHECK(proposed(drafter, request_after(text, 5, 2)).size() == 2);
  CHECK(proposed(drafter, request_after({}, 5)).empty());
  draft_request request = request_after(text, 5);
  request.stop_tokens = all;
  CHECK(proposed(drafter, request).size() == 1);
  request.min_confidence = 1.01;
  CHECK(proposed(drafter, request).empty());
  intersection_draft wrong(table, plain(), {{"a"}, two_alphabets::target_names}, two_alphabets::to_draft());
  CHECK_THROWS_AS(proposed(wrong, request_after(text, 5)), assertion_error);
}

}  // namespace intersection_draft_tests
