// SPDX-License-Identifier: MIT
#include <decant/processors/suppress_tokens.hpp>

#include "processors/lists.hpp"

#include <decant/chain.hpp>
#include <decant/processors/logit_bias.hpp>
#include <decant/processors/top_k.hpp>

namespace suppress_tokens_tests {

using namespace lists;
using decant::suppress_tokens;

TEST_CASE("the cases of the golden file of suppress_tokens", "[processors]") {
  const past before{{1}};
  check_becomes(suppress_tokens({0}), g8, before, without(g8, {0}));
  check_becomes(suppress_tokens({0, 3, 5}), g8, before, without(g8, {0, 3, 5}));
  check_becomes(suppress_tokens({0, 1, 2, 3, 4, 5, 6}), g8, before, only(g8, {7}));
  check_becomes(suppress_tokens({15, 15, 0}), g16, before, without(g16, {0, 15}));
  check_becomes(suppress_tokens({7}), flat8, before, without(flat8, {7}));
  check_becomes(suppress_tokens({3, 4}), ties8, before, without(ties8, {3, 4}));
  check_leaves(suppress_tokens({}), neg12, before);
}

TEST_CASE("all tokens suppressed leave an empty row", "[processors]") {
  check_becomes(suppress_tokens({0, 1, 2, 3, 4, 5, 6, 7}), g8, {}, row(8, gone));
  check_becomes(suppress_tokens({5}), single8, {}, row(8, gone));
}

TEST_CASE("suppressing is a bias of -inf", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(40, seed);
    const suppress_tokens policy({3, 30, 3});
    const decant::logit_bias bias({{3, -infinity}, {30, -infinity}});
    CHECK(same_bits(logits_after(policy, logits), logits_after(bias, logits)));
    CHECK(drawn_after(policy, logits) == drawn_after(bias, logits));
  }
}

TEST_CASE("suppression works at every step and after a narrowing", "[processors]") {
  for (std::size_t length = 0; length < 5; ++length) {
    CHECK(survivors(suppress_tokens({1}), flat8, {tokens(length, 1), length / 2}) == tokens{0, 2, 3, 4, 5, 6, 7});
  }
  CHECK(survivors(decant::chain(decant::top_k(3), suppress_tokens({3, 7})), g8) == tokens{0, 6});
}

TEST_CASE("suppression can remove the token that would make the row bad", "[processors]") {
  CHECK(survivors(suppress_tokens({1}), {1, nan_float, 2}) == tokens{0, 2});
}

TEST_CASE("suppress_tokens: an empty list is off", "[processors]") {
  CHECK(suppress_tokens({}).off());
  CHECK(!suppress_tokens({0}).off());
  check_identity(suppress_tokens({}));
}

TEST_CASE("suppressing an id outside the vocabulary is misuse", "[processors]") {
  check_misuse(suppress_tokens({0, 8}), g8);
  check_misuse(suppress_tokens({-1}), g8);
  check_misuse(suppress_tokens({8}), row(8, gone));
}

TEST_CASE("suppress_tokens can be made and says what it is", "[processors]") {
  check_made<suppress_tokens>("suppress_tokens(0 tokens)", tokens{});
  check_made<suppress_tokens>("suppress_tokens(3 tokens)", tokens{0, 3, 5});
}

TEST_CASE("suppress_tokens on all sizes and on bad rows", "[processors]") {
  check_sizes(suppress_tokens({0}), true);
  check_bad_rows(suppress_tokens({0}), true);
}

TEST_CASE("suppress_tokens passes check_processor", "[processors]") {
  check_report_with_ids(suppress_tokens({0, 3, 7}), 8);
  check_report_of(suppress_tokens({}));
}

}  // namespace suppress_tokens_tests
