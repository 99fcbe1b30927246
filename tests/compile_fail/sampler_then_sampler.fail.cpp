// SPDX-License-Identifier: MIT
// A chain has one sampler.
// expect: decant: nothing can follow a sampler
#include <decant/chain/compose.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/samplers/multinomial.hpp>

#ifdef DECANT_CONTROL
auto decoder = decant::top_k(3) | decant::multinomial{};
#else
auto decoder = decant::multinomial{} | decant::greedy{};
#endif
