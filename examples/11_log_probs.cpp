// SPDX-License-Identifier: MIT
// Log-probabilities: of each token the model's own, and its three best, whatever the chain does with them.

#include <cstdio>
#include <string>

#include <decant/decant.hpp>

#include "shipped_model.hpp"

int main() {
  using namespace decant;
  auto [model, tokenizer] = shipped_model::load();

  const auto text = [&t = tokenizer](token_id id) {
    return id == t.eos() ? "(end)" : "\"" + std::string(t.bytes(id)) + "\"";
  };
  double sum = 0;
  const auto show = [&](const token_event& event) {
    const token_log_probs& report = *event.log_probs;
    std::printf("%-14s %6.2f, rank %2zu:", text(event.token).c_str(), report.chosen.value, report.chosen.rank);
    for (const ranked_token& best : report.top) std::printf("  %s %.2f", text(best.id).c_str(), best.value);
    std::printf("\n");
    sum += report.chosen.value;
  };
  // The raw numbers are those before temperature and top_k; asking for them never changes what is drawn.
  const generation run =
      generate(model, tokenizer.encode("harvest:", {.bos = true}), temperature(0.8) | top_k(40) | multinomial{},
               {.max_new_tokens = 12,
                .stop_tokens = {tokenizer.eos()},
                .log_probs = log_prob_options{.top = 3, .mode = log_prob_mode::raw_log_probs},
                .on_token = show,
                .seed = 8});
  std::printf("the whole output: %.1f, %.1f a token\n", sum, sum / static_cast<double>(run.tokens.size()));
  return 0;
}
