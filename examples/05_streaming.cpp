// SPDX-License-Identifier: MIT
// Streaming text with stop strings: whole characters, and nothing that belongs to a stop string.

#include <cstdio>

#include <decant/decant.hpp>

#include "shipped_model.hpp"

int main() {
  using namespace decant;
  auto [model, tokenizer] = shipped_model::load();

  // As a range: each event holds the text that can be shown now.
  // The stop string spans three tokens: what may be its beginning is held back until it cannot be any more.
  token_stream stream(model, tokenizer.encode("ladder:", {.bos = true}), repetition_penalty(1.1) | greedy{},
                      {.max_new_tokens = 60,
                       .stop_tokens = {tokenizer.eos()},
                       .stop_strings = {" group of people", ";"},
                       .bytes = [&t = tokenizer](token_id id) { return t.bytes(id); }});
  std::printf("ladder:");
  for (const token_event& event : stream) {
    std::printf("[%.*s]", static_cast<int>(event.text.size()), event.text.data());
  }
  const generation& run = stream.result();
  std::printf("\n%s, text:%s\n", to_string(run.finish), run.text.c_str());
  return 0;
}
