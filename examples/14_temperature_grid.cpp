// SPDX-License-Identifier: MIT
// Temperature against top_p: ten samples a cell, how different they are and what the model itself thinks of them. With
// a path as argument the cells are drawn there as SVG: coherence against diversity.

#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <decant/decant.hpp>

#include "diversity_measures.hpp"
#include "shipped_model.hpp"
#include "svg.hpp"

int main(int argc, char** argv) {
  using namespace decant;
  auto [model, tokenizer] = shipped_model::load();
  const auto prompt = tokenizer.encode("music:", {.bos = true});

  svg drawing(650, 360);
  drawing.text(10, 20, "perplexity (log scale) against distinct-2");
  drawing.line(50, 330, 550, 330, "black");
  drawing.line(50, 30, 50, 330, "black");
  for (const int tenths : {0, 5, 10}) {
    drawing.text(50 + 49.0 * tenths, 346, tenths == 5 ? "0.5" : std::to_string(tenths / 10), "middle");
  }
  for (const int level : {1, 10, 100}) drawing.text(44, 334 - 42 * std::log(level), std::to_string(level), "end");
  std::printf("   T  top_p  distinct-1  distinct-2  self-BLEU  perplexity\n");
  for (const double t : std::array{0.1, 0.7, 1.5}) {
    for (const double p : std::array{0.5, 0.9, 0.99}) {
      std::vector<token_text> texts;
      double log_prob = 0;
      std::size_t tokens = 0;
      for (std::uint64_t sample = 0; sample < 10; ++sample) {
        // The model's own log-probabilities, before temperature and top_p.
        const generation run = generate(model, prompt, temperature(t) | top_p(p) | multinomial{},
                                        {.max_new_tokens = 24,
                                         .stop_tokens = {tokenizer.eos()},
                                         .log_probs = log_prob_options{.mode = log_prob_mode::raw_log_probs},
                                         .seed = 14,
                                         .sequence = sample});
        texts.push_back(run.tokens);
        for (const token_log_probs& report : run.log_probs) log_prob += report.chosen.value;
        tokens += run.tokens.size();
      }
      const double perplexity = std::exp(-log_prob / static_cast<double>(tokens)), pairs = distinct(texts, 2);
      std::printf("%4.1f  %5.2f  %10.2f  %10.2f  %9.2f  %10.1f\n", t, p, distinct(texts, 1), pairs, self_bleu(texts),
                  perplexity);
      const double x = 50 + 490 * pairs, y = 330 - 42 * std::log(perplexity);
      drawing.circle(x, y, 4, t < 0.5 ? "steelblue" : t < 1 ? "seagreen" : "firebrick");
      char label[32];
      std::snprintf(label, sizeof label, "T %.1f, p %.2f", t, p);
      if (p == 0.9) {  // close to 0.99 at every temperature
        drawing.text(x + 8, y + 4, label);
      } else {
        drawing.text(x - 8, y + 4, label, "end");
      }
    }
  }
  return argc < 2 || drawing.write(argv[1]) ? 0 : 1;
}
