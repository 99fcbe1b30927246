// SPDX-License-Identifier: MIT
// The demo: text from a small model, streamed as it is decided. `decant_generate --help` lists what can be set.

#include <cstdio>

#include <decant/decant.hpp>

#include "demo_options.hpp"
#include "shipped_model.hpp"

int main(int argc, char** argv) {
  using namespace decant;
  demo_options options;
  CLI::App app("Generates text with a small model, token by token.");
  options.add_to(app);
  CLI11_PARSE(app, argc, argv);

  try {
    auto [model, tokenizer] = shipped_model::load(options.model, options.tokenizer, options.dummy_space);
    auto decoder =
        chain(repetition_penalty(options.repetition_penalty), no_repeat_ngram(options.no_repeat_ngram),
              top_k(options.top_k), top_p(options.top_p), min_p(options.min_p), temperature(options.temperature)) |
        (options.greedy ? any_sampler(greedy{}) : any_sampler(multinomial{}));
    std::printf("model: %s (%zu layers, vocabulary %zu, context %zu)\n",
                options.model.substr(options.model.find_last_of('/') + 1).c_str(), model.n_layers(),
                model.vocabulary_size(), model.sequence_length());
    std::printf("chain: %s\nseed: %llu\n", decoder.describe().c_str(), static_cast<unsigned long long>(options.seed));

    for (std::size_t i = 0; i < options.prompts.size(); ++i) {
      std::printf("\n%s", options.prompts[i].c_str());
      const auto show = [](const token_event& event) {
        std::fwrite(event.text.data(), 1, event.text.size(), stdout);
        std::fflush(stdout);
      };
      const generation run = generate(model, tokenizer.encode(options.prompts[i], {.bos = true}), decoder,
                                      {.max_new_tokens = options.max_new_tokens,
                                       .stop_tokens = {tokenizer.eos()},
                                       .bytes = [&t = tokenizer](token_id id) { return t.bytes(id); },
                                       .on_token = show,
                                       .seed = options.seed,
                                       .sequence = i});
      std::printf("\n(%zu tokens, ended by %s; %.0f tokens/s, %.1f %% of the time in decoding)\n", run.tokens.size(),
                  to_string(run.finish), run.tokens_per_second(), 100 * run.decode_share());
    }
  } catch (const parameter_error& wrong) {
    std::fprintf(stderr, "%s\n", wrong.what());
    return 1;
  }
  return 0;
}
