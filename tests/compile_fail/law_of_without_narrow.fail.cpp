// SPDX-License-Identifier: MIT
// A sampler that cannot say what it draws from has no law to ask for.
// expect: (no matching function for call to|no matching member function for call to).*law_of
// expect: LawSampler
#include <decant/chain/compose.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>

#include <vector>

decant::law ask(const std::vector<float>& logits, const decant::step_context& context) {
#ifdef DECANT_CONTROL
  auto decoder = decant::top_k(3) | decant::greedy{};
#else
  auto decoder = decant::top_k(3) | [](decant::candidates& row, const decant::step_context&) { return row.argmax(); };
#endif
  return decoder.law_of(logits, context);
}
