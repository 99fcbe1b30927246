// SPDX-License-Identifier: MIT
// The most probable output, proven, and what beams make of it: it may well be the empty one (Stahlberg and Byrne, "On
// NMT search errors and model errors: cat got your tongue?", 2019). Then different samples, whose weights tell what the
// whole distribution is like.

#include <cstdio>
#include <string>

#include <decant/decant.hpp>

#include "shipped_model.hpp"

int main() {
  using namespace decant;
  auto [model, tokenizer] = shipped_model::load();
  transformer_batch batch(model.as_checkpoint());
  const token_id end = tokenizer.eos();
  const auto prompt = tokenizer.encode("violin:", {.bos = true});

  std::printf("%-22s %6s %9s  output\n", "search", "rows", "log-prob");
  const auto show = [&t = tokenizer](const char* name, const best_first_result& found) {
    if (found.best() == nullptr) return;
    const std::string text = t.decode(found.best()->tokens);
    std::printf("%-22s %6zu %9.3f %s (%s)\n", name, found.rows, found.best()->log_prob,
                text.empty() ? " nothing but the end" : text.c_str(), to_string(found.end));
  };
  const auto search = [&](std::size_t width, std::size_t max_rows) {
    return best_first_search(batch, prompt,
                             {.width = width, .max_rows = max_rows, .max_new_tokens = 24, .end_tokens = {end}});
  };
  show("greedy (width 1)", search(1, 100'000));
  show("best-first beam, 4", search(4, 100'000));
  show("best-first beam, 16", search(16, 100'000));
  show("exact", search(0, 20'000));

  const auto drawn = stochastic_beam_search(
      batch, prompt, {.count = 32, .max_new_tokens = 24, .end_tokens = {end}, .processors = {top_k(50)}, .seed = 7});
  std::printf("\n%zu different samples in %zu steps, the first of them:\n", drawn.sequences.size(), drawn.steps);
  for (std::size_t i = 0; i < 4; ++i) {
    const drawn_sequence& s = drawn.sequences[i];
    std::printf("  log-prob %7.2f %s\n", s.log_prob, tokenizer.decode(s.tokens).c_str());
  }
  const double length =
      drawn.normalised_estimate([](const drawn_sequence& s) { return static_cast<double>(s.tokens.size()); });
  std::printf("mean length of all outputs, estimated from them: %.1f tokens\n", length);

  sequences_without_replacement source(
      model, prompt,
      {.max_new_tokens = 24, .end_tokens = {end}, .processors = {top_k(3), temperature(0.3)}, .seed = 7});
  while (source.drawn() < 100 && source.next() != nullptr) {
  }
  std::printf("\ntemperature 0.3: %zu different samples make up %.0f %% of the distribution\n", source.drawn(),
              100 * (1 - source.remaining()));
  return 0;
}
