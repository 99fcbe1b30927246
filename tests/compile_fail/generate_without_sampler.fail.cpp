// SPDX-License-Identifier: MIT
// A chain without a final sampler cannot decide a token (llama.cpp#15961: there it failed at run time).
// expect: (no matching function for call to|constraints not satisfied)
// expect: Decoder
#include <decant/chain/compose.hpp>
#include <decant/generate/generate.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>

#include <span>
#include <vector>

decant::generation run() {
  const std::vector<decant::token_id> prompt{1};
  decant::stateless model([](std::span<const decant::token_id>) { return std::vector<float>{1, 2}; });
#ifdef DECANT_CONTROL
  return decant::generate(model, prompt, decant::top_k(3) | decant::greedy{});
#else
  return decant::generate(model, prompt, decant::top_k(3) | decant::temperature(2));
#endif
}
