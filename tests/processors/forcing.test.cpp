// SPDX-License-Identifier: MIT
#include <decant/processors/forcing.hpp>

#include "processors/lists.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace forcing_tests {

using namespace lists;

auto forced(tokens ids, bool revive = false) {
  return [=](candidates& c, const step_context&) { decant::force(c, ids, {.revive = revive}); };
}

TEST_CASE("forcing: only the forced tokens are left, each with logit 0", "[processors]") {
  check_becomes(forced({3}), g8, {}, only(flat8, {3}));
  check_becomes(forced({5, 0, 5}), g8, {}, only(flat8, {0, 5}));
}

TEST_CASE("forcing: a forced token that is gone stays gone", "[processors]") {
  check_becomes(forced({1, 2}), inf8, {}, only(flat8, {2}));
  check_becomes(forced({1}), inf8, {}, row(8, gone));
  const auto first = [](candidates& c, const step_context&) { c.ban(3); };
  check_becomes(decant::chain(first, forced({3})), g8, {}, row(8, gone));
}

TEST_CASE("with revive forced tokens come back", "[processors]") {
  check_becomes(forced({1, 2}, true), inf8, {}, only(flat8, {1, 2}));
  check_becomes(forced({1}, true), inf8, {}, only(flat8, {1}));
  check_becomes(forced({1}, true), row(8, gone), {}, only(flat8, {1}));
  check_becomes(decant::chain(decant::top_k(1), forced({2}, true)), g8, {}, only(flat8, {2}));
}

TEST_CASE("forcing after other steps gives logit 0 as well", "[processors]") {
  for (const bool revive : {false, true}) {
    check_becomes(decant::chain(decant::temperature(0.01), forced({3}, revive)), g8, {}, only(flat8, {3}));
    check_becomes(decant::chain(decant::top_k(2), forced({3}, revive)), g8, {}, only(flat8, {3}));
  }
}

TEST_CASE("what the logits were does not matter in a row that has not been read", "[processors]") {
  const row bad{1, nan_float, infinite_float, 2};
  for (const bool revive : {false, true}) {
    for (token_id id = 0; id < 4; ++id) check_becomes(forced({id}, revive), bad, {}, only(row(4, 0.0F), {id}));
  }
}

TEST_CASE("forcing: a row that was found bad stays bad, except with revive", "[processors]") {
  const auto read = [](candidates& c, const step_context&) { static_cast<void>(c.status()); };
  CHECK(status_after(decant::chain(read, forced({0})), {1, nan_float}) == row_status::not_finite);
  CHECK(status_after(decant::chain(read, forced({0})), {gone, gone}) == row_status::empty);
  CHECK(survivors(decant::chain(read, forced({0}, true)), {1, nan_float}) == tokens{0});
  CHECK(survivors(decant::chain(read, forced({0}, true)), {gone, gone}) == tokens{0});
}

TEST_CASE("forcing an id outside the vocabulary is misuse", "[processors]") {
  for (const bool revive : {false, true}) {
    check_misuse(forced({8}, revive), g8);
    check_misuse(forced({0, -1}, revive), g8);
  }
}

TEST_CASE("a mutable row comes back after forcing", "[processors]") {
  for (const bool revive : {false, true}) {
    row edited = g8;
    candidates c;
    c.bind(std::span<float>(edited));
    forced({1}, revive)(c, {});
    CHECK(c.draw(draw_stream(1)) == 1);
    c.release();
    CHECK(same_bits(edited, g8));
  }
}

}  // namespace forcing_tests
