// SPDX-License-Identifier: MIT
// What a length penalty does to the lengths of outputs: beam 4 with score = log-probability / length^alpha, over a few
// words. With a path as argument the distributions are drawn there as SVG.

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <decant/decant.hpp>

#include "shipped_model.hpp"
#include "svg.hpp"

int main(int argc, char** argv) {
  using namespace decant;
  const auto tokenizer = shipped_model::load().tokenizer;
  auto model = transformer_batch::load(DECANT_MODELS_DIR "/target.bin").value();
  const std::array words{"harbour", "mountain", "to run", "bright", "music",  "machine", "river", "to speak",
                         "green",   "history",  "bread",  "law",    "winter", "engine",  "happy", "war"};

  svg drawing(520, 340);
  drawing.text(10, 16, "outputs by their length in tokens");
  double top = 30;
  std::printf("alpha   lengths, and how many outputs have them\n");
  for (const double alpha : {0.0, 0.6, 1.0}) {
    // All prompts in common passes.
    std::vector<std::vector<token_id>> prompts;
    std::vector<beam_request> requests;
    for (const char* word : words) prompts.push_back(tokenizer.encode(std::string(word) + ":", {.bos = true}));
    for (const auto& prompt : prompts) {
      requests.push_back({prompt,
                          {.width = 4,
                           .max_new_tokens = 32,
                           .end_tokens = {tokenizer.eos()},
                           .length_penalty = length_penalty::power(alpha),
                           .early_stopping = early_stopping::exact}});
    }
    std::map<std::size_t, int> lengths;
    double sum = 0;
    for (const beam_result& found : beam_search(model, std::span<const beam_request>(requests))) {
      const std::size_t length = found.best()->tokens.size();
      ++lengths[length];
      sum += static_cast<double>(length);
    }
    std::printf("%5.1f  ", alpha);
    for (const auto& [length, count] : lengths) {
      std::printf(" %zu:%d", length, count);
      const double height = 8.0 * count;
      const double left = 40 + 14 * static_cast<double>(length);
      drawing.box(left, top + 70 - height, 12, height, "steelblue");
      drawing.text(left + 6, top + 66 - height, std::to_string(count), "middle");
    }
    std::printf("   mean %.1f\n", sum / static_cast<double>(words.size()));
    drawing.line(40, top + 70, 510, top + 70, "black");
    drawing.text(5, top + 10, "alpha " + std::to_string(alpha).substr(0, 3));
    for (int length = 4; length <= 32; length += 4)
      drawing.text(46 + 14.0 * length, top + 84, std::to_string(length), "middle");
    top += 100;
  }
  return argc < 2 || drawing.write(argv[1]) ? 0 : 1;
}
