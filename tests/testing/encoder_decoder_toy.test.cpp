// SPDX-License-Identifier: MIT
#include <decant/testing/encoder_decoder_toy.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace encoder_decoder_toy_test {

using decant::batch_item;
using decant::token_id;
using decant::testing::encoder_decoder_toy;
using ids = std::vector<token_id>;

static_assert(decant::EncoderDecoderModel<encoder_decoder_toy>);

std::vector<float> copy(std::span<const float> row) { return {row.begin(), row.end()}; }

TEST_CASE("encoder_decoder_toy: rows and attention are distributions, and those of its functions", "[testing]") {
  encoder_decoder_toy model(5, 3);
  const ids source{4, 1, 2, 2}, text{0, 3, 1};
  model.encode(source);
  const std::size_t a = model.start(), b = model.fork(a);
  const ids begin{0};
  model.evaluate(std::vector<batch_item>{{a, text}, {b, begin}});
  const auto encoded = model.encode_source(source);
  CHECK(copy(model.row(0)) == model.row_after(encoded, text));
  CHECK(copy(model.row(1)) == model.row_after(encoded, begin));
  CHECK(copy(model.cross_attention(0)) == model.attention_after(4, text));
  CHECK(copy(model.cross_attention(1)) == model.attention_after(4, begin));
  for (const std::size_t item : {std::size_t{0}, std::size_t{1}}) {
    double mass = 0, attention = 0;
    for (const float z : model.row(item)) mass += std::exp(static_cast<double>(z));
    for (const float w : model.cross_attention(item)) attention += static_cast<double>(w);
    CHECK(mass == Approx(1).margin(1e-5));
    CHECK(attention == Approx(1).margin(1e-5));
  }
  CHECK(model.encodings() == 1);
}

TEST_CASE("encoder_decoder_toy: sequences keep the source that they were started with", "[testing]") {
  encoder_decoder_toy model(5, 3);
  const ids begin{0}, first{1, 2}, second{3, 3, 3};
  model.encode(first);
  const std::size_t a = model.start();
  model.encode(second);
  const std::size_t b = model.start(), c = model.fork(a);
  model.evaluate(std::vector<batch_item>{{a, begin}, {b, begin}, {c, begin}});
  CHECK(model.cross_attention(0).size() == 2);
  CHECK(model.cross_attention(1).size() == 3);
  CHECK(copy(model.row(0)) == copy(model.row(2)));
  CHECK(copy(model.row(0)) != copy(model.row(1)));
  model.truncate(a, 0);
  CHECK(model.size(a) == 0);
  CHECK(model.size(c) == 1);
  CHECK(model.encodings() == 2);
}

TEST_CASE("encoder_decoder_toy: misuse is caught", "[testing]") {
  encoder_decoder_toy model(5, 3);
  CHECK_THROWS_AS(model.start(), assertion_error);
  CHECK_THROWS_AS(model.encode(ids{}), assertion_error);
  model.encode(ids{1});
  const std::size_t a = model.start();
  CHECK_THROWS_AS(model.evaluate(std::vector<batch_item>{{a, {}}}), assertion_error);
  CHECK_THROWS_AS(model.row(0), assertion_error);
  CHECK_THROWS_AS(model.cross_attention(0), assertion_error);
  CHECK_THROWS_AS(model.truncate(a, 1), assertion_error);
  model.drop(a);
  CHECK_THROWS_AS(model.size(a), assertion_error);
}

}  // namespace encoder_decoder_toy_test
