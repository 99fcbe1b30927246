// SPDX-License-Identifier: MIT
// What the drafters that need no training are worth on the shipped pair: how much of what they propose is accepted, and
// how many tokens a pass of the target gives. Plain decoding gives 1. With a file name it also draws the table as SVG.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <decant/decant.hpp>

#include "shipped_model.hpp"

using namespace decant;

namespace {

struct table_line {
  std::string name;
  double accepted, greedy, sampled;  // tokens accepted of those tried; tokens a pass
};

/// A bar for each number of tokens a pass, from 0 to 3.
void write_svg(const char* path, const std::vector<table_line>& lines) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return;
  std::fprintf(
      file,
      "<svg xmlns='http://www.w3.org/2000/svg' width='640' height='%zu' font-family='sans-serif' font-size='13'>\n",
      60 + 44 * lines.size());
  std::fprintf(
      file, "<text x='170' y='20'>tokens a pass: greedy (dark), sampled (light); the line is plain decoding</text>\n");
  const auto bar = [&](double value, std::size_t y, const char* colour) {
    std::fprintf(file, "<rect x='170' y='%zu' width='%.1f' height='16' fill='%s'/><text x='%.1f' y='%zu'>%.2f</text>\n",
                 y, value * 150, colour, 174 + value * 150, y + 13, value);
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t y = 36 + 44 * i;
    std::fprintf(file, "<text x='160' y='%zu' text-anchor='end'>%s</text>\n", y + 20, lines[i].name.c_str());
    bar(lines[i].greedy, y, "#30557a");
    bar(lines[i].sampled, y + 18, "#9db8d2");
  }
  std::fprintf(file, "<line x1='320' x2='320' y1='30' y2='%zu' stroke='#b03030'/>\n</svg>\n", 40 + 44 * lines.size());
  std::fclose(file);
}

}  // namespace

int main(int argc, char** argv) {
  auto [target, tokenizer] = shipped_model::load();
  transformer small = shipped_model::load(DECANT_MODELS_DIR "/draft.bin").model, smaller = small;
  // Temperature 0 is greedy decoding: one type of decoder serves for both.
  const auto decoder_at = [](double t) { return top_p(0.9) | temperature(t) | multinomial{}; };

  const auto prompt_of = [&t = tokenizer](const char* word) { return t.encode(word, {.bos = true}); };
  const std::vector<const char*> words{"river:", "music:", "winter:", "paper:", "teacher:", "to run:"};

  // A store of earlier outputs, for the drafters that look things up.
  std::vector<token_id> corpus;
  std::uint64_t seed = 0;
  for (const char* word : {"bridge:", "harvest:", "ladder:", "doctor:", "to walk:", "stream:", "sound:", "summer:"}) {
    const auto prompt = prompt_of(word);
    const generation run = generate(target, prompt, decoder_at(0.7), {.max_new_tokens = 60, .seed = ++seed});
    corpus.insert(corpus.end(), prompt.begin(), prompt.end());
    corpus.insert(corpus.end(), run.tokens.begin(), run.tokens.end());
    corpus.push_back(no_token);
  }

  std::vector<table_line> lines;
  const auto measure = [&, &m = target](const char* name, auto make, speculation_options how) {
    const auto run = [&](double t) {
      auto drafter = make(decoder_at(t));
      speculation_statistics sum;
      std::size_t tried = 0, accepted = 0;
      for (const char* word : words) {
        const auto got = speculate(m, prompt_of(word), drafter, decoder_at(t), {.max_new_tokens = 50, .seed = 7}, how);
        sum.rounds += got.statistics.rounds;
        sum.tokens += got.statistics.tokens;
        tried += got.statistics.drafted_tokens_tried();
        accepted += got.statistics.drafted_tokens_accepted();
      }
      const double share = tried > 0 ? static_cast<double>(accepted) / static_cast<double>(tried) : 0;
      return std::pair(share, sum.tokens_per_pass());
    };
    const auto greedy_run = run(0), sampled_run = run(0.8);
    lines.push_back({name, greedy_run.first, greedy_run.second, sampled_run.second});
  };

  const speculation_options chain{.length = draft_length::fixed(5)};
  const speculation_options tree{.length = draft_length::fixed(5), .max_nodes = 24};
  const auto automaton = std::make_shared<const suffix_automaton>(corpus);
  const auto store = std::make_shared<const retrieval_store>(corpus);
  measure("prompt lookup", [](auto) { return prompt_lookup({.order = match_order::most_recent}); }, chain);
  measure("suffix counts", [&](auto) { return suffix_draft({.offset = 2}, automaton); }, chain);
  measure(
      "suffix tree",
      [&](auto) { return suffix_draft({.offset = 8, .min_probability = 0.02, .tree = true}, automaton); }, tree);
  measure("retrieval", [&](auto) { return retrieval_draft(store); }, tree);
  measure("jacobi", [](auto) { return jacobi(5); }, chain);
  measure("lookahead", [](auto) { return lookahead({.window = 5, .ngram = 3, .candidates = 5}); },
          {.length = draft_length::fixed(6), .max_nodes = 24});
  measure("draft model", [&](auto decoder) { return draft_model(small, decoder); }, chain);
  measure(
      "dynamic tree", [&](auto) { return dynamic_tree(model_rows{small}, {.width = 4, .depth = 5, .nodes = 24}); },
      tree);
  measure(
      "sampled tree",
      [&](auto decoder) { return sampled_tree(model_rows{small}, decoder, {.children = {4, 2, 1, 1}}); }, tree);
  measure("staged draft", [&](auto decoder) { return staged_draft(small, prompt_lookup(), decoder, 3); }, chain);

  std::printf("%-14s %10s %14s %14s\n", "drafter", "accepted", "tokens a pass", "when sampling");
  for (const table_line& line : lines) {
    std::printf("%-14s %9.0f%% %14.2f %14.2f\n", line.name.c_str(), 100 * line.accepted, line.greedy, line.sampled);
  }
  if (argc > 1) write_svg(argv[1], lines);
  return 0;
}
