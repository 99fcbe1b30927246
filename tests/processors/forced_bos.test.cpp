// SPDX-License-Identifier: MIT
#include <decant/processors/forced_bos.hpp>

#include "processors/lists.hpp"

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/processors/suppress_tokens.hpp>
#include <decant/testing/markov_model.hpp>

namespace forced_bos_tests {

using namespace lists;
using decant::forced_bos;
using options = decant::forced_bos_options;

TEST_CASE("the first token of the output is forced, and no other", "[processors]") {
  check_becomes(forced_bos(3), g8, {{0, 1, 2}, 3}, only(flat8, {3}));
  check_leaves(forced_bos(3), g8, {{0, 1, 2, 3}, 3});
  check_leaves(forced_bos(3), g8, {{0, 1, 2, 3, 4}, 3});
  check_becomes(forced_bos(3), g8, {{}, 0}, only(flat8, {3}));
  check_leaves(forced_bos(3), g8, {{0}, 0});
}

TEST_CASE("forcing a token that is gone empties the row", "[processors]") {
  check_becomes(forced_bos(1), inf8, {{0}, 1}, row(8, gone));
  check_becomes(decant::chain(decant::suppress_tokens({3}), forced_bos(3)), g8, {{0}, 1}, row(8, gone));
}

TEST_CASE("the cases of the golden file of forced_bos_token_id, through begin_index and revive", "[processors]") {
  const auto hf = [](token_id id) { return forced_bos(id, {.begin_index = 1, .revive = true}); };
  check_becomes(hf(3), g8, {{0}}, only(flat8, {3}));
  check_leaves(hf(3), g8, {{0, 1}});
  check_becomes(hf(1), inf8, {{0}}, only(flat8, {1}));
  check_becomes(hf(0), single8, {{1}}, only(flat8, {0}));
  check_becomes(hf(7), flat8, {{1}}, only(flat8, {7}));
  check_leaves(hf(0), g8, {{1, 2, 3}});
  check_becomes(hf(3), big8, {{0}}, only(flat8, {3}));
  check_leaves(hf(7), ties8, {{2, 2}});
}

TEST_CASE("forced_bos: begin_index counts all tokens and does not look at where the output begins", "[processors]") {
  const forced_bos policy(3, {.begin_index = 2});
  check_leaves(policy, g8, {{1}, 1});
  check_becomes(policy, g8, {{1, 1}, 1}, only(flat8, {3}));
  check_becomes(policy, inf8, {{1, 1}, 1}, row(8, gone));
}

TEST_CASE("a generation begins with the forced token", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    auto model = decant::testing::random_markov_model(5, 1, seed, 1);
    const tokens prompt{0, 1};
    decant::generate_options settings;
    settings.max_new_tokens = 20;
    settings.seed = seed;
    const auto result = decant::generate(model, prompt, forced_bos(4) | decant::multinomial{}, settings);
    CHECK(result.tokens.front() == 4);
    CHECK(result.tokens.size() == 20);
    CHECK(std::ranges::count(result.tokens, 4) < 20);
  }
}

TEST_CASE("a forced id outside the vocabulary is misuse when it would be forced", "[processors]") {
  for (const bool revive : {false, true}) {
    check_misuse(forced_bos(8, {.revive = revive}), g8);
    check_misuse(forced_bos(-1, {.revive = revive}), g8);
    check_leaves(forced_bos(8, {.revive = revive}), g8, {{1}});
  }
}

TEST_CASE("forced_bos can be made and says what it is", "[processors]") {
  check_made<forced_bos>("forced_bos(3)", 3);
  check_made<forced_bos>("forced_bos(3, revive = true)", 3, options{.revive = true});
  check_made<forced_bos>("forced_bos(3, begin_index = 1, revive = true)", 3, options{.begin_index = 1, .revive = true});
}

TEST_CASE("forced_bos on all sizes", "[processors]") {
  check_sizes(forced_bos(0));
  check_sizes(forced_bos(0, {.begin_index = 10}));
  check_sizes(forced_bos(0, {.begin_index = 10, .revive = true}));
}

TEST_CASE("forced_bos passes check_processor", "[processors]") {
  check_report_with_ids(forced_bos(0), 8);
  check_report_with_ids(forced_bos(7, {.begin_index = 11}), 8);
  check_report_of(forced_bos(7, {.begin_index = 11, .revive = true}), {.permutation = false,
                                                                       .shift_invariant = true,
                                                                       .may_revive = true,
                                                                       .min_vocabulary = 8,
                                                                       .allocations = decant::testing::allocations});
}

}  // namespace forced_bos_tests
