// SPDX-License-Identifier: MIT
#include <decant/reference/transformer.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/core/concepts.hpp>
#include <decant/generate/generate.hpp>
#include <decant/reference/tokenizer.hpp>
#include <decant/samplers/greedy.hpp>

#include "fixtures.hpp"

using namespace decant;
using namespace reference_tests;

static_assert(Model<transformer>);
static_assert(ScoringModel<transformer>);
static_assert(TreeModel<transformer>);

namespace {

using row_copy = std::vector<float>;
using double_row = std::vector<double>;

row_copy copy(std::span<const float> row) { return {row.begin(), row.end()}; }

template <class A, class B>
double distance(const A& a, const B& b) {
  REQUIRE(a.size() == b.size());
  double greatest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    greatest = std::max(greatest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return greatest;
}

token_id argmax(std::span<const float> row) {
  return static_cast<token_id>(std::max_element(row.begin(), row.end()) - row.begin());
}

std::vector<row_copy> one_by_one(transformer& model, std::span<const token_id> tokens) {
  std::vector<row_copy> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) rows.push_back(copy(model.evaluate(tokens.subspan(i, 1))));
  return rows;
}

// The forward pass from its formulas: plain loops, double precision, the whole sequence anew, no cache and no Eigen
// product. The same sub-layers are skipped for all tokens.
class naive_transformer {
 public:
  explicit naive_transformer(const checkpoint& model) : c_(model.config), w_(*model.weights) {}

  /// [depth][position][dim]: the residual stream, depth 0 is the embedding.
  [[nodiscard]] std::vector<std::vector<double_row>> states(std::span<const token_id> tokens,
                                                            const std::vector<bool>& skip = {}) const {
    std::vector<double_row> x;
    for (const token_id token : tokens) {
      double_row embedded;
      for (Eigen::Index i = 0; i < c_.dim; ++i) embedded.push_back(w_.embedding(token, i));
      x.push_back(embedded);
    }
    std::vector<std::vector<double_row>> all{x};
    for (std::size_t l = 0; l < w_.layers.size(); ++l) {
      if (skip.empty() || !skip[2 * l]) add_attention(w_.layers[l], x);
      if (skip.empty() || !skip[2 * l + 1]) add_feed_forward(w_.layers[l], x);
      all.push_back(x);
    }
    return all;
  }

  [[nodiscard]] double_row hidden(const double_row& state) const { return norm(state, w_.final_norm); }
  [[nodiscard]] double_row logits(const double_row& state) const { return product(w_.head(), hidden(state)); }

 private:
  static double_row product(const row_matrix& w, const double_row& x) {
    double_row y(static_cast<std::size_t>(w.rows()), 0.0);
    for (Eigen::Index r = 0; r < w.rows(); ++r) {
      for (Eigen::Index k = 0; k < w.cols(); ++k) {
        y[static_cast<std::size_t>(r)] += static_cast<double>(w(r, k)) * x[static_cast<std::size_t>(k)];
      }
    }
    return y;
  }

  static double_row norm(const double_row& x, const Eigen::VectorXf& weight) {
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
    double_row y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      y.push_back(x[i] * scale * static_cast<double>(weight(static_cast<Eigen::Index>(i))));
    }
    return y;
  }

  static void add(double_row& x, const double_row& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  void rotate(double_row& heads, std::size_t position) const {
    const auto size = static_cast<std::size_t>(c_.head_size());
    for (std::size_t i = 0; i < heads.size(); i += 2) {
      const double frequency = 1 / std::pow(10000.0, static_cast<double>(i % size) / static_cast<double>(size));
      const double angle = static_cast<double>(position) * frequency;
      const double a = heads[i];
      const double b = heads[i + 1];
      heads[i] = a * std::cos(angle) - b * std::sin(angle);
      heads[i + 1] = a * std::sin(angle) + b * std::cos(angle);
    }
  }

  void add_attention(const layer_weights& w, std::vector<double_row>& x) const {
    std::vector<double_row> q, k, v;
    for (std::size_t t = 0; t < x.size(); ++t) {
      const double_row normed = norm(x[t], w.attention_norm);
      q.push_back(product(w.query, normed));
      k.push_back(product(w.key, normed));
      v.push_back(product(w.value, normed));
      rotate(q[t], t);
      rotate(k[t], t);
    }
    const auto heads = static_cast<std::size_t>(c_.n_heads);
    const auto size = static_cast<std::size_t>(c_.head_size());
    const auto group = static_cast<std::size_t>(c_.n_heads / c_.n_kv_heads);
    for (std::size_t t = 0; t < x.size(); ++t) {
      double_row attended(heads * size, 0.0);
      for (std::size_t h = 0; h < heads; ++h) {
        const std::size_t shared = h / group * size;
        double_row weights;
        double sum = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          double dot = 0;
          for (std::size_t i = 0; i < size; ++i) dot += q[t][h * size + i] * k[s][shared + i];
          weights.push_back(std::exp(dot / std::sqrt(static_cast<double>(size))));
          sum += weights.back();
        }
        for (std::size_t s = 0; s <= t; ++s) {
          for (std::size_t i = 0; i < size; ++i) attended[h * size + i] += weights[s] / sum * v[s][shared + i];
        }
      }
      add(x[t], product(w.output, attended));
    }
  }

  static void add_feed_forward(const layer_weights& w, std::vector<double_row>& x) {
    for (double_row& state : x) {
      const double_row normed = norm(state, w.feed_forward_norm);
      double_row gate = product(w.gate, normed);
      const double_row up = product(w.up, normed);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      add(state, product(w.down, gate));
    }
  }

  model_config c_;
  const model_weights& w_;
};

std::vector<checkpoint> random_models() {
  return {random_checkpoint(tiny_config(true), 1), random_checkpoint(tiny_config(false), 2),
          random_checkpoint(small_config(), 3)};
}

std::vector<token_id> random_tokens(const checkpoint& model, std::size_t count, std::uint32_t seed) {
  return number_source(seed).tokens(count, model.config.vocabulary_size);
}

}  // namespace

TEST_CASE("transformer: agrees with the formulas in double precision", "[reference][transformer]") {
  for (const checkpoint& weights : random_models()) {
    const auto tokens = random_tokens(weights, 40, 4);
    const naive_transformer naive(weights);
    const auto expected = naive.states(tokens);

    transformer model(weights);
    model.score(tokens, {.record_layers = true});
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      CHECK(distance(model.row(i), naive.logits(expected.back()[i])) < 1e-4);
      CHECK(distance(model.hidden(i), naive.hidden(expected.back()[i])) < 1e-4);
      for (std::size_t depth = 0; depth <= model.n_layers(); ++depth) {
        CHECK(distance(model.layer_state(depth, i), expected[depth][i]) < 1e-4);
      }
    }
  }
}

TEST_CASE("transformer: many positions at once equal one by one, bit for bit", "[reference][transformer]") {
  for (const checkpoint& weights : random_models()) {
    const auto tokens = random_tokens(weights, 37, 5);
    transformer single(weights);
    const auto expected = one_by_one(single, tokens);

    transformer batch(weights);
    batch.score(tokens);
    CHECK(batch.size() == tokens.size());
    CHECK(batch.appended() == tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) CHECK(copy(batch.row(i)) == expected[i]);

    transformer last(weights);
    CHECK(copy(last.evaluate(tokens)) == expected.back());

    // In parts of changing size, through both calls.
    transformer parts(weights);
    std::size_t at = 0;
    for (const std::size_t count : {3U, 1U, 11U, 2U, 1U, 19U}) {
      const auto part = std::span(tokens).subspan(at, count);
      if (count == 11) {
        CHECK(copy(parts.evaluate(part)) == expected[at + count - 1]);
      } else {
        parts.score(part);
        for (std::size_t i = 0; i < count; ++i) CHECK(copy(parts.row(i)) == expected[at + i]);
      }
      at += count;
    }
    CHECK(at == tokens.size());
  }
}

TEST_CASE("transformer: after truncation the same tokens give the same bits", "[reference][transformer]") {
  for (const checkpoint& weights : random_models()) {
    const auto tokens = random_tokens(weights, 30, 6);
    const auto other = random_tokens(weights, 40, 7);
    transformer fresh(weights);
    const auto expected = one_by_one(fresh, tokens);

    transformer model(weights);
    one_by_one(model, std::span(tokens).first(12));
    model.score(std::span(other).first(20));
    model.truncate(12);
    CHECK(model.size() == 12);
    const auto rest = one_by_one(model, std::span(tokens).subspan(12));
    for (std::size_t i = 0; i < rest.size(); ++i) CHECK(rest[i] == expected[12 + i]);

    model.truncate(0);
    model.score(other);
    model.truncate(0);
    CHECK(one_by_one(model, tokens) == expected);
    model.truncate(tokens.size());
    CHECK(model.size() == tokens.size());
  }
}

TEST_CASE("transformer: a copy is a fork", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(tiny_config(false), 8);
  const auto tokens = random_tokens(weights, 20, 9);
  const auto other = random_tokens(weights, 10, 10);
  transformer trunk(weights);
  const row_copy before = copy(trunk.evaluate(std::span(tokens).first(10)));
  transformer branch = trunk;
  CHECK(&branch.weights() == &trunk.weights());
  CHECK(copy(branch.row(0)) == before);

  one_by_one(branch, other);
  CHECK(trunk.size() == 10);
  CHECK(copy(trunk.row(0)) == before);
  const auto rest = one_by_one(trunk, std::span(tokens).subspan(10));

  transformer alone(weights);
  alone.score(std::span(tokens).first(10));
  CHECK(one_by_one(alone, std::span(tokens).subspan(10)) == rest);
  branch.truncate(10);
  CHECK(one_by_one(branch, std::span(tokens).subspan(10)) == rest);
}

TEST_CASE("transformer: room that was reserved changes nothing", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(tiny_config(true), 11);
  const auto tokens = random_tokens(weights, 40, 12);
  transformer plain(weights);
  transformer roomy(weights);
  roomy.reserve(roomy.sequence_length());
  const auto expected = one_by_one(plain, tokens);
  const row_copy first = copy(roomy.evaluate(std::span(tokens).first(1)));
  const float* const keys = roomy.kv().layer(0).keys().data();
  roomy.reserve(3);  // less than there is, and results stay
  CHECK(copy(roomy.row(0)) == first);
  CHECK(first == expected.front());
  auto rest = one_by_one(roomy, std::span(tokens).subspan(1));
  CHECK(std::equal(rest.begin(), rest.end(), expected.begin() + 1));
  CHECK(roomy.kv().layer(0).keys().data() == keys);
}

TEST_CASE("transformer: keys and values are there with their positions", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(small_config(), 13);
  const auto tokens = random_tokens(weights, 9, 14);
  transformer model(weights);
  model.score(tokens);
  model.truncate(6);
  model.evaluate(std::span(tokens).subspan(6, 2));
  for (std::size_t layer = 0; layer < model.n_layers(); ++layer) {
    const kv_layer& kv = std::as_const(model).kv().layer(layer);
    CHECK(kv.size() == 8);
    CHECK(kv.keys().cols() == model.config().kv_dim());
    for (std::size_t i = 0; i < 8; ++i) CHECK(kv.positions()[i] == static_cast<std::int32_t>(i));
  }
  // Position 0 is not rotated: its key in the first layer is the product itself.
  const layer_weights& first = model.weights().layers.front();
  const Eigen::VectorXf x = model.weights().embedding.row(tokens[0]);
  const float scale = 1 / std::sqrt(x.squaredNorm() / static_cast<float>(x.size()) + 1e-5F);
  const Eigen::VectorXf key = first.key * (scale * x.cwiseProduct(first.attention_norm));
  CHECK((std::as_const(model).kv().layer(0).keys().row(0).transpose() - key).cwiseAbs().maxCoeff() < 1e-5F);
}

TEST_CASE("transformer: changed keys and values count, evicted ones do not", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(small_config(), 15);
  const auto tokens = random_tokens(weights, 10, 16);
  const std::vector<token_id> next{5};
  transformer model(weights);
  model.score(tokens);
  transformer evicted = model;
  const row_copy plain = copy(model.evaluate(next));

  const std::vector<Eigen::Index> kept{0, 1, 6, 7, 8, 9};
  for (std::size_t layer = 0; layer < evicted.n_layers(); ++layer) evicted.kv().layer(layer).keep(kept);
  CHECK(evicted.size() == 10);
  CHECK(distance(evicted.evaluate(next), plain) > 1e-3);
  CHECK(evicted.size() == 11);
  CHECK(evicted.kv().layer(0).positions().back() == 10);
  evicted.truncate(7);
  CHECK(evicted.kv().layer(3).positions().size() == 3);

  transformer changed(weights);
  changed.score(tokens);
  changed.kv().layer(2).values().setZero();
  CHECK(distance(changed.evaluate(next), plain) > 1e-3);
}

TEST_CASE("transformer: skipping nothing is the plain pass", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(small_config(), 17);
  const auto tokens = random_tokens(weights, 12, 18);
  transformer plain(weights);
  transformer none(weights);
  plain.score(tokens);
  none.score(tokens, {.skip = std::vector<bool>(8, false), .layers = 4});
  for (std::size_t i = 0; i < tokens.size(); ++i) CHECK(copy(plain.row(i)) == copy(none.row(i)));
}

TEST_CASE("transformer: skipping all sends the embedding through the head", "[reference][transformer]") {
  for (const checkpoint& weights : random_models()) {
    const auto tokens = random_tokens(weights, 5, 19);
    transformer model(weights);
    model.score(tokens, {.skip = std::vector<bool>(2 * model.n_layers(), true)});
    transformer left(weights);
    left.score(tokens, {.layers = 0});
    const naive_transformer naive(weights);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      CHECK(distance(model.row(i), naive.logits(naive.states(tokens).front()[i])) < 1e-4);
      CHECK(copy(model.row(i)) == copy(left.row(i)));
    }
    CHECK(model.kv().layer(0).size() == 0);
    CHECK(model.size() == 5);
  }
}

TEST_CASE("transformer: any set of skipped sub-layers agrees with the formulas", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(small_config(), 20);
  const auto tokens = random_tokens(weights, 8, 21);
  const naive_transformer naive(weights);
  for (unsigned set = 0; set < 256; set += 7) {
    std::vector<bool> skip;
    for (unsigned bit = 0; bit < 8; ++bit) skip.push_back((set >> bit & 1U) != 0);
    const auto expected = naive.states(tokens, skip);
    transformer model(weights);
    model.set_options({.skip = skip});
    CHECK(model.options().skip == skip);
    one_by_one(model, std::span(tokens).first(3));
    model.score(std::span(tokens).subspan(3));
    for (std::size_t i = 3; i < tokens.size(); ++i) {
      CHECK(distance(model.row(i - 3), naive.logits(expected.back()[i])) < 1e-4);
    }
    for (std::size_t layer = 0; layer < 4; ++layer) {
      CHECK(model.kv().layer(layer).size() == (skip[2 * layer] ? 0 : 8));
    }
  }
}

TEST_CASE("transformer: the skipping calls are the plain ones with that option", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(small_config(), 20);
  const auto tokens = number_source(21).tokens(6, 31);
  const std::vector<bool> skip{false, false, true, false, false, true, false, false};
  transformer model(weights), other(weights);
  STATIC_REQUIRE(SkippableModel<transformer>);
  CHECK(model.sub_layers() == 8);
  CHECK(copy(model.evaluate_skipping(std::span(tokens).first(2), skip)) ==
        copy(other.evaluate(std::span(tokens).first(2), {.skip = skip})));
  model.score_skipping(std::span(tokens).subspan(2), skip);
  other.score(std::span(tokens).subspan(2), {.skip = skip});
  for (std::size_t i = 0; i < 4; ++i) CHECK(copy(model.row(i)) == copy(other.row(i)));
  CHECK(model.options().skip.empty());
}

TEST_CASE("transformer: a draft that skips, verified in full, leaves no trace", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(small_config(), 22);
  const auto tokens = random_tokens(weights, 12, 23);
  transformer plain(weights);
  plain.score(tokens);

  transformer model(weights);
  model.evaluate(std::span(tokens).first(8));
  const forward_options draft{.skip = {false, true, true, false, false, false, true, true}};
  for (std::size_t i = 8; i < 12; ++i) model.evaluate(std::span(tokens).subspan(i, 1), draft);
  CHECK(model.kv().layer(0).size() == 12);
  CHECK(model.kv().layer(1).size() == 8);
  model.truncate(8);
  model.score(std::span(tokens).subspan(8));
  for (std::size_t i = 0; i < 4; ++i) CHECK(copy(model.row(i)) == copy(plain.row(8 + i)));
}

TEST_CASE("transformer: leaving early is the logit lens", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(small_config(), 24);
  const auto tokens = random_tokens(weights, 6, 25);
  transformer full(weights);
  full.score(tokens, {.record_layers = true});
  for (std::size_t depth = 0; depth <= 4; ++depth) {
    transformer early(weights);
    early.score(tokens, {.layers = depth});
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const row_copy hidden = full.normalise(full.layer_state(depth, i));
      CHECK(copy(early.hidden(i)) == hidden);
      CHECK(copy(early.row(i)) == full.classify(hidden));
    }
    for (std::size_t layer = 0; layer < 4; ++layer) CHECK(early.kv().layer(layer).size() == (layer < depth ? 6 : 0));
  }
}

TEST_CASE("transformer: recording layers does not change them", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(tiny_config(true), 26);
  const auto tokens = random_tokens(weights, 7, 27);
  transformer plain(weights);
  transformer recorded(weights);
  const row_copy expected = copy(plain.evaluate(tokens));
  CHECK(copy(recorded.evaluate(tokens, {.record_layers = true})) == expected);
  CHECK(recorded.layer_state(2, 6).size() == 18);
  CHECK(recorded.appended() == 7);
}

TEST_CASE("transformer: a hook takes the place of attention", "[reference][transformer]") {
  // Dense attention again, which also notes what it was asked.
  class dense_hook : public attention_hook {
   public:
    void attend(std::size_t layer, const Eigen::Ref<const row_matrix>& queries, const kv_layer& cache,
                Eigen::Ref<row_matrix> out) override {
      layers.push_back(layer);
      Eigen::VectorXf scratch(cache.size());
      dense_attention(queries, cache, out, scratch);
      if (layers.size() == fail_at) throw std::runtime_error("hook");
    }
    std::vector<std::size_t> layers;
    std::size_t fail_at = 0;
  };

  const checkpoint weights = random_checkpoint(small_config(), 28);
  const auto tokens = random_tokens(weights, 9, 29);
  transformer plain(weights);
  plain.score(tokens);
  transformer hooked(weights);
  dense_hook hook;
  hooked.score(tokens, {.attention = &hook});
  CHECK(hook.layers == std::vector<std::size_t>{0, 1, 2, 3});
  for (std::size_t i = 0; i < tokens.size(); ++i) CHECK(copy(hooked.row(i)) == copy(plain.row(i)));

  // One that throws half-way leaves the sequence as it was.
  hook.fail_at = hook.layers.size() + 3;
  CHECK_THROWS_AS(hooked.evaluate(tokens, {.attention = &hook}), std::runtime_error);
  CHECK(hooked.size() == 9);
  CHECK(hooked.appended() == 0);
  CHECK(copy(hooked.evaluate(tokens)) == copy(plain.evaluate(tokens)));
}

TEST_CASE("transformer: the whole sequence length can be used", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(tiny_config(true), 30);
  const auto tokens = random_tokens(weights, 40, 31);
  transformer model(weights);
  CHECK(model.sequence_length() == 40);
  CHECK(model.vocabulary_size() == 29);
  model.score(tokens);
  CHECK(model.size() == 40);
}

TEST_CASE("transformer: loads what read_checkpoint reads", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(tiny_config(false), 32);
  const temporary_file stored("decant_transformer_test.bin", file_of(weights));
  auto loaded = transformer::load(stored.path());
  REQUIRE(loaded);
  transformer made(weights);
  const auto tokens = random_tokens(weights, 10, 33);
  CHECK(copy(loaded->evaluate(tokens)) == copy(made.evaluate(tokens)));

  const auto missing = transformer::load("no/such/file.bin");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == error_code::not_found);
  const temporary_file cut("decant_transformer_cut.bin", std::span<const std::byte>(file_of(weights)).first(99));
  CHECK_FALSE(transformer::load(cut.path()));
}

TEST_CASE("transformer: stories260K tells its story", "[reference][transformer]") {
  SKIP_WITHOUT_SHARED("models/stories260K.bin");
  const auto weights = shared_path("models/stories260K.bin");
  auto model = transformer::load(weights);
  REQUIRE(model);
  const auto pieces = tokenizer::load(shared_path("models/tok512.bin"), model->vocabulary_size());
  REQUIRE(pieces);

  std::vector<token_id> tokens{pieces->bos()};
  while (tokens.size() < 200) tokens.push_back(argmax(model->evaluate(std::span(tokens).last(1))));
  const std::string expected =
      "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw "
      "a big, red ball. She wanted to play with it, but it was too high.";
  CHECK(pieces->decode(tokens).substr(0, expected.size()) == expected);

  // A prompt continues the same way.
  auto prompted = transformer::load(weights);
  REQUIRE(prompted);
  auto continued = pieces->encode(expected.substr(0, 53));
  token_id next = argmax(prompted->evaluate(continued));
  while (continued.size() < 100) {
    continued.push_back(next);
    next = argmax(prompted->evaluate(std::span(continued).last(1)));
  }
  CHECK(pieces->decode(continued).substr(0, expected.size()) == expected);

  // And so it goes through the loop, twice on the same model.
  for (int run = 0; run < 2; ++run) {
    const std::vector<token_id> begin{pieces->bos()};
    auto told = decant::generate(*prompted, begin, decant::decode_with(decant::greedy{}), {.max_new_tokens = 100});
    told.tokens.insert(told.tokens.begin(), pieces->bos());
    CHECK(pieces->decode(told.tokens).substr(0, expected.size()) == expected);
  }
}

TEST_CASE("transformer: stories260K at once, one by one and by the formulas", "[reference][transformer]") {
  SKIP_WITHOUT_SHARED("models/stories260K.bin");
  const auto weights = read_checkpoint(shared_path("models/stories260K.bin"));
  REQUIRE(weights);
  std::vector<token_id> tokens{1};
  transformer single(*weights);
  std::vector<row_copy> expected;
  while (expected.size() < 200) {
    expected.push_back(copy(single.evaluate(std::span(tokens).last(1))));
    tokens.push_back(argmax(expected.back()));
  }
  tokens.pop_back();

  transformer batch(*weights);
  batch.score(tokens);
  const naive_transformer naive(*weights);
  const auto states = naive.states(std::span(tokens).first(64));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    CHECK(copy(batch.row(i)) == expected[i]);
    if (i < 64) CHECK(distance(batch.row(i), naive.logits(states.back()[i])) < 1e-4);
  }
}

TEST_CASE("transformer: misuse is told, and changes nothing", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(tiny_config(true), 34);
  const auto tokens = random_tokens(weights, 41, 35);
  transformer model(weights);
  const row_copy before = copy(model.evaluate(std::span(tokens).first(5)));

  CHECK_THROWS_AS(model.evaluate({}), assertion_error);
  CHECK_THROWS_AS(model.score({}), assertion_error);
  const std::vector<token_id> outside{3, 29};
  CHECK_THROWS_AS(model.evaluate(outside), assertion_error);
  const std::vector<token_id> negative{-1};
  CHECK_THROWS_AS(model.score(negative), assertion_error);
  CHECK_THROWS_AS(model.evaluate(std::span(tokens).first(36)), assertion_error);
  CHECK_THROWS_AS(model.truncate(6), assertion_error);
  CHECK_THROWS_AS(model.evaluate(std::span(tokens).first(1), {.skip = {true}}), assertion_error);
  CHECK_THROWS_AS(model.evaluate(std::span(tokens).first(1), {.layers = 3}), assertion_error);
  CHECK_THROWS_AS(model.row(1), assertion_error);
  CHECK_THROWS_AS(model.hidden(5), assertion_error);
  CHECK_THROWS_AS(model.layer_state(0, 0), assertion_error);
  CHECK_THROWS_AS(model.classify(std::vector<float>(17)), assertion_error);
  CHECK_THROWS_AS(model.normalise(std::vector<float>(19)), assertion_error);

  CHECK(model.size() == 5);
  CHECK(copy(model.row(0)) == before);
  model.evaluate(std::span(tokens).first(1), {.layers = 1, .record_layers = true});
  CHECK_NOTHROW(model.layer_state(1, 0));
  CHECK_THROWS_AS(model.layer_state(2, 0), assertion_error);
}

TEST_CASE("transformer: weights that do not fit their sizes are misuse", "[reference][transformer]") {
  checkpoint model = random_checkpoint(tiny_config(true), 36);
  model.config.hidden_dim = 14;
  CHECK_THROWS_AS(transformer(model), assertion_error);
  model.config.hidden_dim = 13;
  model.config.n_layers = 3;
  CHECK_THROWS_AS(transformer(model), assertion_error);
  model.config.n_layers = 2;
  model.config.shared_classifier = false;
  CHECK_THROWS_AS(transformer(model), assertion_error);
  model.config.shared_classifier = true;
  CHECK_NOTHROW(transformer(model));
  model.config.dim = 0;
  CHECK_THROWS_AS(transformer(model), assertion_error);
  CHECK_THROWS_AS(transformer(checkpoint{tiny_config(true), nullptr}), assertion_error);
}

namespace {

/// A tree over all depths and shapes: chains, forks, several nodes below the tokens held, twins.
struct token_tree {
  token_tree(std::size_t count, const checkpoint& model, std::uint32_t seed) {
    number_source numbers(seed);
    nodes = numbers.tokens(count, model.config.vocabulary_size);
    for (std::size_t i = 0; i < count; ++i) {
      parents.push_back(static_cast<std::int32_t>(numbers.below(std::min<std::size_t>(i, 5) + 1)) +
                        static_cast<std::int32_t>(i) - static_cast<std::int32_t>(std::min<std::size_t>(i, 5)) - 1);
    }
    parents[1] = no_parent;
    nodes[1] = nodes[0];
  }

  [[nodiscard]] std::vector<std::size_t> path_to(std::size_t node) const {
    std::vector<std::size_t> path;
    for (auto n = static_cast<std::int32_t>(node); n != no_parent; n = parents[static_cast<std::size_t>(n)]) {
      path.insert(path.begin(), static_cast<std::size_t>(n));
    }
    return path;
  }
  [[nodiscard]] std::vector<token_id> tokens_to(std::size_t node) const {
    std::vector<token_id> tokens;
    for (const std::size_t n : path_to(node)) tokens.push_back(nodes[n]);
    return tokens;
  }

  std::vector<token_id> nodes;
  std::vector<std::int32_t> parents;
};

}  // namespace

TEST_CASE("transformer: a node of a tree sees its own path alone, bit for bit", "[reference][transformer]") {
  for (const checkpoint& weights : random_models()) {
    const auto held = random_tokens(weights, 11, 37);
    const token_tree tree(19, weights, 38);
    transformer trunk(weights);
    trunk.score(held);
    transformer model = trunk;
    model.score(tree.nodes, tree.parents, {.record_layers = true});
    CHECK(model.size() == 11);
    CHECK(model.appended() == 19);
    for (std::size_t node = 0; node < 19; ++node) {
      const auto tokens = tree.tokens_to(node);
      transformer alone = trunk;
      alone.score(tokens, {.record_layers = true});
      CHECK(copy(model.row(node)) == copy(alone.row(tokens.size() - 1)));
      CHECK(copy(model.hidden(node)) == copy(alone.hidden(tokens.size() - 1)));
      CHECK(copy(model.layer_state(1, node)) == copy(alone.layer_state(1, tokens.size() - 1)));
    }
  }
}

TEST_CASE("transformer: a kept path is as if it had been appended", "[reference][transformer]") {
  for (const checkpoint& weights : random_models()) {
    const auto held = random_tokens(weights, 6, 39);
    const auto next = random_tokens(weights, 3, 40);
    const token_tree tree(15, weights, 41);
    for (std::size_t node = 0; node < 15; node += 3) {
      transformer model(weights), plain(weights);
      model.score(held);
      plain.score(held);
      model.score(tree.nodes, tree.parents);
      const row_copy last = copy(model.row(node));
      model.keep(tree.path_to(node));
      plain.score(tree.tokens_to(node));
      CHECK(copy(model.row(node)) == last);
      CHECK(model.size() == plain.size());
      CHECK(copy(model.evaluate(next)) == copy(plain.evaluate(next)));
      // A second tree on top, of which nothing is kept.
      model.score(tree.nodes, tree.parents);
      model.keep({});
      CHECK(copy(model.evaluate(next)) == copy(plain.evaluate(next)));
      model.truncate(6);
      plain.truncate(6);
      CHECK(copy(model.evaluate(next)) == copy(plain.evaluate(next)));
    }
  }
}

TEST_CASE("transformer: trees with layers left out, and under a hook", "[reference][transformer]") {
  class dense_hook : public attention_hook {
   public:
    void attend(std::size_t, const Eigen::Ref<const row_matrix>& queries, const kv_layer& cache,
                Eigen::Ref<row_matrix> out) override {
      Eigen::VectorXf scratch(cache.size());
      dense_attention(queries, cache, out, scratch);
    }
  };
  const checkpoint weights = random_checkpoint(small_config(), 42);
  const auto held = random_tokens(weights, 5, 43);
  const token_tree tree(12, weights, 44);
  dense_hook hook;
  const forward_options options{
      .skip = {true, false, false, true, false, false, false, false}, .layers = 3, .attention = &hook};
  transformer model(weights), plain(weights);
  for (transformer* m : {&model, &plain}) {
    m->set_options(options);
    m->score(held);
  }
  model.score(tree.nodes, tree.parents);
  model.keep(tree.path_to(11));
  plain.score(tree.tokens_to(11));
  CHECK(copy(model.row(11)) == copy(plain.row(tree.tokens_to(11).size() - 1)));
  for (std::size_t layer = 0; layer < 4; ++layer) {
    CHECK(model.kv().layer(layer).size() == plain.kv().layer(layer).size());
  }
  CHECK(copy(model.evaluate(held)) == copy(plain.evaluate(held)));
}

TEST_CASE("transformer: trees that are none, and paths that are none, are misuse", "[reference][transformer]") {
  const checkpoint weights = random_checkpoint(tiny_config(true), 45);
  const auto tokens = random_tokens(weights, 38, 46);
  using nodes = std::vector<token_id>;
  using links = std::vector<std::int32_t>;
  using path = std::vector<std::size_t>;
  transformer model(weights);
  model.score(tokens);
  CHECK_THROWS_AS(model.keep(path{}), assertion_error);  // no tree
  CHECK_NOTHROW(model.score(nodes{1, 2, 3, 4}, links{no_parent, 0, 0, no_parent}));
  CHECK_THROWS_AS(model.keep(path{1}), assertion_error);
  CHECK_THROWS_AS(model.keep(path{0, 3}), assertion_error);
  CHECK_THROWS_AS(model.keep(path{4}), assertion_error);
  CHECK_THROWS_AS(model.score(nodes{1, 2, 3}, links{no_parent, 0, 1}), assertion_error);  // longer than the context
  CHECK_THROWS_AS(model.score(nodes{1, 2}, links{no_parent, 1}), assertion_error);
  CHECK_THROWS_AS(model.score(nodes{1, 2}, links{-2, 0}), assertion_error);
  CHECK_THROWS_AS(model.score(nodes{1, 2}, links{no_parent}), assertion_error);
  CHECK_THROWS_AS(model.score(nodes{1}, links{}), assertion_error);
  CHECK_THROWS_AS(model.score(nodes{29}, links{no_parent}), assertion_error);
  CHECK_NOTHROW(model.keep(path{0, 2}));  // misuse has changed nothing
  CHECK(model.size() == 40);
  CHECK_THROWS_AS(model.keep(path{}), assertion_error);
  model.truncate(38);
  model.score(nodes{1}, links{no_parent});
  model.truncate(38);
  CHECK_THROWS_AS(model.keep(path{0}), assertion_error);
}
