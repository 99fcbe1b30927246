// SPDX-License-Identifier: MIT
// Streaming text with stop strings: whole characters, and nothing that belongs to a stop string.

#include <cstdio>

#include <decant/decant.hpp>

#include "shipped_model.hpp"

int main() {
  using namespace decant;
  auto [model, tokenizer] = shipped_model::load();

  // As a range: each event holds the text that can be shown now.
  token_stream stream(model, tokenizer.encode("lantern:", {.bos = true}), top_p(0.9) | temperature(0.7) | multinomial{},
                      {.max_new_tokens = 60,
                       .stop_tokens = {tokenizer.eos()},
                       .stop_strings = {" that", " which", ";"},
                       .bytes = [&t = tokenizer](token_id id) { return t.bytes(id); },
                       .seed = 11});
  std::printf("lantern:");
  for (const token_event& event : stream) {
    std::printf("[%.*s]", static_cast<int>(event.text.size()), event.text.data());
  }
  const generation& run = stream.result();
  std::printf("\n%s, text:%s\n", to_string(run.finish), run.text.c_str());
}
