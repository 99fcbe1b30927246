// SPDX-License-Identifier: MIT
// One prompt, three ways to decode it: greedy, plain sampling, and top-k 50 with top-p 0.95.

#include <cstdio>

#include <decant/decant.hpp>

#include "shipped_model.hpp"

int main() {
  using namespace decant;
  auto [model, tokenizer] = shipped_model::load();
  const auto prompt = tokenizer.encode("harvest:", {.bos = true});

  const auto show = [&, &m = model, &t = tokenizer](auto decoder) {
    const generation run = generate(m, prompt, decoder,
                                    {.max_new_tokens = 60,
                                     .stop_tokens = {t.eos()},
                                     .bytes = [&t](token_id id) { return t.bytes(id); },
                                     .seed = 2026});
    std::printf("%s\n  harvest:%s\n", decoder.describe().c_str(), run.text.c_str());
  };
  show(decode_with(greedy{}));
  show(decode_with(multinomial{}));
  show(top_k(50) | top_p(0.95) | multinomial{});
  return 0;
}
