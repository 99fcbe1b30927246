// SPDX-License-Identifier: MIT
// Speculative decoding with two models: a small one drafts, the large one verifies, and what comes out has the large
// one's law. On an engine whose pass costs the same for one token as for six, tokens a pass are the gain.

#include <cstdio>
#include <span>
#include <vector>

#include <decant/decant.hpp>

#include "shipped_model.hpp"

/// A model on a device that is bound by memory: every pass takes as long, however many tokens it scores. The time is
/// counted, not waited for.
class memory_bound {
 public:
  memory_bound(decant::transformer& model, double milliseconds) : model_(&model), a_pass_(milliseconds) {}

  std::span<const float> evaluate(std::span<const decant::token_id> tokens) {
    elapsed_ += a_pass_;
    return model_->evaluate(tokens);
  }
  void score(std::span<const decant::token_id> tokens) {
    elapsed_ += a_pass_;
    model_->score(tokens);
  }
  [[nodiscard]] std::span<const float> row(std::size_t i) const { return model_->row(i); }
  [[nodiscard]] std::size_t size() const { return model_->size(); }
  [[nodiscard]] std::size_t vocabulary_size() const { return model_->vocabulary_size(); }
  [[nodiscard]] std::size_t sequence_length() const { return model_->sequence_length(); }
  void truncate(std::size_t count) { model_->truncate(count); }

  [[nodiscard]] double milliseconds() const { return elapsed_; }

 private:
  decant::transformer* model_;
  double a_pass_, elapsed_ = 0;
};

int main() {
  using namespace decant;
  auto [large, tokenizer] = shipped_model::load();
  auto [small, unused] = shipped_model::load(DECANT_MODELS_DIR "/draft.bin");
  const auto prompt = tokenizer.encode("harvest:", {.bos = true});
  const auto chain = temperature(0.8) | top_p(0.95) | multinomial{};
  const generate_options options{.max_new_tokens = 120, .seed = 3};

  memory_bound alone(large, 20);
  const generation plain = generate(alone, prompt, chain, options);
  std::printf("plain:       %3zu tokens in %3.0f passes, %4.0f ms simulated\n", plain.tokens.size(),
              alone.milliseconds() / 20, alone.milliseconds());

  for (const std::size_t length : {std::size_t{2}, std::size_t{4}, std::size_t{6}}) {
    memory_bound target(large, 20), drafting(small, 1);
    draft_model drafter(drafting, chain);
    const speculation fast =
        speculate(target, prompt, drafter, chain, options, {.length = draft_length::fixed(length)});
    const speculation_statistics& seen = fast.statistics;
    std::printf("%zu drafted:   %3zu tokens in %3.0f passes, %4.0f ms simulated, %.2f tokens a pass\n", length,
                fast.tokens.size(), target.milliseconds() / 20, target.milliseconds() + drafting.milliseconds(),
                seen.tokens_per_pass());
    std::printf("  accepted by position:");
    for (std::size_t i = 0; i < seen.accepted.size(); ++i) {
      std::printf(" %.2f", static_cast<double>(seen.accepted[i]) / static_cast<double>(seen.proposed[i]));
    }
    std::printf("; rate %.2f, best length at a cost of 1/20: %zu\n", seen.acceptance_rate(),
                optimal_draft_length(seen.acceptance_rate(), 0.05, 16));
  }

  // Greedy decoding, or verification by the request's own stream, changes no token at all.
  draft_model drafter(small, chain);
  const speculation same = speculate(large, prompt, drafter, chain, options, {}, coupled_verification{});
  std::printf("coupled to the request's stream: the tokens are %s\n",
              same.tokens == plain.tokens ? "those of plain decoding" : "others");
  return 0;
}
