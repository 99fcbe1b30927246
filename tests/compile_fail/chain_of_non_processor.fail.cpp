// SPDX-License-Identifier: MIT
// Every part of a chain is a processor; a sampler is none.
// expect: decant: every part of a chain must be a processor
#include <decant/chain/chain.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>

#ifdef DECANT_CONTROL
decant::chain steps(decant::top_k(3), decant::top_k(2));
#else
decant::chain steps(decant::top_k(3), decant::greedy{});
#endif
