// SPDX-License-Identifier: MIT
// A decoder is finished: it holds its sampler already.
// expect: decant: nothing can follow a sampler
#include <decant/chain/compose.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>

#ifdef DECANT_CONTROL
auto decoder = decant::top_k(3) | decant::temperature(2) | decant::greedy{};
#else
auto decoder = decant::top_k(3) | decant::greedy{} | decant::temperature(2);
#endif
