// SPDX-License-Identifier: MIT
// Texts that may not end: greedy decoding goes round in circles, sampling wanders off, contrastive search looks at how
// much each likely token repeats what the model has had in mind. Distinct-n is the share of different n-grams.

#include <cmath>
#include <cstdio>
#include <set>
#include <span>
#include <vector>

#include <decant/decant.hpp>

#include "shipped_model.hpp"

namespace {

using tokens = std::vector<decant::token_id>;

double distinct(const tokens& text, std::size_t n) {
  std::set<tokens> different;
  for (auto rest = std::span(text); rest.size() >= n; rest = rest.subspan(1)) {
    const auto gram = rest.first(n);
    different.emplace(gram.begin(), gram.end());
  }
  return static_cast<double>(different.size()) / static_cast<double>(text.size() + 1 - n);
}

/// What the model itself thinks of a text.
double log_prob(decant::transformer& model, const tokens& prompt, const tokens& text) {
  tokens whole = prompt;
  whole.insert(whole.end(), text.begin(), text.end());
  model.truncate(0);
  model.score(whole);
  decant::candidates row;
  double sum = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    row.bind(model.row(prompt.size() - 1 + i));
    sum += row.log_probability(text[i]);
  }
  return sum;
}

struct totals {
  double distinct_2 = 0, distinct_4 = 0, log_prob = 0, tokens = 0, texts = 0;
};

}  // namespace

int main() {
  using namespace decant;
  auto [model, tokenizer] = shipped_model::load();
  transformer_batch batch(model.as_checkpoint());
  const suppress_tokens no_end({tokenizer.eos()});
  constexpr std::size_t length = 100;

  const char* const methods[] = {"greedy", "top_p(0.95)", "contrastive k = 5, alpha = 0.6"};
  totals sums[3];
  for (const char* word : {"harvest:", "violin:", "glacier:", "to whistle:"}) {
    const auto prompt = tokenizer.encode(word, {.bos = true});
    const generate_options options{.max_new_tokens = length, .seed = 2026};
    const tokens texts[] = {
        generate(model, prompt, no_end | greedy{}, options).tokens,
        generate(model, prompt, no_end | top_p(0.95) | multinomial{}, options).tokens,
        contrastive_search(batch, prompt, {.k = 5, .alpha = 0.6, .max_new_tokens = length, .processors = {no_end}})
            .tokens,
    };
    for (std::size_t i = 0; i < 3; ++i) {
      sums[i].distinct_2 += distinct(texts[i], 2);
      sums[i].distinct_4 += distinct(texts[i], 4);
      sums[i].log_prob += log_prob(model, prompt, texts[i]);
      sums[i].tokens += static_cast<double>(texts[i].size());
      sums[i].texts += 1;
      if (sums[i].texts == 1) std::printf("%s\n  %s%s\n", methods[i], word, tokenizer.decode(texts[i]).c_str());
    }
  }
  std::printf("\n%-32s distinct-2  distinct-4  perplexity\n", "");
  for (std::size_t i = 0; i < 3; ++i) {
    std::printf("%-32s %10.2f  %10.2f  %10.1f\n", methods[i], sums[i].distinct_2 / sums[i].texts,
                sums[i].distinct_4 / sums[i].texts, std::exp(-sums[i].log_prob / sums[i].tokens));
  }
  return 0;
}
