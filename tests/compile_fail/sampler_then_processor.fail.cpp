// SPDX-License-Identifier: MIT
// A sampler ends a chain: no processor can follow it.
// expect: decant: nothing can follow a sampler; put the processor before it
#include <decant/chain/compose.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>

#ifdef DECANT_CONTROL
auto decoder = decant::top_k(3) | decant::greedy{};
#else
auto decoder = decant::greedy{} | decant::top_k(3);
#endif
