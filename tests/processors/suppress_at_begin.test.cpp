// SPDX-License-Identifier: MIT
#include <decant/processors/suppress_at_begin.hpp>

#include "processors/lists.hpp"

#include <decant/processors/suppress_tokens.hpp>

namespace suppress_at_begin_tests {

using namespace lists;
using decant::suppress_at_begin;
using options = decant::suppress_at_begin_options;

TEST_CASE("the listed tokens cannot be the first of the output", "[processors]") {
  check_becomes(suppress_at_begin({0, 3}), g8, {{1, 2, 3}, 3}, without(g8, {0, 3}));
  check_leaves(suppress_at_begin({0, 3}), g8, {{1, 2, 3, 4}, 3});
  check_leaves(suppress_at_begin({0, 3}), g8, {{1, 2, 3, 4, 5}, 3});
}

TEST_CASE("a text without a prompt begins with its first token", "[processors]") {
  check_becomes(suppress_at_begin({2}), g8, {{}, 0}, without(g8, {2}));
  check_leaves(suppress_at_begin({2}), g8, {{1}, 0});
}

TEST_CASE("the cases of the golden file of begin_suppress_tokens, through the option begin_index", "[processors]") {
  const auto at = [](const tokens& ids, std::size_t index) { return suppress_at_begin(ids, {.begin_index = index}); };
  check_becomes(at({0}, 1), g8, {{1}}, without(g8, {0}));
  check_leaves(at({0}, 1), g8, {{1, 2}});
  check_becomes(at({0, 3}, 3), g8, {{1, 2, 3}}, without(g8, {0, 3}));
  check_becomes(at({4}, 2), inf8, {{1, 1}}, without(inf8, {4}));
  check_becomes(at({1, 2, 3}, 5), g16, {{1, 1, 1, 1, 1}}, without(g16, {1, 2, 3}));
  check_becomes(at({7}, 1), flat8, {{0}}, without(flat8, {7}));
  check_becomes(at({5}, 1), single8, {{0}}, row(8, gone));
  check_becomes(at({3, 4}, 2), ties8, {{0, 0}}, without(ties8, {3, 4}));
}

TEST_CASE("suppress_at_begin: begin_index counts all tokens and does not look at where the output begins",
          "[processors]") {
  const suppress_at_begin policy({0}, {.begin_index = 2});
  check_leaves(policy, g8, {{1}, 1});
  check_becomes(policy, g8, {{1, 1}, 1}, without(g8, {0}));
  check_leaves(policy, g8, {{1, 1, 1}, 3});
  check_becomes(suppress_at_begin({0}, {.begin_index = 0}), g8, {}, without(g8, {0}));
}

TEST_CASE("at the begin it is suppress_tokens, later nothing", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(40, seed);
    const past begin{{1, 2}, 2};
    CHECK(drawn_after(suppress_at_begin({3, 9}), logits, 50, begin) ==
          drawn_after(decant::suppress_tokens({3, 9}), logits, 50, begin));
    check_leaves(suppress_at_begin({3, 9}), logits, {{1, 2, 0}, 2});
  }
}

TEST_CASE("suppress_at_begin: an empty list is off at every step", "[processors]") {
  CHECK(suppress_at_begin({}).off());
  CHECK(suppress_at_begin({}, {.begin_index = 9}).off());
  CHECK(!suppress_at_begin({0}).off());
  check_identity(suppress_at_begin({}));
  check_identity(suppress_at_begin({}, {.begin_index = 9}));
}

TEST_CASE("suppress_at_begin: an id outside the vocabulary is misuse when it would be banned", "[processors]") {
  check_misuse(suppress_at_begin({8}), g8);
  check_misuse(suppress_at_begin({-1}), g8);
}

TEST_CASE("suppress_at_begin can be made and says what it is", "[processors]") {
  check_made<suppress_at_begin>("suppress_at_begin(2 tokens)", tokens{0, 3});
  check_made<suppress_at_begin>("suppress_at_begin(1 token, begin_index = 5)", tokens{0}, options{.begin_index = 5});
}

TEST_CASE("suppress_at_begin on all sizes and on bad rows", "[processors]") {
  for (const suppress_at_begin& policy : {suppress_at_begin({0}), suppress_at_begin({0}, {.begin_index = 9})}) {
    check_sizes(policy, true);
    check_bad_rows(policy, true);
  }
}

TEST_CASE("suppress_at_begin passes check_processor", "[processors]") {
  check_report_with_ids(suppress_at_begin({0, 7}), 8);
  check_report_with_ids(suppress_at_begin({0, 7}, {.begin_index = 11}), 8);
  check_report_of(suppress_at_begin({}));
}

}  // namespace suppress_at_begin_tests
