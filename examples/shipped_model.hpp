// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include <decant/reference.hpp>

/// The small model that comes with decant, and its tokenizer. Ends the program with a message if a file is not right.
struct shipped_model {
  decant::transformer model;
  decant::tokenizer tokenizer;

  static shipped_model load(const std::string& model_file = DECANT_MODELS_DIR "/target.bin",
                            const std::string& tokenizer_file = DECANT_MODELS_DIR "/tokenizer.bin",
                            bool dummy_space = false) {
    auto model = present(decant::transformer::load(model_file));
    auto tokenizer =
        present(decant::tokenizer::load(tokenizer_file, model.vocabulary_size(), {.dummy_space = dummy_space}));
    return {std::move(model), std::move(tokenizer)};
  }

  /// What has been loaded; else says why not, and ends the program.
  template <class T>
  static T present(decant::result<T> loaded) {
    if (loaded) return std::move(loaded).value();
    std::fprintf(stderr, "%s\n", loaded.error().text().c_str());
    std::exit(1);
  }
};
