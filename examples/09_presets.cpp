// SPDX-License-Identifier: MIT
// One struct of parameters, five readings: each preset has its peer's order, defaults and off values.

#include <cstdio>
#include <string>

#include <decant/chain.hpp>

int main() {
  using namespace decant;
  sampling_params params;
  params.temperature = 0.7;
  params.top_k = 40;
  params.top_p = 0.9;
  params.min_p = 0.05;
  params.repetition_penalty = 1.1;

  const auto show = [](const auto& preset) {
    std::printf("%s\n  %s\n", std::string(preset.rules().name).c_str(), preset.describe().c_str());
  };
  show(presets::paper(params));
  show(presets::llama_cpp(params));
  show(presets::vllm(params));
  show(presets::trtllm(params));
  // Hugging Face samples only if it is told to.
  params.do_sample = true;
  show(presets::hf(params));

  // llama.cpp's order can be given as its users give it; what that order has no stage for may not be asked for.
  params.top_k = params.min_p = {};
  const auto order = llama_cpp_order::from_names("penalties;temperature;top_p");
  show(presets::llama_cpp(params, {.order = *order}));

  // A parameter that a peer does not have is an error, never ignored.
  params.typical_p = 0.9;
  const auto refused = presets::vllm::make(params);
  std::printf("%s\n", refused.error().message.c_str());
  return 0;
}
