// SPDX-License-Identifier: MIT
// A processor returns nothing: one that returns a number is most likely meant for something else.
// expect: decant: every part of a chain must be a processor, callable as void[(]candidates&, const step_context&[)]
#include <decant/chain/chain.hpp>

#ifdef DECANT_CONTROL
decant::chain steps([](decant::candidates& row, const decant::step_context&) { row.ban(0); });
#else
decant::chain steps([](decant::candidates& row, const decant::step_context&) { return row.max(); });
#endif
