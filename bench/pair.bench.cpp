// SPDX-License-Identifier: MIT
// Whether speculation pays on the shipped pair, on this machine, whose passes are bound by arithmetic: the time of
// plain decoding over that of speculation, as speculative/pair.<drafter>/greedy and /sampled. The two take turns in one
// process, and tokens are the same where decoding is greedy. Counters: speedup, tokens_per_pass, and accepted_<i>, the
// share of drafted tokens accepted at position i.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <decant/decant.hpp>

#include "../examples/shipped_model.hpp"
#include "harness.hpp"

namespace {

using namespace decant;

/// The models, and what is asked of them; loaded once.
struct pair_setup {
  shipped_model shipped = shipped_model::load();
  transformer small = shipped_model::load(DECANT_MODELS_DIR "/draft.bin").model;
  checkpoint weights = shipped_model::present(read_checkpoint(DECANT_MODELS_DIR "/target.bin"));
  token_heads heads = shipped_model::present(token_heads::load(DECANT_MODELS_DIR "/heads.bin"));
  feature_drafter features = shipped_model::present(feature_drafter::load(DECANT_MODELS_DIR "/features.bin", weights));
  headed_transformer headed{shipped.model, heads};
  early_exit_transformer early{weights};
  std::vector<std::vector<token_id>> prompts;

  pair_setup() {
    for (const char* word : {"river:", "music:", "winter:", "paper:", "teacher:", "to run:"}) {
      prompts.push_back(shipped.tokenizer.encode(word, {.bos = true}));
    }
  }
  static pair_setup& get() {
    static pair_setup all;
    return all;
  }
};

// Temperature 0 is greedy decoding: one type of decoder serves for both.
auto decoder_at(double t) { return top_p(0.9) | temperature(t) | multinomial{}; }

const generate_options options{.max_new_tokens = 50, .seed = 7};

/// `make(decoder)` is the drafter of a model.
template <class M, class Make>
void measure(benchmark::State& state, M& model, double t, std::size_t depth, std::size_t nodes, Make make) {
  using bench::detail::clock;
  auto drafter = make(decoder_at(t));
  const speculation_options how{.length = draft_length::fixed(depth), .max_nodes = nodes};
  std::vector<double> plain, fast;
  speculation_statistics sum;
  std::vector<double> accepted(depth), tried(depth);
  for (auto _ : state) {
    for (int turn = 0; turn < 5; ++turn) {
      double seconds[2] = {};
      for (const auto& prompt : pair_setup::get().prompts) {
        auto start = clock::now();
        const std::size_t written = generate(model, prompt, decoder_at(t), options).tokens.size();
        // By the token: what is sampled differs in length.
        seconds[0] += bench::detail::seconds(clock::now() - start) / static_cast<double>(written);
        start = clock::now();
        const speculation run = speculate(model, prompt, drafter, decoder_at(t), options, how);
        seconds[1] += bench::detail::seconds(clock::now() - start) / static_cast<double>(run.tokens.size());
        if (turn > 0) continue;
        sum.rounds += run.statistics.rounds;
        sum.tokens += run.statistics.tokens;
        for (std::size_t i = 0; i < std::min({depth, run.statistics.tried.size(), run.statistics.accepted.size()});
             ++i) {
          accepted[i] += static_cast<double>(run.statistics.accepted[i]);
          tried[i] += static_cast<double>(run.statistics.tried[i]);
        }
      }
      plain.push_back(seconds[0]);
      fast.push_back(seconds[1]);
    }
    state.SetIterationTime(bench::detail::median(fast) / static_cast<double>(pair_setup::get().prompts.size()));
  }
  state.counters["speedup"] = bench::detail::median(plain) / bench::detail::median(fast);
  state.counters["tokens_per_pass"] = sum.tokens_per_pass();
  for (std::size_t i = 0; i < depth; ++i) {
    if (tried[i] > 0) state.counters["accepted_" + std::to_string(i + 1)] = accepted[i] / tried[i];
  }
}

template <class M, class Make>
void add(const std::string& name, M& model, std::size_t depth, std::size_t nodes, Make make) {
  for (const bool greedily : {true, false}) {
    bench::add("speculative/pair." + name + (greedily ? "/greedy" : "/sampled"),
               [=, &model](benchmark::State& state) { measure(state, model, greedily ? 0 : 0.8, depth, nodes, make); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  auto& all = pair_setup::get();
  auto& target = all.shipped.model;
  add("prompt_lookup", target, 3, 3, [](auto) { return prompt_lookup({.order = match_order::most_recent}); });
  add("lookahead", target, 4, 8, [](auto) { return lookahead({.window = 3, .ngram = 3, .candidates = 2}); });
  add("draft_model", target, 3, 3, [&](auto decoder) { return draft_model(all.small, decoder); });
  add("dynamic_tree", target, 4, 8,
      [&](auto) { return dynamic_tree(model_rows{all.small}, {.width = 2, .depth = 4, .nodes = 8}); });
  add("medusa", all.headed, 3, 8, [&](auto) { return medusa(tree_shape::likely(all.heads.shares(), 8)); });
  add("eagle", all.headed, 3, 3, [&](auto) { return eagle(all.features, {.width = 1}); });
  add("layer_skip", all.early, 3, 3, [&](auto decoder) { return layer_skip(all.early, decoder, 3); });
  return bench::run(argc, argv);
}
