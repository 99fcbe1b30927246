// SPDX-License-Identifier: MIT
// What follows | must do something to a row.
// expect: decant: what follows [|] is neither a processor, callable as void[(]candidates&, const step_context&[)], nor a sampler
#include <decant/chain/compose.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

#ifdef DECANT_CONTROL
auto steps = decant::top_k(3) | decant::temperature(2);
#else
auto steps = decant::top_k(3) | 2.0;
#endif
