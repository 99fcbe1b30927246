// SPDX-License-Identifier: MIT
#include <decant/reference/transformer_batch.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/reference/transformer.hpp>
#include <decant/testing/counting_allocator.hpp>

#include "fixtures.hpp"

using namespace decant;
using namespace reference_tests;

static_assert(BatchModel<transformer_batch>);
static_assert(HiddenStateModel<transformer_batch>);

namespace transformer_batch_tests {

using ids = std::vector<token_id>;
using row_copy = std::vector<float>;

row_copy copy(std::span<const float> row) { return {row.begin(), row.end()}; }

ids random_tokens(const checkpoint& model, std::size_t count, std::uint32_t seed) {
  return number_source(seed).tokens(count, model.config.vocabulary_size);
}

// What transformer alone gives for a text: the last row, and the hidden states of the last `count` tokens.
struct alone {
  alone(const checkpoint& weights, const ids& text, std::size_t count) {
    transformer model(weights);
    row = copy(model.evaluate(text));
    for (std::size_t i = text.size() - count; i < text.size(); ++i) hidden.push_back(copy(model.hidden(i)));
  }
  row_copy row;
  std::vector<row_copy> hidden;
};

void evaluate(transformer_batch& model, std::size_t sequence, const ids& tokens) {
  const batch_item item{sequence, tokens};
  model.evaluate(std::span(&item, 1));
}

TEST_CASE("transformer_batch: each sequence is what transformer makes of it alone, bit for bit",
          "[reference][transformer_batch]") {
  for (const auto& config : {tiny_config(true), tiny_config(false), small_config()}) {
    const checkpoint weights = random_checkpoint(config, 60);
    number_source numbers(61);
    transformer_batch model(weights);
    std::map<std::size_t, ids> texts;
    for (int i = 0; i < 3; ++i) texts[model.start()];
    for (int step = 0; step < 25; ++step) {
      // Some sequences advance, by some tokens each; then one may be forked, dropped or cut.
      std::vector<ids> more;
      std::vector<batch_item> items;
      for (const auto& [sequence, text] : texts) {
        const std::size_t count = numbers.below(4);
        if (count == 0 || text.size() + count > 38) continue;
        more.push_back(numbers.tokens(count, config.vocabulary_size));
        items.push_back({sequence, {}});
      }
      for (std::size_t i = 0; i < items.size(); ++i) items[i].tokens = more[i];
      model.evaluate(items);
      for (std::size_t i = 0; i < items.size(); ++i) {
        ids& text = texts[items[i].sequence];
        text.insert(text.end(), more[i].begin(), more[i].end());
        const alone expected(weights, text, more[i].size());
        CHECK(copy(model.row(i)) == expected.row);
        for (std::size_t j = 0; j < more[i].size(); ++j) CHECK(copy(model.hidden(i, j)) == expected.hidden[j]);
        CHECK(model.size(items[i].sequence) == text.size());
      }
      const auto chosen = std::next(texts.begin(), static_cast<std::ptrdiff_t>(numbers.below(texts.size())))->first;
      switch (numbers.below(4)) {
        case 0:
          if (texts.size() < 7) texts[model.fork(chosen)] = texts[chosen];
          break;
        case 1:
          if (texts.size() > 2) {
            model.drop(chosen);
            texts.erase(chosen);
          }
          break;
        case 2:
          texts[chosen].resize(numbers.below(texts[chosen].size() + 1));
          model.truncate(chosen, texts[chosen].size());
          break;
        default: break;
      }
      CHECK(model.sequences() == texts.size());
    }
  }
}

TEST_CASE("transformer_batch: beams that share a prefix agree with transformer over pages of many sizes",
          "[reference][transformer_batch]") {
  const checkpoint weights = random_checkpoint(small_config(), 62);
  for (const std::size_t prefix :
       {std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{17}, std::size_t{48}}) {
    transformer_batch model(weights);
    const ids prompt = random_tokens(weights, prefix, 63);
    std::vector<std::size_t> beams{model.start()};
    evaluate(model, beams[0], prompt);
    while (beams.size() < 4) beams.push_back(model.fork(beams[0]));
    std::vector<ids> texts(4, prompt);
    for (token_id step = 0; step < 6; ++step) {
      std::vector<batch_item> items;
      for (std::size_t i = 0; i < 4; ++i) {
        texts[i].push_back(static_cast<token_id>((5 * i + 3 * static_cast<std::size_t>(step)) % 31));
        items.push_back({beams[i], std::span(texts[i]).last(1)});
      }
      model.evaluate(items);
      for (std::size_t i = 0; i < 4; ++i) CHECK(copy(model.row(i)) == alone(weights, texts[i], 1).row);
    }
  }
}

TEST_CASE("transformer_batch: memory is that of the tree, not of the sum", "[reference][transformer_batch]") {
  const checkpoint weights = random_checkpoint(small_config(), 64);
  transformer_batch model(weights);
  const std::size_t root = model.start();
  evaluate(model, root, random_tokens(weights, 48, 65));
  CHECK(model.kv().pages_in_use() == 3);
  std::vector<std::size_t> forks;
  while (forks.size() < 50) forks.push_back(model.fork(root));
  CHECK(model.kv().pages_in_use() == 3);
  std::vector<batch_item> items;
  const ids token{7};
  for (const std::size_t sequence : forks) items.push_back({sequence, token});
  model.evaluate(items);
  CHECK(model.kv().pages_in_use() == 53);  // one a fork, instead of three
  for (const std::size_t sequence : forks) model.drop(sequence);
  CHECK(model.kv().pages_in_use() == 3);
  model.drop(root);
  CHECK(model.kv().pages_in_use() == 0);
  CHECK(model.sequences() == 0);
}

TEST_CASE("transformer_batch: steady state allocates nothing", "[reference][transformer_batch]") {
  const checkpoint weights = random_checkpoint(tiny_config(true), 66);
  transformer_batch model(weights);
  const ids prompt = random_tokens(weights, 20, 67), token{3};
  std::vector<batch_item> items;
  items.reserve(4);
  const auto run = [&] {
    std::size_t beams[4] = {model.start()};
    items.assign(1, {beams[0], prompt});
    model.evaluate(items);
    for (std::size_t i = 1; i < 4; ++i) beams[i] = model.fork(beams[0]);
    for (int step = 0; step < 18; ++step) {
      items.clear();
      for (const std::size_t beam : beams) items.push_back({beam, token});
      model.evaluate(items);
      model.drop(beams[3]);
      beams[3] = model.fork(beams[1]);
    }
    for (const std::size_t beam : beams) model.drop(beam);
  };
  run();
  run();
  const std::size_t before = testing::allocations();
  run();
  CHECK(testing::allocations() == before);
}

TEST_CASE("transformer_batch: a copy is a model of its own", "[reference][transformer_batch]") {
  const checkpoint weights = random_checkpoint(tiny_config(true), 68);
  transformer_batch model(weights);
  const std::size_t sequence = model.start();
  const ids text = random_tokens(weights, 9, 69);
  evaluate(model, sequence, text);
  transformer_batch other = model;
  evaluate(other, sequence, {4});
  CHECK(other.size(sequence) == 10);
  CHECK(model.size(sequence) == 9);
  evaluate(model, sequence, {5});
  ids longer = text;
  longer.push_back(5);
  CHECK(copy(model.row(0)) == alone(weights, longer, 1).row);
}

TEST_CASE("transformer_batch: shares the weights of a transformer", "[reference][transformer_batch]") {
  const checkpoint weights = random_checkpoint(tiny_config(true), 75);
  transformer one(weights);
  CHECK(one.as_checkpoint().weights == weights.weights);
  transformer_batch model(one.as_checkpoint());
  const ids text = random_tokens(weights, 6, 76);
  evaluate(model, model.start(), text);
  CHECK(copy(model.row(0)) == copy(one.evaluate(text)));
}

TEST_CASE("transformer_batch: an empty pass has no rows", "[reference][transformer_batch]") {
  transformer_batch model(random_checkpoint(tiny_config(true), 70));
  model.evaluate({});
  CHECK_THROWS_AS(model.row(0), assertion_error);
}

TEST_CASE("transformer_batch: loads what read_checkpoint reads", "[reference][transformer_batch]") {
  const checkpoint weights = random_checkpoint(tiny_config(false), 71);
  const temporary_file stored("decant_transformer_batch_test.bin", file_of(weights));
  auto model = transformer_batch::load(stored.path());
  REQUIRE(model);
  const ids text = random_tokens(weights, 5, 72);
  evaluate(*model, model->start(), text);
  CHECK(copy(model->row(0)) == alone(weights, text, 1).row);
  CHECK(model->vocabulary_size() == 29);
  CHECK(model->sequence_length() == 40);
  CHECK_FALSE(transformer_batch::load("no/such/file.bin"));
}

TEST_CASE("transformer_batch: misuse is told, and changes nothing", "[reference][transformer_batch]") {
  const checkpoint weights = random_checkpoint(tiny_config(true), 73);
  transformer_batch model(weights);
  const std::size_t a = model.start(), b = model.start();
  const ids text = random_tokens(weights, 20, 74), outside{29}, negative{-1}, token{3};
  evaluate(model, a, text);
  const row_copy before = copy(model.row(0));

  const auto refused = [&](std::vector<batch_item> items) {
    CHECK_THROWS_AS(model.evaluate(items), assertion_error);
    CHECK(model.size(a) == 20);
    CHECK(model.size(b) == 0);
    CHECK(copy(model.row(0)) == before);
  };
  refused({{a, token}, {2, token}});
  refused({{a, token}, {b, token}, {a, token}});
  refused({{a, token}, {b, {}}});
  refused({{b, token}, {a, outside}});
  refused({{b, token}, {a, negative}});
  const ids twenty_one(21, 1);
  refused({{b, token}, {a, twenty_one}});
  CHECK_THROWS_AS(model.row(1), assertion_error);
  CHECK_THROWS_AS(model.hidden(0, 20), assertion_error);
  CHECK_THROWS_AS(model.truncate(a, 21), assertion_error);
  model.drop(b);
  CHECK_THROWS_AS(model.size(b), assertion_error);
  CHECK_THROWS_AS(model.fork(b), assertion_error);
  CHECK_THROWS_AS(model.drop(b), assertion_error);
  CHECK_THROWS_AS(transformer_batch(checkpoint{tiny_config(true), nullptr}), assertion_error);
}

}  // namespace transformer_batch_tests
