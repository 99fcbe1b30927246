// SPDX-License-Identifier: MIT
// A function alone is no model: it has no cache to truncate. stateless makes one of it.
// expect: (no matching function for call to|constraints not satisfied|Model)
// expect: generate
#include <decant/chain/compose.hpp>
#include <decant/generate/generate.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>

#include <span>
#include <vector>

decant::generation run() {
  const std::vector<decant::token_id> prompt{1};
  auto function = [](std::span<const decant::token_id>) { return std::vector<float>{1, 2}; };
#ifdef DECANT_CONTROL
  decant::stateless model(function);
#else
  auto model = function;
#endif
  return decant::generate(model, prompt, decant::top_k(3) | decant::greedy{});
}
