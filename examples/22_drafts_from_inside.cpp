// SPDX-License-Identifier: MIT
// A model that drafts for itself: with heads for later tokens, with a drafter of its own hidden states, and with some
// of its layers left out. The text is what plain greedy decoding writes; the passes that it takes differ.

#include <cstdio>
#include <string>
#include <vector>

#include <decant/decant.hpp>

#include "shipped_model.hpp"

namespace {

using namespace decant;

const std::vector<std::string> words{"harbour:", "lantern:",  "violinist:", "to gallop:", "glacier:",
                                     "honesty:", "oak tree:", "volcano:",   "barter:",    "cheerful:"};

generate_options options(const tokenizer& tokenizer) {
  return {.max_new_tokens = 40, .stop_tokens = {tokenizer.eos()}, .bytes = [&tokenizer](token_id id) {
            return tokenizer.bytes(id);
          }};
}

auto best() { return temperature(1) | greedy{}; }

/// Defines all words and says how often drafted tokens were accepted.
template <class M, class S>
void define(const char* name, M& model, const tokenizer& tokenizer, S drafter, std::size_t depth, std::size_t nodes,
            const std::string& plain) {
  std::string texts;
  std::vector<std::size_t> accepted(depth), tried(depth);
  std::size_t rounds = 0, tokens = 0;
  for (const std::string& word : words) {
    const speculation run = speculate(model, tokenizer.encode(word, {.bos = true}), drafter, best(), options(tokenizer),
                                      {.length = draft_length::fixed(depth), .max_nodes = nodes});
    const speculation_statistics& seen = run.statistics;
    rounds += seen.rounds;
    tokens += seen.tokens;
    for (std::size_t i = 0; i < seen.accepted.size(); ++i) accepted[i] += seen.accepted[i];
    for (std::size_t i = 0; i < seen.tried.size(); ++i) tried[i] += seen.tried[i];
    texts += run.text + '\n';
  }
  std::printf("%-36s %4.2f  %s ", name, static_cast<double>(tokens) / static_cast<double>(rounds),
              texts == plain ? "yes" : "no ");
  for (std::size_t i = 0; i < depth && tried[i] > 0; ++i) {
    std::printf(" %3.0f%%", 100 * static_cast<double>(accepted[i]) / static_cast<double>(tried[i]));
  }
  std::printf("\n");
}

}  // namespace

int main() {
  const std::string folder = DECANT_MODELS_DIR;
  auto shipped = shipped_model::load();
  const auto weights = read_checkpoint(folder + "/target.bin");
  const auto heads = token_heads::load(folder + "/heads.bin");
  const auto network = feature_drafter::load(folder + "/features.bin", *weights);
  headed_transformer model(shipped.model, *heads);
  early_exit_transformer early(*weights);
  const tokenizer& tokenizer = shipped.tokenizer;

  std::string plain;
  for (const std::string& word : words) {
    plain += generate(model, tokenizer.encode(word, {.bos = true}), best(), options(tokenizer)).text + '\n';
  }

  std::printf("%-32s tokens a pass, plain text?, drafted tokens accepted by position\n", "");
  define("heads: the best of each", model, tokenizer, medusa(tree_shape::chain(4)), 4, 4, plain);
  define("heads: the 32 likely nodes (Medusa)", model, tokenizer, medusa(tree_shape::likely(heads->shares(), 32)), 4,
         32, plain);
  define("features: a chain (EAGLE)", model, tokenizer, eagle(*network, {.width = 1}), 5, 5, plain);
  define("features: 32 nodes (EAGLE-2)", model, tokenizer, eagle(*network, {.width = 6}), 5, 32, plain);
  define("4 of 5 layers (LayerSkip)", early, tokenizer, layer_skip(early, best(), 4), 4, 4, plain);
  // An exit threshold that stays: the drafts go on while the model is not quite unsure.
  const exit_threshold_options exit{.start = 0.1, .step = 0};
  std::vector<bool> skip(model.sub_layers());
  skip[2] = skip[3] = true;  // the second layer's attention and its feed-forward block
  define("no second layer (Draft & Verify)", model, tokenizer, draft_and_verify(model, best(), skip, exit), 4, 4,
         plain);
  define("2 of 10 sub-layers found (SWIFT)", model, tokenizer, swift(model, best(), {.exit = exit}), 4, 4, plain);
  return 0;
}
