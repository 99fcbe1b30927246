// SPDX-License-Identifier: MIT
#include <decant/reference/feature_drafter.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fixtures.hpp"

using namespace decant;
using namespace reference_tests;

namespace feature_drafter_tests {

static_assert(FeatureDrafter<feature_drafter>);

constexpr std::size_t header_size = 32;
constexpr std::size_t dim = 18;

checkpoint target() { return random_checkpoint(tiny_config(true), 60); }

feature_weights random_weights(std::uint32_t seed, Eigen::Index hidden_dim = 11, Eigen::Index kv_dim = 6) {
  number_source numbers(seed);
  feature_weights weights;
  const auto width = static_cast<Eigen::Index>(dim);
  numbers.fill(weights.fusion, width, 2 * width, 0.4F);
  layer_weights& layer = weights.layer;
  numbers.fill(layer.attention_norm, width, 1, 0.3F, 1);
  numbers.fill(layer.query, width, width, 0.6F);
  numbers.fill(layer.key, kv_dim, width, 0.6F);
  numbers.fill(layer.value, kv_dim, width, 0.6F);
  numbers.fill(layer.output, width, width, 0.4F);
  numbers.fill(layer.feed_forward_norm, width, 1, 0.3F, 1);
  numbers.fill(layer.gate, hidden_dim, width, 0.6F);
  numbers.fill(layer.down, width, hidden_dim, 0.4F);
  numbers.fill(layer.up, hidden_dim, width, 0.6F);
  numbers.fill(weights.final_norm, width, 1, 0.3F, 1);
  return weights;
}

std::vector<std::byte> file_of(const feature_weights& weights, const model_config& config) {
  std::vector<std::byte> out;
  put(out, "dcfd", 4);
  for (const Eigen::Index size :
       {Eigen::Index{1}, config.dim, weights.layer.gate.rows(), config.n_heads,
        weights.layer.key.rows() / config.head_size(), config.sequence_length, config.vocabulary_size}) {
    put(out, static_cast<std::int32_t>(size));
  }
  const auto tensor = [&](const auto& t) { put(out, t.data(), static_cast<std::size_t>(t.size()) * sizeof(float)); };
  tensor(weights.fusion);
  tensor(weights.layer.attention_norm);
  tensor(weights.layer.query);
  tensor(weights.layer.key);
  tensor(weights.layer.value);
  tensor(weights.layer.output);
  tensor(weights.layer.feed_forward_norm);
  tensor(weights.layer.gate);
  tensor(weights.layer.down);
  tensor(weights.layer.up);
  tensor(weights.final_norm);
  return out;
}

std::vector<float> copy(std::span<const float> numbers) { return {numbers.begin(), numbers.end()}; }

struct pairs {
  std::vector<token_id> tokens;
  std::vector<float> features;
};

pairs random_pairs(std::uint32_t seed, std::size_t count) {
  number_source numbers(seed);
  pairs made{numbers.tokens(count, 29), {}};
  for (std::size_t i = 0; i < count * dim; ++i) made.features.push_back(numbers.next(1));
  return made;
}

void append(pairs& to, token_id token, std::span<const float> feature) {
  to.tokens.push_back(token);
  to.features.insert(to.features.end(), feature.begin(), feature.end());
}

TEST_CASE("feature_drafter: pairs give the same rows in one call, in several, and after a detour",
          "[reference][feature_drafter]") {
  const feature_drafter fresh(target(), random_weights(61));
  const pairs text = random_pairs(62, 9);
  feature_drafter whole = fresh;
  const auto expected = copy(whole.extend(text.tokens, text.features));
  const auto feature = copy(whole.feature());
  CHECK(whole.size() == 9);

  feature_drafter one_by_one = fresh;
  for (std::size_t i = 0; i < 9; ++i) {
    one_by_one.extend(std::span(text.tokens).subspan(i, 1), std::span(text.features).subspan(i * dim, dim));
  }
  CHECK(copy(one_by_one.feature()) == feature);

  const pairs detour = random_pairs(63, 5);
  feature_drafter wandering = fresh;
  wandering.extend(std::span(text.tokens).first(4), std::span(text.features).first(4 * dim));
  wandering.extend(detour.tokens, detour.features);
  wandering.truncate(4);
  CHECK(copy(wandering.extend(std::span(text.tokens).subspan(4), std::span(text.features).subspan(4 * dim))) ==
        expected);
  CHECK(copy(wandering.feature()) == feature);
}

TEST_CASE("feature_drafter: earlier pairs count", "[reference][feature_drafter]") {
  const feature_drafter fresh(target(), random_weights(64));
  pairs text = random_pairs(65, 6);
  feature_drafter one = fresh, other = fresh;
  const auto row = copy(one.extend(text.tokens, text.features));
  text.features[0] += 0.5F;
  CHECK(copy(other.extend(text.tokens, text.features)) != row);
}

TEST_CASE("feature_drafter: a node has the row of its path as pairs, bit for bit", "[reference][feature_drafter]") {
  const feature_drafter fresh(target(), random_weights(66, 11, 18));  // one key-value head a query head
  const pairs text = random_pairs(67, 4);
  feature_drafter drafter = fresh;
  drafter.extend(text.tokens, text.features);
  const std::vector<token_id> nodes{3, 11, 3, 28, 0, 7, 7};
  const std::vector<std::int32_t> parents{no_parent, no_parent, 0, 0, 1, 2, 4};
  drafter.grow(std::span(nodes).first(2), std::span(parents).first(2));
  drafter.grow(std::span(nodes).subspan(2, 3), std::span(parents).subspan(2, 3));
  drafter.grow(std::span(nodes).subspan(5), std::span(parents).subspan(5));
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    std::vector<std::size_t> path;
    for (auto n = static_cast<std::int32_t>(node); n != no_parent; n = parents[static_cast<std::size_t>(n)]) {
      path.insert(path.begin(), static_cast<std::size_t>(n));
    }
    pairs all = text;
    for (std::size_t i = 0; i < path.size(); ++i) {
      append(all, nodes[path[i]], i == 0 ? drafter.feature() : drafter.feature(path[i - 1]));
    }
    feature_drafter sequential = fresh;
    CHECK(copy(sequential.extend(all.tokens, all.features)) == copy(drafter.row(node)));
    CHECK(copy(sequential.feature()) == copy(drafter.feature(node)));
  }
  CHECK(drafter.size() == 4);
}

TEST_CASE("feature_drafter: what was written is read back", "[reference][feature_drafter]") {
  const checkpoint model = target();
  const auto file = file_of(random_weights(68), model.config);
  auto read = feature_drafter::read(std::span<const std::byte>(file), model);
  REQUIRE(read);
  feature_drafter made(model, random_weights(68));
  const pairs text = random_pairs(69, 3);
  CHECK(copy(read->extend(text.tokens, text.features)) == copy(made.extend(text.tokens, text.features)));
  const temporary_file stored("decant_feature_drafter_test.bin", file);
  CHECK(feature_drafter::load(stored.path(), model));
}

TEST_CASE("feature_drafter: files that are cut, longer, or another model's are refused",
          "[reference][feature_drafter]") {
  const checkpoint model = target();
  const auto file = file_of(random_weights(70), model.config);
  const auto failure = [&](std::span<const std::byte> bytes) {
    const auto read = feature_drafter::read(bytes, model);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == error_code::bad_file);
    return read.error();
  };
  for (std::size_t size = 0; size < file.size(); size += size < header_size + 8 ? 1 : 211) {
    CHECK(failure(std::span(file).first(size)).where == (size < header_size ? "header" : "size"));
  }
  auto longer = file;
  longer.push_back(std::byte{0});
  CHECK(failure(longer).where == "size");
  CHECK(feature_drafter::load("no/such/file.bin", model).error().code == error_code::not_found);

  for (std::size_t field = 0; field < 8; ++field) {
    for (const std::int32_t value : {0, -1, 1 << 20, std::numeric_limits<std::int32_t>::max()}) {
      // The length is not used: any that is positive will do.
      if (field == 6 && value > 0) continue;
      auto broken = file;
      std::memcpy(broken.data() + 4 * field, &value, sizeof value);
      CHECK_FALSE(failure(broken).where.empty());
    }
  }
  checkpoint other = random_checkpoint(small_config(), 71);
  CHECK(feature_drafter::read(std::span<const std::byte>(file), other).error().text() ==
        "dim: 18 must be the target's, 32");
  model_config wider = tiny_config(true);
  wider.vocabulary_size = 30;
  CHECK(feature_drafter::read(std::span<const std::byte>(file), random_checkpoint(wider, 72)).error().where ==
        "vocabulary_size");
  auto nan = file;
  const float bad = std::numeric_limits<float>::infinity();
  std::memcpy(nan.data() + header_size, &bad, sizeof bad);
  CHECK(failure(nan).text() == "fusion: holds a NaN or an infinity");
}

TEST_CASE("feature_drafter: misuse", "[reference][feature_drafter]") {
  feature_drafter drafter(target(), random_weights(73));
  const std::vector<token_id> token{3}, outside{29};
  const std::vector<std::int32_t> root{no_parent}, first{0};
  const std::vector<float> feature(dim);
  CHECK_THROWS_AS(drafter.grow(token, root), assertion_error);
  CHECK_THROWS_AS(drafter.extend({}, {}), assertion_error);
  CHECK_THROWS_AS(drafter.extend(outside, feature), assertion_error);
  CHECK_THROWS_AS(drafter.extend(token, std::span(feature).first(5)), assertion_error);
  CHECK_THROWS_AS(drafter.truncate(1), assertion_error);
  drafter.extend(token, feature);
  CHECK_THROWS_AS(drafter.grow(token, first), assertion_error);
  CHECK_THROWS_AS(drafter.row(0), assertion_error);
  feature_weights narrow = random_weights(74);
  narrow.fusion.resize(18, 18);
  CHECK_THROWS_AS(feature_drafter(target(), std::move(narrow)), assertion_error);
}

}  // namespace feature_drafter_tests
