// SPDX-License-Identifier: MIT
#include <decant/processors/forced_eos.hpp>

#include "processors/lists.hpp"

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/processors/suppress_tokens.hpp>
#include <decant/testing/markov_model.hpp>

namespace forced_eos_tests {

using namespace lists;
using decant::forced_eos;
using options = decant::forcing_options;

TEST_CASE("the token at max_length is an end token, and no other is forced", "[processors]") {
  check_leaves(forced_eos(4, {7}), g8, {{1, 2}, 1});
  check_becomes(forced_eos(4, {7}), g8, {{1, 2, 3}, 1}, only(flat8, {7}));
  check_leaves(forced_eos(4, {7}), g8, {{1, 2, 3, 4}, 1});
  check_becomes(forced_eos(1, {7}), g8, {}, only(flat8, {7}));
}

TEST_CASE("forced_eos: several end tokens are equally probable", "[processors]") {
  check_becomes(forced_eos(2, {7, 3}), g8, {{1}}, only(flat8, {3, 7}));
  CHECK(law_after(forced_eos(2, {7, 3, 7}), g8, {{1}})[3] == Approx(0.5));
  check_becomes(forced_eos(2, {1, 2}), inf8, {{1}}, only(flat8, {2}));
}

TEST_CASE("the cases of the golden file of forced_eos_token_id, with revive as there", "[processors]") {
  for (const options& reading : {options{}, options{.revive = true}}) {
    check_becomes(forced_eos(3, {7}, reading), g8, {{1, 2}}, only(flat8, {7}));
    check_leaves(forced_eos(3, {7}, reading), g8, {{1}});
    check_leaves(forced_eos(3, {7}, reading), g8, {{1, 2, 3}});
    check_becomes(forced_eos(5, {0}, reading), g16, {{1, 2, 3, 4}}, only(row(16, 0.0F), {0}));
    check_becomes(forced_eos(10, {0}, reading), flat8, {tokens(9, 1)}, only(flat8, {0}));
    check_leaves(forced_eos(1, {0}, reading), neg12, {{1}});
    check_becomes(forced_eos(2, {0}, reading), peak8, {{1}}, only(flat8, {0}));
    check_becomes(forced_eos(2, {3}, reading), ties8, {{1}}, only(flat8, {3}));
  }
  check_becomes(forced_eos(2, {1}, {.revive = true}), inf8, {{1}}, only(flat8, {1}));
  check_becomes(forced_eos(2, {1}), inf8, {{1}}, row(8, gone));
}

TEST_CASE("an end token that another step has banned empties the row", "[processors]") {
  check_becomes(decant::chain(decant::suppress_tokens({7}), forced_eos(2, {7})), g8, {{1}}, row(8, gone));
  check_becomes(decant::chain(decant::suppress_tokens({7}), forced_eos(2, {7}, {.revive = true})), g8, {{1}},
                only(flat8, {7}));
}

TEST_CASE("a generation ends with an end token at max_length", "[processors]") {
  std::size_t longest = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto model = decant::testing::random_markov_model(5, 1, seed, 1);
    const tokens prompt{0, 1};
    decant::generate_options settings;
    settings.max_new_tokens = 20;
    settings.stop_tokens = {4};
    settings.seed = seed;
    const auto result = decant::generate(model, prompt, forced_eos(9, {4}) | decant::multinomial{}, settings);
    CHECK(result.finish == decant::finish_reason::stop_token);
    CHECK(result.tokens.back() == 4);
    CHECK(result.tokens.size() <= 7);
    longest = std::max(longest, result.tokens.size());
  }
  CHECK(longest == 7);
}

TEST_CASE("a max_length of 0 is off", "[processors]") {
  CHECK(forced_eos(0, {0}).off());
  CHECK(!forced_eos(1, {0}).off());
  check_identity(forced_eos(0, {0}));
  check_identity(forced_eos(0, {0}, {.revive = true}));
}

TEST_CASE("forced_eos refuses a negative length and a list without end tokens", "[processors]") {
  check_refused<forced_eos>("forced_eos.max_length", "forced_eos: max_length = -1 must be >= 0", std::int64_t{-1},
                            tokens{0});
  check_refused<forced_eos>("forced_eos.number of end tokens", "forced_eos: number of end tokens = 0 must be >= 1",
                            std::int64_t{5}, tokens{});
  check_made<forced_eos>("forced_eos(0)", std::int64_t{0}, tokens{0});
  check_made<forced_eos>("forced_eos(64)", std::int64_t{64}, tokens{0, 1});
  check_made<forced_eos>("forced_eos(64, revive = true)", std::int64_t{64}, tokens{0}, options{.revive = true});
  CHECK(forced_eos::make(std::numeric_limits<std::int64_t>::max(), tokens{0}).has_value());
}

TEST_CASE("an end token outside the vocabulary is misuse when it would be forced", "[processors]") {
  for (const bool revive : {false, true}) {
    check_misuse(forced_eos(1, {0, 8}, {.revive = revive}), g8);
    check_misuse(forced_eos(1, {-1}, {.revive = revive}), g8);
    check_leaves(forced_eos(3, {8}, {.revive = revive}), g8, {{1}});
  }
}

TEST_CASE("forced_eos on all sizes", "[processors]") {
  check_sizes(forced_eos(5, {0}));
  check_sizes(forced_eos(11, {0}));
  check_sizes(forced_eos(11, {0}, {.revive = true}));
}

TEST_CASE("forced_eos passes check_processor", "[processors]") {
  check_report_with_ids(forced_eos(5, {0}), 8);
  check_report_with_ids(forced_eos(12, {0, 7}), 8);
  check_report_of(forced_eos(12, {0, 7}, {.revive = true}), {.permutation = false,
                                                             .shift_invariant = true,
                                                             .may_revive = true,
                                                             .min_vocabulary = 8,
                                                             .allocations = decant::testing::allocations});
}

}  // namespace forced_eos_tests
