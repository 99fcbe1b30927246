// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

/// What the demo can be told, with its defaults.
struct demo_options {
  std::vector<std::string> prompts{"harbour:", "violin:", "to whistle:"};
  std::string model = DECANT_MODELS_DIR "/target.bin", tokenizer = DECANT_MODELS_DIR "/tokenizer.bin";
  bool dummy_space = false, greedy = false;
  double temperature = 0.8, top_p = 0.95, min_p = 0, repetition_penalty = 1.05;
  std::int64_t top_k = 50, no_repeat_ngram = 0;
  std::size_t max_new_tokens = 96;
  std::uint64_t seed = std::random_device{}();

  /// Declares them all; the texts are what --help prints.
  void add_to(CLI::App& app) {
    app.add_option("prompt", prompts,
                   "What to continue, one text a prompt; the shipped model defines a word: 'anchor:'");
    app.add_option("-m,--model", model, "A llama2.c checkpoint (default: the one that comes with decant)");
    app.add_option("--tokenizer", tokenizer, "Its tokenizer.bin");
    app.add_flag("--dummy-space", dummy_space, "The tokenizer puts a space before a text (llama2.c's own do)");
    app.add_option("-s,--seed", seed, "Seed of all random numbers (default: a random one, printed)");
    app.add_option("-n,--max-new-tokens", max_new_tokens, "Stop after so many tokens")->capture_default_str();
    app.add_option("-t,--temperature", temperature, "Below 1 sharper, above 1 flatter, 1 is off")
        ->capture_default_str();
    app.add_option("--top-k", top_k, "Keep the k most probable tokens, 0 is off")->capture_default_str();
    app.add_option("--top-p", top_p, "Keep the smallest set with this mass, 1 is off")->capture_default_str();
    app.add_option("--min-p", min_p, "Keep tokens this close to the most probable, 0 is off")->capture_default_str();
    app.add_option("--repetition-penalty", repetition_penalty, "Above 1 avoids repetition, 1 is off")
        ->capture_default_str();
    app.add_option("--no-repeat-ngram", no_repeat_ngram, "Never repeat a sequence of n tokens, 0 is off")
        ->capture_default_str();
    app.add_flag("--greedy", greedy, "Always take the most probable token");
  }
};
