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

/// Writes all definitions; returns the counts of all, and adds the texts.
template <class M, class S>
void write(const char* name, M& model, const tokenizer& tokenizer, S drafter, std::size_t depth, std::size_t nodes,
           std::string* texts) {
  std::string written;
  std::vector<std::size_t> accepted(depth), tried(depth);
  std::size_t rounds = 0, tokens = 0;
  for (const std::string& word : words) {
    const speculation run = speculate(model, tokenizer.encode(word, {.bos = true}), drafter, temperature(1) | greedy{},
                                      {.max_new_tokens = 40,
                                       .stop_tokens = {tokenizer.eos()},
                                       .bytes = [&t = tokenizer](token_id id) { return t.bytes(id); }},
                                      {.length = draft_length::fixed(depth), .max_nodes = nodes});
    const speculation_statistics& seen = run.statistics;
    rounds += seen.rounds;
    tokens += seen.tokens;
    for (std::size_t i = 0; i < seen.accepted.size(); ++i) accepted[i] += seen.accepted[i];
    for (std::size_t i = 0; i < seen.tried.size(); ++i) tried[i] += seen.tried[i];
    written += word + run.text + '\n';
  }
  std::printf("%-34s %5.2f   ", name, static_cast<double>(tokens) / static_cast<double>(rounds));
  for (std::size_t i = 0; i < depth && tried[i] > 0; ++i) {
    std::printf(" %3.0f%%", 100 * static_cast<double>(accepted[i]) / static_cast<double>(tried[i]));
  }
  if (texts->empty()) *texts = written;
  std::printf("%s\n", written == *texts ? "" : "  another text!");
}

/// Nothing is drafted: plain decoding.
struct no_draft {
  void propose(const draft_request&, draft&) {}
};

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

  std::printf("%-34s %s\n", "", "tokens a pass; drafted tokens accepted, by position");
  std::string texts;
  write("plain decoding", model, tokenizer, no_draft{}, 1, 1, &texts);
  write("blockwise: 4 heads", model, tokenizer, blockwise_heads(), 4, 4, &texts);
  write("Medusa: the 32 likely nodes", model, tokenizer, medusa(tree_shape::likely(heads->shares(), 32)), 4, 32,
        &texts);
  write("EAGLE: a chain", model, tokenizer, eagle(*network, {.width = 1}), 5, 5, &texts);
  write("EAGLE-2: 32 nodes", model, tokenizer, eagle(*network, {.width = 6, .nodes = 32}), 5, 32, &texts);
  write("LayerSkip: 4 of 5 layers", early, tokenizer, layer_skip(early, temperature(1) | greedy{}, 4), 4, 4, &texts);
  std::vector<bool> skip(model.sub_layers());
  skip[2] = skip[3] = true;  // the second layer's attention and its feed-forward block
  const exit_threshold_options exit{.start = 0.3};
  write("Draft & Verify: without layer 2", model, tokenizer,
        draft_and_verify(model, temperature(1) | greedy{}, skip, exit), 4, 4, &texts);
  write("SWIFT: finds 2 of 10 sub-layers", model, tokenizer, swift(model, temperature(1) | greedy{}, {.exit = exit}), 4,
        4, &texts);
}
