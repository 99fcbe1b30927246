// SPDX-License-Identifier: MIT
#include <decant/speculative/string_draft.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/testing/markov_model.hpp>

#include "speculative/output_law.hpp"
#include "speculative/proposals.hpp"
#include "speculative/two_alphabets.hpp"
#include "support/catch.hpp"

namespace string_draft_tests {

using namespace decant;
using drafter_tests::chain_after;
using drafter_tests::ids;
using drafter_tests::proposed;
using drafter_tests::request_after;
using drafter_tests::tokens_of;

auto plain() { return temperature(1) | multinomial{}; }

/// Writes "ab" for ever, in its own tokens.
auto sure_model() {
  return stateless([](std::span<const token_id>) { return std::vector<float>{90, 0, 0}; }, 3);
}

TEST_CASE("what the draft model writes is split for the target", "[speculative][string_draft]") {
  auto model = sure_model();
  string_draft drafter(model, plain(), two_alphabets::to_draft(), two_alphabets::to_target());
  // "ab" "ab" "ab": a, ba, ba, b to the target.
  CHECK(chain_after(drafter, {1}, 3) == ids{0, 2, 2});
  CHECK(proposed(drafter, request_after({1}, 3)).mode() == proposal::deterministic);
  CHECK(chain_after(drafter, {1, 0, 2}, 1) == ids{0});
  CHECK(chain_after(drafter, {1}, 0).empty());
  CHECK(chain_after(drafter, {}, 3).empty());
  CHECK(tokens_of(proposed(drafter, request_after({1}, 9, 2))) == ids{0, 2});
  const ids text{1}, stop{2};
  draft_request request = request_after(text, 9);
  request.stop_tokens = stop;
  CHECK(tokens_of(proposed(drafter, request)) == ids{0, 2});
  request.min_confidence = 1.01;
  CHECK(proposed(drafter, request).empty());
}

TEST_CASE("the law stays the target's, whatever the vocabularies", "[speculative][string_draft]") {
  auto small = testing::random_markov_model(3, 1, 7);
  auto model = drafter_tests::table_model(3, 1, 6);
  string_draft drafter(small, plain(), two_alphabets::to_draft(), two_alphabets::to_target());
  const ids prompt{2, 0};
  CHECK(drafter_tests::distance_from_plain(model, prompt, drafter, plain(), 3, {.length = draft_length::fixed(2)}) <=
        1e-12);
}

}  // namespace string_draft_tests
