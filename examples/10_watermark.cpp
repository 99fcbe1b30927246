// SPDX-License-Identifier: MIT
// A green-list watermark: found from the tokens alone, without the model, by whoever has the key and by no one else.

#include <cstdio>
#include <vector>

#include <decant/decant.hpp>

#include "shipped_model.hpp"

int main() {
  using namespace decant;
  auto [model, tokenizer] = shipped_model::load();
  const std::size_t vocabulary = tokenizer.size();
  const green_list_options secret{.fraction = 0.25, .bias = 2, .key = 20260};
  const green_list_watermark mark(secret), other({.fraction = 0.25, .bias = 2, .key = 20261});

  // The outputs for a few words, one behind the other; the prompts carry no mark.
  const auto write = [&, &m = model, &t = tokenizer](const auto& decoder) {
    std::vector<token_id> text;
    for (const char* word : {"harvest:", "ladder:", "river:", "window:", "music:", "winter:", "paper:", "bridge:"}) {
      const generation run = generate(m, t.encode(word, {.bos = true}), decoder,
                                      {.max_new_tokens = 40, .stop_tokens = {t.eos()}, .seed = 4});
      text.insert(text.end(), run.tokens.begin(), run.tokens.end());
    }
    return text;
  };
  const auto report = [&](const char* what, const watermark_evidence& evidence) {
    std::printf("%-22s %3zu tokens, z = %4.1f, p = %.0e: %s\n", what, evidence.tokens, evidence.z, evidence.p_value,
                evidence.p_value < 1e-4 ? "marked" : "no mark");
  };
  const auto marked = write(top_p(0.95) | mark | multinomial{}), plain = write(top_p(0.95) | multinomial{});
  std::printf("harvest:%.90s...\n", tokenizer.decode(marked).c_str());
  report("marked text", mark.detect(marked, vocabulary));
  report("marked, another key", other.detect(marked, vocabulary));
  report("text without a mark", mark.detect(plain, vocabulary));
  return 0;
}
