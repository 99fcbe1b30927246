// SPDX-License-Identifier: MIT
// Lambdas have no namespace in which | could be found: the compiler says so in its own words.
// expect: (no match for .operator[|]|invalid operands to binary expression)
#include <decant/chain/compose.hpp>

const auto first = [](decant::candidates& row, const decant::step_context&) { row.ban(0); };
const auto second = [](decant::candidates& row, const decant::step_context&) { row.ban(1); };
#ifdef DECANT_CONTROL
decant::chain steps(first, second);
#else
auto steps = first | second;
#endif
