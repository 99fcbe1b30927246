// SPDX-License-Identifier: MIT
// Five ways to a text: greedy, beams, diverse beams, contrastive search, sampling. What each says of one word, and over
// several words how probable its outputs are and how much they repeat themselves. With a path as argument the two are
// drawn there as SVG.

#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <decant/decant.hpp>

#include "diversity_measures.hpp"
#include "shipped_model.hpp"
#include "svg.hpp"

namespace {

using namespace decant;

struct output {
  std::vector<token_id> tokens;
  double log_prob = 0;  ///< the model's own
};

class writer {
 public:
  explicit writer(token_id end) : end_(end) {}

  std::vector<output> greedy(std::span<const token_id> prompt) { return beams(prompt, {.width = 1}); }
  std::vector<output> beam(std::span<const token_id> prompt) {
    return beams(prompt, {.width = 5, .length_penalty = length_penalty::mean(), .processors = {no_repeat_ngram(2)}});
  }
  std::vector<output> diverse(std::span<const token_id> prompt) {
    return beams(
        prompt,
        {.width = 4, .n_best = 4, .length_penalty = length_penalty::mean(), .diversity = {.groups = 4, .strength = 1}});
  }
  std::vector<output> contrastive(std::span<const token_id> prompt) {
    auto found =
        contrastive_search(model_, prompt, {.k = 5, .alpha = 0.6, .max_new_tokens = most_tokens, .end_tokens = {end_}});
    return {{std::move(found.tokens), found.log_prob}};
  }
  std::vector<output> sampling(std::span<const token_id> prompt) {
    // A beam of one that draws is sampling, and sums log-probabilities up as the others do.
    return beams(prompt, {.width = 1, .sampling = beam_sampling{.sampler = narrowed{}, .draws = 1}, .seed = 5});
  }

 private:
  static constexpr std::size_t most_tokens = 24;

  /// top_p as a part of the sampler: it decides what may be drawn, and takes nothing from the score.
  struct narrowed {
    top_p nucleus{0.95};
    void narrow(candidates& row, const step_context& context) const { nucleus(row, context); }
    token_id operator()(candidates& row, const step_context& context) const {
      narrow(row, context);
      return row.draw(context.draws);
    }
  };

  std::vector<output> beams(std::span<const token_id> prompt, beam_options options) {
    options.max_new_tokens = most_tokens;
    options.end_tokens = {end_};
    if (options.width == 1) options.early_stopping = early_stopping::first_n;
    std::vector<output> all;
    for (hypothesis& one : beam_search(model_, prompt, options).hypotheses) {
      all.push_back({std::move(one.tokens), one.log_prob});
    }
    return all;
  }

  transformer_batch model_ = transformer_batch::load(DECANT_MODELS_DIR "/target.bin").value();
  token_id end_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto tokenizer = shipped_model::load().tokenizer;
  writer author(tokenizer.eos());
  struct way {
    const char* name;
    std::vector<output> (writer::*write)(std::span<const token_id>);
  };
  const std::array ways{way{"greedy", &writer::greedy}, way{"beam 5, no repeated pair", &writer::beam},
                        way{"diverse, 4 groups", &writer::diverse}, way{"contrastive", &writer::contrastive},
                        way{"sampling, top_p 0.95", &writer::sampling}};
  const std::array words{"harbour", "music", "to run", "river", "bright", "machine"};

  svg drawing(480, 330);
  drawing.text(10, 20, "log-probability a token against distinct-2");
  drawing.line(50, 300, 460, 300, "black");
  drawing.line(50, 30, 50, 300, "black");
  for (const int tenths : {0, 5, 10}) {
    drawing.text(50 + 38.0 * tenths, 316, tenths == 5 ? "0.5" : std::to_string(tenths / 10), "middle");
  }
  for (const int level : {0, -1, -2, -3}) drawing.text(44, 34 - 80.0 * level, std::to_string(level), "end");
  std::vector<std::string> table;
  for (const way& how : ways) {
    std::vector<token_text> texts;
    double log_prob = 0;
    std::size_t tokens = 0;
    std::printf("%s\n", how.name);
    for (const char* word : words) {
      for (const output& one : (author.*how.write)(tokenizer.encode(std::string(word) + ":", {.bos = true}))) {
        if (word == words[0]) std::printf("  %s:%s\n", word, tokenizer.decode(one.tokens).c_str());
        texts.push_back(one.tokens);
        log_prob += one.log_prob;
        tokens += one.tokens.size();
      }
    }
    const double mean = log_prob / static_cast<double>(tokens), pairs = distinct(texts, 2);
    char line[96];
    std::snprintf(line, sizeof line, "%-25s %7.1f %11.2f %11.2f", how.name,
                  static_cast<double>(tokens) / static_cast<double>(texts.size()), mean, pairs);
    table.emplace_back(line);
    const double x = 50 + 380 * pairs, y = 30 - 80 * mean;
    drawing.circle(x, y, 4, "steelblue");
    drawing.text(x - 8, y + 4, how.name, "end");
  }
  std::printf("\n%-25s %7s %11s %11s\n", "", "tokens", "log p/token", "distinct-2");
  for (const std::string& line : table) std::printf("%s\n", line.c_str());
  return argc < 2 || drawing.write(argv[1]) ? 0 : 1;
}
