// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <decant/chain/any.hpp>
#include <decant/chain/compose.hpp>
#include <decant/generate/generate.hpp>
#include <decant/processors/frequency_penalty.hpp>
#include <decant/processors/repetition_penalty.hpp>
#include <decant/processors/top_p.hpp>
#include <decant/reference/tokenizer.hpp>
#include <decant/reference/transformer.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/speculative/draft_model.hpp>
#include <decant/speculative/dynamic_tree.hpp>
#include <decant/speculative/intersection_draft.hpp>
#include <decant/speculative/jacobi.hpp>
#include <decant/speculative/lookahead.hpp>
#include <decant/speculative/model_rows.hpp>
#include <decant/speculative/prompt_lookup.hpp>
#include <decant/speculative/retrieval.hpp>
#include <decant/speculative/sampled_tree.hpp>
#include <decant/speculative/speculate.hpp>
#include <decant/speculative/staged_draft.hpp>
#include <decant/speculative/string_draft.hpp>
#include <decant/speculative/suffix_draft.hpp>
#include <decant/testing/enumerate.hpp>
#include <decant/testing/markov_model.hpp>

#include "reference/fixtures.hpp"
#include "speculative/any_drafter.hpp"
#include "speculative/any_model.hpp"
#include "speculative/output_law.hpp"
#include "speculative/proposals.hpp"
#include "support/catch.hpp"

// What holds for every drafter that needs no trained heads, under the shipped driver.

namespace drafters_test {

using namespace decant;
using drafter_tests::any_model;
using drafter_tests::ids;

/// A drafter for any model, to be told by its name.
struct any_drafter : toy::any_drafter<any_model> {
  template <class D>
  any_drafter(std::string called, D drafter)
      : toy::any_drafter<any_model>(std::move(drafter)), name(std::move(called)) {}

  std::string name;
};

// One type for all chains: the driver is compiled once.
using run_time_decoder = decltype(dynamic_chain{} | any_sampler(multinomial{}));

run_time_decoder plain() { return dynamic_chain{} | any_sampler(multinomial{}); }
run_time_decoder truncated() { return dynamic_chain{top_p(0.8)} | any_sampler(multinomial{}); }
run_time_decoder penalised() { return dynamic_chain{frequency_penalty(0.5)} | any_sampler(multinomial{}); }
run_time_decoder greedy_plain() { return dynamic_chain{} | any_sampler(greedy{}); }
run_time_decoder greedy_penalised() {
  return dynamic_chain{repetition_penalty(1.3), frequency_penalty(0.2)} | any_sampler(greedy{});
}

/// A letter a token, so that texts in other vocabularies can be made.
std::string_view letter(token_id token) {
  static constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyz";
  return alphabet.substr(static_cast<std::size_t>(token), 1);
}

std::vector<std::string> letters(std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.emplace_back(letter(static_cast<token_id>(i)));
  return all;
}

/// The same letters in reverse order: another vocabulary.
retokeniser reversed(std::size_t count) {
  return {.bytes = letter, .encode = [count](std::string_view text) {
            ids tokens;
            for (const char c : text) tokens.push_back(static_cast<token_id>(count) - 1 - (c - 'a'));
            return tokens;
          }};
}
retokeniser reversed_back(std::size_t count) {
  return {.bytes = [count](token_id token) { return letter(static_cast<token_id>(count) - 1 - token); },
          .encode =
              [](std::string_view text) {
                ids tokens;
                for (const char c : text) tokens.push_back(c - 'a');
                return tokens;
              }};
}

/// The drafters that read the text alone.
void add_text_drafters(std::vector<any_drafter>& list, const ids& corpus, std::size_t window) {
  const auto shared = std::make_shared<const suffix_automaton>(corpus);
  list.emplace_back("prompt lookup", prompt_lookup());
  list.emplace_back("prompt lookup, most recent",
                    prompt_lookup({.min_ngram = 1, .order = match_order::most_recent, .run_on = true}));
  list.emplace_back("suffix draft", suffix_draft({.offset = 2}));
  list.emplace_back("suffix draft, corpus, tree",
                    suffix_draft({.offset = 3, .min_probability = 0.05, .tree = true}, shared));
  list.emplace_back("retrieval", retrieval_draft(std::make_shared<const retrieval_store>(corpus)));
  list.emplace_back("jacobi", jacobi(window));
  list.emplace_back("lookahead", lookahead({.window = window, .ngram = 3, .candidates = 2}));
}

/// Those with a draft model; a decoder for what they draw.
void add_model_drafters(std::vector<any_drafter>& list, any_model& small, any_model& smaller,
                        const run_time_decoder& decoder, const sampled_tree_options& tree) {
  list.emplace_back("draft model", draft_model(small, decoder));
  list.emplace_back("dynamic tree", dynamic_tree(model_rows(small), {.width = 2, .depth = 3, .nodes = 5}));
  sampled_tree_options with_replacement = tree;
  with_replacement.replacement = true;
  list.emplace_back("sampled tree", sampled_tree(model_rows(small), decoder, tree));
  list.emplace_back("sampled tree, with replacement", sampled_tree(model_rows(small), decoder, with_replacement));
  list.emplace_back("staged over a model", staged_draft(small, draft_model(smaller, decoder), decoder, 1));
  list.emplace_back("staged over prompt lookup", staged_draft(small, prompt_lookup(), decoder, 2));
}

any_model table_model(std::size_t vocabulary, std::size_t order, std::uint64_t seed) {
  return any_model(drafter_tests::table_model(vocabulary, order, seed));
}

/// All, for a target over three letters.
struct toy_drafters {
  explicit toy_drafters(const run_time_decoder& decoder) {
    add_text_drafters(list, {0, 1, 2, 0, 1, 1, no_token, 2, 2, 0, 1, 0}, 2);
    add_model_drafters(list, small, smaller, decoder, {.children = {2, 1}});
    const auto names = letters(3);
    const std::vector<std::string> backwards(names.rbegin(), names.rend());
    list.emplace_back("intersection",
                      intersection_draft(foreign, decoder, vocabulary_map(backwards, names), reversed(3)));
    list.emplace_back("strings", string_draft(foreign, decoder, reversed(3), reversed_back(3)));
  }

  any_model small = table_model(3, 1, 21), smaller = table_model(3, 1, 22), foreign = table_model(3, 1, 23);
  std::vector<any_drafter> list;
};

TEST_CASE("every drafter is lossless: exact laws", "[speculative][drafters]") {
  any_model model = table_model(3, 1, 20);
  const ids prompt{0, 1, 2, 0, 1};
  for (const auto& decoder : {plain(), truncated(), penalised()}) {
    for (auto& drafter : toy_drafters(decoder).list) {
      INFO(drafter.name << " for " << decoder.describe());
      CHECK(drafter_tests::distance_from_plain(model, prompt, drafter, decoder, 3,
                                               {.length = draft_length::fixed(2), .max_nodes = 5}) <= 1e-12);
    }
  }
}

/// Plain and speculative outputs of one prompt, with what may end them.
void check_equal_outputs(any_model& model, any_drafter& drafter, const ids& prompt, const run_time_decoder& decoder,
                         const generate_options& options, const speculation_options& how) {
  const generation expected = generate(model, prompt, decoder, options);
  const speculation got = speculate(model, prompt, drafter, decoder, options, how);
  CHECK(got.tokens == expected.tokens);
  CHECK(got.finish == expected.finish);
  CHECK(got.text == expected.text);
  CHECK(got.statistics.rounds <= expected.tokens.size());
}

TEST_CASE("every drafter leaves greedy decoding as it is: small models", "[speculative][drafters]") {
  constexpr std::size_t vocabulary = 5;
  any_model model = table_model(vocabulary, 2, 30), small = table_model(vocabulary, 1, 31),
            smaller = table_model(vocabulary, 1, 32);
  for (const auto& decoder : {greedy_plain(), greedy_penalised()}) {
    std::vector<any_drafter> list;
    add_text_drafters(list, reference_tests::number_source(1).tokens(60, vocabulary), 3);
    add_model_drafters(list, small, smaller, decoder, {.children = {2, 2, 1}});
    for (auto& drafter : list) {
      INFO(drafter.name << " for " << decoder.describe());
      for (std::uint32_t seed = 0; seed < 10; ++seed) {
        const ids prompt = reference_tests::number_source(seed).tokens(1 + seed, vocabulary);
        generate_options options{.max_new_tokens = 20, .seed = 1};
        if (seed % 3 == 1) options.stop_tokens = {2};
        if (seed % 3 == 2) {
          options.bytes = letter;
          options.stop_strings = {"da", "bcb"};
        }
        check_equal_outputs(model, drafter, prompt, decoder, options,
                            {.length = draft_length::fixed(4), .max_nodes = 12});
      }
    }
  }
}

/// The shipped pair, and prompts that the target wrote itself.
struct shipped_pair {
  static constexpr const char* folder = DECANT_SOURCE_DIR "/examples/models/";

  static any_model load(const char* file) { return any_model(*transformer::load(std::string(folder) + file)); }

  any_model target = load("target.bin"), small = load("draft.bin"), smaller = load("draft.bin");
  tokenizer text = *tokenizer::load(std::string(folder) + "tokenizer.bin", target.vocabulary_size());

  ids prompt(std::uint64_t seed) {
    ids tokens{1};
    const auto drawn = generate(target, tokens, plain(), {.max_new_tokens = 6 + seed % 30, .seed = seed});
    tokens.insert(tokens.end(), drawn.tokens.begin(), drawn.tokens.end());
    return tokens;
  }
};

void check_shipped_pair(std::size_t prompts) {
  shipped_pair pair;
  ids corpus;
  for (std::uint64_t seed = 1000; seed < 1010; ++seed) {
    const ids written = pair.prompt(seed);
    corpus.insert(corpus.end(), written.begin(), written.end());
    corpus.push_back(no_token);
  }
  std::vector<any_drafter> list;
  add_text_drafters(list, corpus, 5);
  add_model_drafters(list, pair.small, pair.smaller, plain(), {.children = {2, 2, 1}});
  std::vector<std::size_t> accepted(list.size(), 0);
  for (std::uint64_t seed = 0; seed < prompts; ++seed) {
    const ids prompt = pair.prompt(seed);
    const auto decoder = seed % 2 == 0 ? greedy_plain() : greedy_penalised();
    generate_options options{.max_new_tokens = 40, .stop_tokens = {1, 2}, .seed = 1};
    options.bytes = [&](token_id token) { return pair.text.bytes(token); };
    options.stop_strings = {"the end", " to play"};
    const generation expected = generate(pair.target, prompt, decoder, options);
    for (std::size_t i = 0; i < list.size(); ++i) {
      INFO(list[i].name << ", prompt " << seed);
      const speculation got = speculate(pair.target, prompt, list[i], decoder, options,
                                        {.length = draft_length::fixed(6), .max_nodes = 16});
      CHECK(got.tokens == expected.tokens);
      CHECK(got.text == expected.text);
      CHECK(got.finish == expected.finish);
      accepted[i] += got.statistics.drafted_tokens_accepted();
    }
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    INFO(list[i].name);
    CHECK((accepted[i] > 0 || prompts < 20));
  }
}

TEST_CASE("every drafter leaves greedy decoding as it is: the shipped pair", "[speculative][drafters]") {
  check_shipped_pair(2);
}

TEST_CASE("every drafter leaves greedy decoding as it is: the shipped pair, 200 prompts",
          "[speculative][drafters][long]") {
  check_shipped_pair(200);
}

}  // namespace drafters_test
