// SPDX-License-Identifier: MIT
// A sampler is no processor, also where types are forgotten.
// expect: (no matching function for call to .*any_processor|no matching conversion for functional-style cast|no matching constructor for initialization of)
#include <decant/chain/any.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>

#ifdef DECANT_CONTROL
decant::any_processor step(decant::top_k(3));
#else
decant::any_processor step(decant::greedy{});
#endif
