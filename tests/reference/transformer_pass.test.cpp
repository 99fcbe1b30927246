// SPDX-License-Identifier: MIT
#include <decant/reference/transformer_pass.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include <decant/reference/dense_attention.hpp>
#include <decant/reference/eigen_rows.hpp>
#include <decant/reference/kv_cache.hpp>
#include <decant/reference/transformer.hpp>

#include "fixtures.hpp"

using namespace decant;
using namespace reference_tests;

namespace transformer_pass_tests {

struct placed {
  token_id token;
  std::size_t position;
};

// A pass whose rows are one sequence each: what each attends to is its own key and value.
row_matrix alone(transformer_pass& pass, std::span<const placed> rows) {
  const auto count = static_cast<Eigen::Index>(rows.size());
  pass.begin(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    pass.embed(i, rows[static_cast<std::size_t>(i)].token, rows[static_cast<std::size_t>(i)].position);
  }
  const Eigen::Index size = pass.config().head_size(), group = pass.config().n_heads / pass.config().n_kv_heads;
  for (std::size_t layer = 0; layer < pass.weights().layers.size(); ++layer) {
    pass.attention(layer, [&](const auto&, const auto&, const auto& values, auto out) {
      for (Eigen::Index head = 0; head < pass.config().n_heads; ++head) {
        out.middleCols(head * size, size) = values.middleCols(head / group * size, size);
      }
    });
    pass.feed_forward(layer);
  }
  row_matrix hidden(count, pass.config().dim), logits(count, pass.config().vocabulary_size);
  pass.final_norm(hidden);
  pass.classify(hidden, logits);
  return logits;
}

TEST_CASE("transformer_pass: rows of one token each are what transformer gives to that token alone",
          "[reference][transformer_pass]") {
  for (const bool shared : {true, false}) {
    const checkpoint weights = random_checkpoint(tiny_config(shared), 50);
    transformer_pass pass(weights);
    const std::vector<placed> rows{{3, 0}, {28, 0}, {0, 0}, {11, 0}, {3, 0}};
    const row_matrix logits = alone(pass, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      transformer model(weights);
      const auto expected = model.evaluate(std::span(&rows[i].token, 1));
      const Eigen::Map<const Eigen::RowVectorXf> row(expected.data(), static_cast<Eigen::Index>(expected.size()));
      // One weight, of exactly 1, makes attention the value itself.
      CHECK(logits.row(static_cast<Eigen::Index>(i)) == row);
    }
  }
}

TEST_CASE("transformer_pass: a row does not depend on its company", "[reference][transformer_pass]") {
  const checkpoint weights = random_checkpoint(small_config(), 51);
  transformer_pass pass(weights);
  const std::vector<placed> rows{{3, 7}, {30, 0}, {0, 63}, {11, 2}, {3, 8}, {5, 5}, {6, 6}};
  const row_matrix together = alone(pass, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(alone(pass, std::span(rows).subspan(i, 1)).row(0) == together.row(static_cast<Eigen::Index>(i)));
  }
}

TEST_CASE("transformer_pass: keys are turned by their position, values are not", "[reference][transformer_pass]") {
  const checkpoint weights = random_checkpoint(tiny_config(true), 52);
  transformer_pass pass(weights);
  pass.begin(2);
  pass.embed(0, 9, 0);
  pass.embed(1, 9, 4);
  pass.attention(0, [](const auto& queries, const auto& keys, const auto& values, auto out) {
    CHECK(queries.rows() == 2);
    CHECK(keys.cols() == 6);
    CHECK(keys.row(0) != keys.row(1));
    CHECK(queries.row(0) != queries.row(1));
    CHECK(values.row(0) == values.row(1));
    CHECK(keys.row(0).norm() == Approx(keys.row(1).norm()));
    out.setZero();
  });
  CHECK(pass.state().row(0) == pass.state().row(1));  // nothing attended: the residual stream is as it was
  CHECK(pass.state().row(0) == weights.weights->embedding.row(9));
}

}  // namespace transformer_pass_tests
