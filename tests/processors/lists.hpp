// SPDX-License-Identifier: MIT
#pragma once

// What the tests of bans, forcing and biases share: the rows of the golden files, and questions about lists of ids.

#include <string>

#include "processors/policies.hpp"

namespace lists {

using namespace policies;

inline const row g8{2.5F, -1.25F, 0.75F, 3, 0, -2, 1.5F, 0.25F};
inline const row inf8{2, gone, 1, gone, 3, gone, 0, 0.5F};
inline const row flat8(8, 0.0F);
inline const row ties8{1, 1, 1, 2, 2, 0, 0, -1};
inline const row big8{1000, 999, 998.5F, -1000, 0, 997, 996, 500};
inline const row peak8{0, 0, 0, 50, 0, 0, 0, 0};
inline const row single8{gone, gone, gone, gone, gone, 1.25F, gone, gone};
inline const row neg12{-3.5F, -0.5F, -7.25F, -1, -12, -0.75F, -2.5F, -4, -1.5F, -9, -0.25F, -6};
inline const row g16{3.25F,     -1.21875F, -1.0625F,  -2.140625F, 1.734375F,  -4.609375F, 3.484375F, -1.515625F,
                     0.640625F, -0.5F,     2.921875F, -4.125F,    -0.640625F, -0.765625F, 2.265625F, -2.203125F};

/// The row with these tokens gone.
inline row without(row logits, const tokens& ids) {
  for (const token_id id : ids) logits[static_cast<std::size_t>(id)] = gone;
  return logits;
}

/// The row with all but these tokens gone.
inline row only(const row& logits, const tokens& ids) {
  row out(logits.size(), gone);
  for (const token_id id : ids) out[static_cast<std::size_t>(id)] = logits[static_cast<std::size_t>(id)];
  return out;
}

/// The constructor throws, and `make` gives the same as an error value.
template <class P, class... Arguments>
void check_refused(const std::string& where, const std::string& expected, const Arguments&... arguments) {
  CHECK(complaint([&] { return P(arguments...); }) == expected);
  const auto made = P::make(arguments...);
  REQUIRE(!made.has_value());
  CHECK(made.error().code == decant::error_code::bad_parameter);
  CHECK(made.error().where == where);
  CHECK(made.error().message == expected);
}

/// `make` gives what the constructor gives.
template <class P, class... Arguments>
void check_made(const std::string& description, const Arguments&... arguments) {
  const auto made = P::make(arguments...);
  REQUIRE(made.has_value());
  CHECK(decant::describe(*made) == description);
  CHECK(decant::describe(P(arguments...)) == description);
}

/// The logits afterwards are `expected`, the law is theirs, and so is what drawing does.
template <class P>
void check_becomes(P policy, const row& logits, const past& before, const row& expected) {
  CHECK(same_bits(logits_after(policy, logits, before), expected));
  const bool empty = std::ranges::all_of(expected, decant::is_gone);
  CHECK(status_after(policy, logits, before) == (empty ? row_status::empty : row_status::ok));
  const law exact = reference::exact_law(expected);
  CHECK(difference(law_after(policy, logits, before), exact) < of_float);
  CHECK(difference(enumerated_law(policy, logits, before), exact) < of_float);
  if (empty) CHECK(drawn_after(policy, logits, 3, before) == tokens(3, no_token));
}

/// The row as it came, bit for bit, and the same tokens drawn.
template <class P>
void check_leaves(P policy, const row& logits, const past& before) {
  const auto nothing = [](candidates&, const step_context&) {};
  CHECK(same_bits(logits_after(policy, logits, before), logits));
  CHECK(drawn_after(policy, logits, 20, before) == drawn_after(nothing, logits, 20, before));
}

/// An id outside the vocabulary is found when the row is processed.
template <class P>
void check_misuse(P policy, const row& logits, const past& before = {}) {
  CHECK_THROWS_AS(logits_after(policy, logits, before), assertion_error);
}

/// The checks of a policy that knows ids below `vocabulary`.
template <class P>
void check_report_with_ids(const P& policy, std::size_t vocabulary, bool may_empty = true,
                           bool shift_invariant = true) {
  check_report_of(policy, {.permutation = false,
                           .shift_invariant = shift_invariant,
                           .may_empty = may_empty,
                           .min_vocabulary = vocabulary,
                           .allocations = decant::testing::allocations});
}

}  // namespace lists
