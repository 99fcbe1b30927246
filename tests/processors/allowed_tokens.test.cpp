// SPDX-License-Identifier: MIT
#include <decant/processors/allowed_tokens.hpp>

#include "processors/lists.hpp"

#include <decant/chain.hpp>
#include <decant/processors/suppress_tokens.hpp>
#include <decant/processors/top_k.hpp>

namespace allowed_tokens_tests {

using namespace lists;
using decant::allowed_tokens;

TEST_CASE("only the listed tokens are left, with their logits", "[processors]") {
  check_becomes(allowed_tokens({0, 3, 5}), g8, {}, only(g8, {0, 3, 5}));
  check_becomes(allowed_tokens({7}), flat8, {}, only(flat8, {7}));
}

TEST_CASE("allowed_tokens: order and repetitions in the list do not matter", "[processors]") {
  check_becomes(allowed_tokens({5, 0, 3, 0, 5, 5}), g8, {}, only(g8, {0, 3, 5}));
}

TEST_CASE("an allowed token that is gone stays gone", "[processors]") {
  check_becomes(allowed_tokens({1, 2}), inf8, {}, only(inf8, {2}));
  check_becomes(allowed_tokens({1, 3}), inf8, {}, row(8, gone));
}

TEST_CASE("allowed_tokens: a list of all tokens leaves the row", "[processors]") {
  check_leaves(allowed_tokens({0, 1, 2, 3, 4, 5, 6, 7}), g8, {});
}

TEST_CASE("allowing some is banning the others", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(70, seed);
    tokens allowed, others;
    for (token_id id = 0; id < 70; ++id) {
      (draw_stream(seed).chance(0.4, decant::purpose::coin, static_cast<std::uint32_t>(id)) ? allowed : others)
          .push_back(id);
    }
    CHECK(same_bits(logits_after(allowed_tokens(allowed), logits),
                    logits_after(decant::suppress_tokens(others), logits)));
    CHECK(drawn_after(allowed_tokens(allowed), logits) == drawn_after(decant::suppress_tokens(others), logits));
  }
}

TEST_CASE("after a narrowing only what is in both is left", "[processors]") {
  CHECK(survivors(decant::chain(decant::top_k(3), allowed_tokens({0, 1, 6})), g8) == tokens{0, 6});
  CHECK(survivors(decant::chain(allowed_tokens({0, 1, 5, 7}), decant::top_k(2)), g8) == tokens{0, 7});
}

TEST_CASE("tokens that are not allowed cannot make the row bad", "[processors]") {
  CHECK(survivors(allowed_tokens({0, 2}), {1, nan_float, 2}) == tokens{0, 2});
  CHECK(status_after(allowed_tokens({0, 1}), {1, nan_float, 2}) == row_status::not_finite);
}

TEST_CASE("allowed_tokens refuses an empty list", "[processors]") {
  check_refused<allowed_tokens>("allowed_tokens.number of ids", "allowed_tokens: number of ids = 0 must be >= 1",
                                tokens{});
  check_made<allowed_tokens>("allowed_tokens(1 token)", tokens{3});
  check_made<allowed_tokens>("allowed_tokens(2 tokens)", tokens{3, 0});
}

TEST_CASE("allowed_tokens: allowing an id outside the vocabulary is misuse", "[processors]") {
  check_misuse(allowed_tokens({0, 8}), g8);
  check_misuse(allowed_tokens({-1}), g8);
}

TEST_CASE("allowed_tokens on all sizes and on bad rows", "[processors]") {
  check_sizes(allowed_tokens({0}));
  check_bad_rows(allowed_tokens({0}), true);
}

TEST_CASE("allowed_tokens passes check_processor", "[processors]") {
  check_report_with_ids(allowed_tokens({0, 2, 3, 7}), 8);
  check_report_with_ids(allowed_tokens({1}), 8);
}

}  // namespace allowed_tokens_tests
