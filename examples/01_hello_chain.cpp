// SPDX-License-Identifier: MIT
// A chain over one row of logits: draw from it, look at its law, and ask what became of a token.

#include <cstdio>
#include <vector>

#include <decant/chain.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

int main() {
  using namespace decant;

  std::vector<float> logits{2, 1, 0.5F, 0, -1, -3};
  auto decoder = top_k(5) | top_p(0.9) | temperature(0.8) | multinomial{};
  std::printf("%s\n", decoder.describe().c_str());

  // A draw is a function of seed, sequence and position: nothing advances, so any step can be repeated alone.
  std::vector<token_id> tokens{3};
  while (tokens.size() < 9) {
    tokens.push_back(decoder.step(logits, context_after(tokens, 1, draw_stream(42))));
  }
  std::printf("drawn:");
  for (const token_id t : tokens) std::printf(" %d", t);

  const step_context context = context_after(tokens, 1, draw_stream(42));
  const law chances = decoder.law_of(logits, context);
  std::printf("\nlaw:");
  for (const token_id id : chances.ids) std::printf(" %d: %.4f", id, chances.probability(id));

  for (const token_id id : {0, 4, 5})
    std::printf("\ntoken %d: %s", id, decoder.explain(logits, context, id).reason.c_str());
  std::printf("\n");
  return 0;
}
