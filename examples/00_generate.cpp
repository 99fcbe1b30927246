// SPDX-License-Identifier: MIT
// The demo: text from a small model, streamed as it is decided. `decant_generate --help` lists what can be set.

#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <decant/decant.hpp>

#include "shipped_model.hpp"

int main(int argc, char** argv) {
  std::vector<std::string> prompts{"harbour:", "violin:", "to whistle:"};
  std::string model_file = DECANT_MODELS_DIR "/target.bin", tokenizer_file = DECANT_MODELS_DIR "/tokenizer.bin";
  bool dummy_space = false, greedy = false;
  double temperature = 0.8, top_p = 0.95, min_p = 0, repetition_penalty = 1.05;
  std::int64_t top_k = 50, no_repeat_ngram = 0;
  std::size_t max_new_tokens = 96;
  std::uint64_t seed = static_cast<std::uint64_t>(std::random_device{}());

  CLI::App app("Generates text with a small model, token by token.");
  app.add_option("prompt", prompts, "What to continue, one text a prompt; the shipped model defines a word: 'anchor:'");
  app.add_option("-m,--model", model_file, "A llama2.c checkpoint (default: the one that comes with decant)");
  app.add_option("--tokenizer", tokenizer_file, "Its tokenizer.bin");
  app.add_flag("--dummy-space", dummy_space, "The tokenizer puts a space before a text (llama2.c's own do)");
  app.add_option("-s,--seed", seed, "Seed of all random numbers (default: a random one, printed)");
  app.add_option("-n,--max-new-tokens", max_new_tokens, "Stop after so many tokens")->capture_default_str();
  app.add_option("-t,--temperature", temperature, "Below 1 sharper, above 1 flatter, 1 is off")->capture_default_str();
  app.add_option("--top-k", top_k, "Keep the k most probable tokens, 0 is off")->capture_default_str();
  app.add_option("--top-p", top_p, "Keep the smallest set with this mass, 1 is off")->capture_default_str();
  app.add_option("--min-p", min_p, "Keep tokens this close to the most probable, 0 is off")->capture_default_str();
  app.add_option("--repetition-penalty", repetition_penalty, "Above 1 avoids repetition, 1 is off")
      ->capture_default_str();
  app.add_option("--no-repeat-ngram", no_repeat_ngram, "Never repeat a sequence of n tokens, 0 is off")
      ->capture_default_str();
  app.add_flag("--greedy", greedy, "Always take the most probable token");
  CLI11_PARSE(app, argc, argv);

  try {
    auto [model, tokenizer] = shipped_model::load(model_file, tokenizer_file, dummy_space);
    auto processors = decant::chain(decant::repetition_penalty(repetition_penalty),
                                    decant::no_repeat_ngram(no_repeat_ngram), decant::top_k(top_k),
                                    decant::top_p(top_p), decant::min_p(min_p), decant::temperature(temperature));
    auto decoder =
        processors | (greedy ? decant::any_sampler(decant::greedy{}) : decant::any_sampler(decant::multinomial{}));
    std::printf("model: %s (%zu layers, vocabulary %zu, context %zu)\n",
                model_file.substr(model_file.find_last_of('/') + 1).c_str(), model.n_layers(), model.vocabulary_size(),
                model.sequence_length());
    std::printf("chain: %s\nseed: %llu\n", decoder.describe().c_str(), static_cast<unsigned long long>(seed));

    for (std::size_t i = 0; i < prompts.size(); ++i) {
      std::printf("\n%s", prompts[i].c_str());
      const auto prompt = tokenizer.encode(prompts[i], {.bos = true});
      const auto run = decant::generate(model, prompt, decoder,
                                        {.max_new_tokens = max_new_tokens,
                                         .stop_tokens = {tokenizer.eos()},
                                         .bytes = [&t = tokenizer](decant::token_id id) { return t.bytes(id); },
                                         .on_token =
                                             [](const decant::token_event& event) {
                                               std::fwrite(event.text.data(), 1, event.text.size(), stdout);
                                               std::fflush(stdout);
                                             },
                                         .seed = seed,
                                         .sequence = i});
      std::printf("\n(%zu tokens, ended by %s; %.0f tokens/s, %.1f %% of the time in decoding)\n", run.tokens.size(),
                  decant::to_string(run.finish), run.tokens_per_second(), 100 * run.decode_share());
    }
  } catch (const decant::parameter_error& wrong) {
    std::fprintf(stderr, "%s\n", wrong.what());
    return 1;
  }
}
