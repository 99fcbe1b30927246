// SPDX-License-Identifier: MIT
// One chain for each kind of work, on one prompt. Start from these, and measure on your own model.

#include <cstdio>

#include <decant/decant.hpp>

#include "shipped_model.hpp"

int main() {
  using namespace decant;
  auto [model, tokenizer] = shipped_model::load();
  const auto source = tokenizer.encode("harvest: the gathering of a ripened crop of grain", {.bos = true});
  const auto prompt = tokenizer.encode("harvest:", {.bos = true});
  const token_id eos = tokenizer.eos();
  const vocabulary_bytes pieces([&t = tokenizer](token_id id) { return t.bytes(id); }, tokenizer.size());

  const auto show = [&, &m = model, &t = tokenizer](const char* task, auto decoder) {
    const generation run = generate(
        m, prompt, decoder,
        {.max_new_tokens = 24, .stop_tokens = {eos}, .bytes = [&t](token_id id) { return t.bytes(id); }, .seed = 7});
    std::printf("%s\n  %s\n  harvest:%s\n", task, decoder.describe().c_str(), run.text.c_str());
  };

  // Faithful to a source: the most likely token, without loops.
  show("translation", no_repeat_ngram(3) | greedy{});
  show("summary", encoder_repetition_penalty(1.2, source) | no_repeat_ngram(3) | min_new_tokens(4, {eos}) | greedy{});
  // Varied, but never from the tail: a threshold relative to the best token, and the temperature after it.
  show("chat", repetition_penalty(1.1) | min_p(0.05) | temperature(0.8) | multinomial{});
  show("creative writing",
       dry({}, {sequence_breakers::usual(), pieces}) | min_p(0.02) | xtc(0.5, 0.1) | temperature(1.2) | multinomial{});
  // Nearly certain: penalties would hurt, since code and data repeat themselves by right.
  show("code", top_p(0.95) | temperature(0.2) | multinomial{});
  show("tool calls", prefix_allowed_tokens([&](const step_context& so_far) {
                       return so_far.output().empty() ? source
                                                      : std::vector<token_id>{eos};  // one name of those that there are
                     }) | greedy{});
  // What was said long ago may be said again.
  show("long context", frequency_penalty(0.5, {.window = 256}) | top_p(0.9) | temperature(0.7) | multinomial{});
  // At most 40 candidates are ever copied; 16-bit rows are read as they are.
  show("little memory", top_k(40) | temperature(0.8) | multinomial{});
  return 0;
}
