// SPDX-License-Identifier: MIT
// What drafts from inside the target, on the trained model that comes with decant: the text of plain greedy decoding.

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/processors/presence_penalty.hpp>
#include <decant/processors/repetition_penalty.hpp>
#include <decant/reference/early_exit_transformer.hpp>
#include <decant/reference/feature_drafter.hpp>
#include <decant/reference/headed_transformer.hpp>
#include <decant/reference/tokenizer.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/speculative/blockwise_heads.hpp>
#include <decant/speculative/draft_and_verify.hpp>
#include <decant/speculative/eagle.hpp>
#include <decant/speculative/layer_skip.hpp>
#include <decant/speculative/medusa.hpp>
#include <decant/speculative/multi_token_prediction.hpp>
#include <decant/speculative/speculate.hpp>
#include <decant/speculative/swift.hpp>

#include "any_drafter.hpp"

namespace shipped_drafters_tests {

using decant::greedy;
using drafter = toy::any_drafter<decant::headed_transformer>;

const std::filesystem::path models = std::filesystem::path(DECANT_SOURCE_DIR) / "examples" / "models";

auto chain() { return decant::repetition_penalty(1.2) | decant::presence_penalty(0.3) | greedy{}; }

struct shipped {
  decant::checkpoint weights = *decant::read_checkpoint(models / "target.bin");
  decant::tokenizer tokenizer =
      *decant::tokenizer::load(models / "tokenizer.bin", 2048, decant::tokenizer_options{.dummy_space = false});
  decant::token_heads heads = *decant::token_heads::load(models / "heads.bin");

  /// Prompts from the first pieces of three letters or more, each a word with a colon.
  [[nodiscard]] std::vector<std::vector<decant::token_id>> prompts(std::size_t count) const {
    std::vector<std::vector<decant::token_id>> all;
    for (decant::token_id id = 259; all.size() < count; ++id) {
      const std::string piece(tokenizer.bytes(id));
      const bool word = piece.size() >= 3 && std::ranges::all_of(piece, [](char c) { return c >= 'a' && c <= 'z'; });
      if (word) all.push_back(tokenizer.encode(piece + ":", {.bos = true}));
    }
    return all;
  }

  [[nodiscard]] decant::generate_options options() const {
    decant::generate_options made;
    made.max_new_tokens = 40;
    made.stop_tokens = {tokenizer.eos()};
    made.stop_strings = {" which ", "; "};
    made.bytes = [this](decant::token_id id) { return tokenizer.bytes(id); };
    return made;
  }
};

/// Speculates on every prompt and compares with the plain run; returns the drafted tokens accepted.
template <class M, class S>
std::size_t accepted_of(const shipped& files, M& model, S& from_inside,
                        const std::vector<std::vector<decant::token_id>>& prompts,
                        const std::vector<decant::generation>& plain) {
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto run = decant::speculate(model, prompts[i], from_inside, chain(), files.options(),
                                       {.length = decant::draft_length::fixed(4), .max_nodes = 24});
    CHECK(run.tokens == plain[i].tokens);
    CHECK(run.text == plain[i].text);
    CHECK(run.finish == plain[i].finish);
    accepted += run.statistics.drafted_tokens_accepted();
  }
  return accepted;
}

void check_all(std::size_t count) {
  const shipped files;
  const auto prompts = files.prompts(count);
  decant::headed_transformer model(decant::transformer(files.weights), files.heads);
  std::vector<decant::generation> plain;
  std::size_t tokens = 0;
  for (const auto& prompt : prompts) {
    plain.push_back(decant::generate(model, prompt, chain(), files.options()));
    tokens += plain.back().tokens.size();
  }

  std::vector<bool> second_layer(model.sub_layers(), false);
  second_layer[2] = second_layer[3] = true;
  const decant::exit_threshold_options exit{.start = 0.3};
  std::vector<std::pair<const char*, drafter>> all;
  all.emplace_back("medusa", drafter(decant::medusa(decant::tree_shape::likely(files.heads.shares(), 24))));
  all.emplace_back("blockwise", drafter(decant::blockwise_heads()));
  all.emplace_back("multi-token prediction", drafter(decant::multi_token_prediction(chain())));
  all.emplace_back("draft and verify", drafter(decant::draft_and_verify(model, chain(), second_layer, exit)));
  all.emplace_back("swift", drafter(decant::swift(model, chain(), {.exit = exit})));
  const auto network = *decant::feature_drafter::load(models / "features.bin", files.weights);
  all.emplace_back("eagle", drafter(decant::eagle(network, {.width = 4, .depth = 4, .nodes = 24})));
  for (auto& [name, from_inside] : all) {
    CAPTURE(name);
    CHECK(accepted_of(files, model, from_inside, prompts, plain) > tokens / 20);
  }

  decant::early_exit_transformer early(files.weights);
  toy::any_drafter<decant::early_exit_transformer> skip(decant::layer_skip(early, chain(), 4));
  CHECK(accepted_of(files, early, skip, prompts, plain) > tokens / 20);
}

TEST_CASE("drafters from inside the shipped target: plain greedy text, with penalties and stop strings",
          "[speculative]") {
  check_all(2);
}

TEST_CASE("drafters from inside the shipped target: 200 prompts", "[speculative][long]") { check_all(200); }

}  // namespace shipped_drafters_tests
