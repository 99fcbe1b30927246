// SPDX-License-Identifier: MIT
// decant inside an engine's own loop: the engine owns the batch, the cache and the rows; decant decides the tokens.

#include <cstdio>
#include <span>
#include <vector>

#include <decant/chain.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

using namespace decant;

namespace {

constexpr std::size_t vocabulary = 11, padded = 16;

/// Stands for an engine: fills one padded row a request.
void forward(std::span<const token_id> tokens, std::span<float> row) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto id = static_cast<token_id>(i);
    row[i] = i < vocabulary ? static_cast<float>((id * 7 + tokens.back() * 5) % 11) / 3 : 1e9F;
  }
}

using request_decoder = decoder<dynamic_chain, multinomial>;

struct request {
  unsigned id;  // names its random numbers: the same tokens in whatever slot or batch it sits
  std::vector<token_id> tokens;
  std::size_t prompt_size;
  request_decoder decode;
};

}  // namespace

int main() {
  std::vector<request> batch;
  batch.push_back({7, {1}, 1, {{temperature(0.7)}, {}}});
  batch.push_back({8, {2, 5}, 2, {{frequency_penalty(0.5), top_k(4)}, {}}});

  std::vector<float> logits(batch.size() * padded);
  for (int step = 0; step < 8; ++step) {
    for (std::size_t slot = 0; slot < batch.size(); ++slot) {
      request& r = batch[slot];
      const auto row = std::span(logits).subspan(slot * padded, padded);
      forward(r.tokens, row);
      // Rows are edited in place and restored; what lies past the vocabulary is cut off, not sampled.
      const auto outcome =
          r.decode.try_step(row.first(vocabulary), context_after(r.tokens, r.prompt_size, draw_stream(1, r.id)));
      if (outcome.status != row_status::ok) return std::fprintf(stderr, "request %u: bad row\n", r.id), 1;
      r.tokens.push_back(outcome.token);
    }
  }
  for (const request& r : batch) {
    std::printf("request %u, %s:", r.id, r.decode.describe().c_str());
    for (const token_id t : r.tokens) std::printf(" %d", t);
    std::printf("\n");
  }
  return 0;
}
