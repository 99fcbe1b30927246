// SPDX-License-Identifier: MIT
// A beam search and its tree: what every step looked at, and why most of it was dropped. With a path as argument the
// tree is drawn there as SVG.

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <decant/decant.hpp>

#include "shipped_model.hpp"
#include "svg.hpp"

namespace {

using namespace decant;

/// A hypothesis of the trace: what its text is, and where it stands in the drawing.
struct node {
  std::string text;
  double x = 0, y = 0;
};

const char* colour_of(candidate_fate fate) {
  return fate == candidate_fate::live ? "steelblue" : fate == candidate_fate::finished ? "seagreen" : "lightgray";
}

}  // namespace

int main(int argc, char** argv) {
  const auto tokenizer = shipped_model::load().tokenizer;
  auto model = transformer_batch::load(DECANT_MODELS_DIR "/target.bin").value();
  const auto prompt = tokenizer.encode("harbour:", {.bos = true});
  const auto piece = [&](token_id id) { return id == tokenizer.eos() ? " (end)" : std::string(tokenizer.bytes(id)); };

  std::vector<beam_candidate> trace;
  const beam_result found =
      beam_search(model, prompt,
                  {.width = 3,
                   .n_best = 3,
                   .max_new_tokens = 16,
                   .end_tokens = {tokenizer.eos()},
                   .length_penalty = length_penalty::mean(),
                   .on_candidate = [&](const beam_candidate& candidate) { trace.push_back(candidate); }});

  constexpr double column = 110, row = 22, top = 40;
  svg drawing(column * (static_cast<double>(found.steps) + 2), top + 7 * row);
  std::map<hypothesis_link, node> nodes{{root_link, {"", 20, top}}};
  drawing.text(10, 20, "harbour:");
  std::map<candidate_fate, int> fates;
  for (const beam_candidate& one : trace) {
    const node& parent = nodes.at(one.parent);
    const node here{parent.text + piece(one.token), column * (static_cast<double>(one.step) + 1),
                    top + row * static_cast<double>(one.rank)};
    drawing.line(parent.x, parent.y, here.x, here.y, colour_of(one.fate), 1.5);
    drawing.circle(here.x, here.y, 3, colour_of(one.fate));
    drawing.text(here.x + 6, here.y + 4, piece(one.token));
    ++fates[one.fate];
    if (one.node == no_link) continue;
    nodes[one.node] = here;
    std::printf("step %2zu  %-8s %6.2f %s\n", one.step, to_string(one.fate), one.log_prob, here.text.c_str());
  }
  std::printf("\n");
  for (const auto& [fate, count] : fates) std::printf("%s: %d\n", to_string(fate), count);
  std::printf("\nend of the search: %s\n", to_string(found.end));
  for (const hypothesis& one : found.hypotheses) {
    std::printf("%6.2f a token, %2zu tokens:%s\n", one.score, one.tokens.size(), tokenizer.decode(one.tokens).c_str());
  }
  return argc < 2 || drawing.write(argv[1]) ? 0 : 1;
}
