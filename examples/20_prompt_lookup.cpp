// SPDX-License-Identifier: MIT
// Speculation without a second model: where a text repeats itself, what followed before is drafted again. The output is
// token for token the one of plain decoding; only the number of passes changes.

#include <cstdio>
#include <string>
#include <vector>

#include <decant/decant.hpp>

#include "shipped_model.hpp"

int main() {
  using namespace decant;
  auto [model, tokenizer] = shipped_model::load();
  const auto decoder = decode_with(greedy{});
  prompt_lookup drafter({.max_ngram = 3, .order = match_order::most_recent});

  for (const std::string text : {"harvest:", "river: a river is a large stream of water. river:"}) {
    const std::vector<token_id> prompt = tokenizer.encode(text, {.bos = true});
    generate_options options{.max_new_tokens = 60, .stop_tokens = {tokenizer.eos()}};
    options.bytes = [&t = tokenizer](token_id id) { return t.bytes(id); };
    const generation plain = generate(model, prompt, decoder, options);
    const speculation fast = speculate(model, prompt, drafter, decoder, options, {.length = draft_length::fixed(6)});
    std::printf("%s%s\n", text.c_str(), fast.text.c_str());
    std::printf("  %zu tokens in %zu passes, %.2f a pass; %s plain decoding\n", fast.tokens.size(),
                fast.statistics.rounds, fast.statistics.tokens_per_pass(),
                fast.tokens == plain.tokens ? "the same as" : "NOT THE SAME AS");
  }

  // What a draft looks like.
  const std::vector<token_id> text = tokenizer.encode("a river is a large stream of water. a river is", {.bos = true});
  draft_request request;
  request.context = context_after(text, text.size(), {});
  request.max_depth = request.max_nodes = 4;
  draft proposal;
  drafter.propose(request, proposal);
  std::printf("after \"a river is\" it drafts \"%s\"\n", tokenizer.decode(proposal.tokens()).c_str());
  return 0;
}
