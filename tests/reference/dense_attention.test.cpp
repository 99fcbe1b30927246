// SPDX-License-Identifier: MIT
#include <decant/reference/dense_attention.hpp>

#include "support/catch.hpp"

#include <cmath>

#include "fixtures.hpp"

using namespace decant;
using namespace reference_tests;

namespace {

struct answer {
  Eigen::RowVectorXf out;
  Eigen::VectorXf weights;
  float log_sum;
};

answer attend_to(const Eigen::RowVectorXf& query, const row_matrix& keys, const row_matrix& values) {
  answer a{Eigen::RowVectorXf(values.cols()), Eigen::VectorXf(keys.rows()), 0};
  a.log_sum = attend(query, keys, values, a.weights, a.out);
  return a;
}

}  // namespace

TEST_CASE("attend: the softmax of the scores weighs the values", "[reference][dense_attention]") {
  number_source numbers(1);
  row_matrix keys, values;
  Eigen::RowVectorXf query;
  numbers.fill(keys, 7, 6, 2);
  numbers.fill(values, 7, 6, 1);
  numbers.fill(query, 1, 6, 2);
  const answer a = attend_to(query, keys, values);

  const Eigen::ArrayXd scores = (keys.cast<double>() * query.cast<double>().transpose()).array() / std::sqrt(6.0);
  const Eigen::ArrayXd weights = scores.exp() / scores.exp().sum();
  CHECK((a.weights.cast<double>().array() - weights).abs().maxCoeff() < 1e-6);
  const Eigen::RowVectorXd out = weights.matrix().transpose() * values.cast<double>();
  CHECK((a.out.cast<double>() - out).cwiseAbs().maxCoeff() < 1e-6);
  CHECK(a.log_sum == Approx(std::log(scores.exp().sum())).epsilon(1e-5));
}

TEST_CASE("attend: one row, equal keys, great scores", "[reference][dense_attention]") {
  row_matrix keys(1, 2), values(1, 2);
  keys << 500, -500;
  values << 3, 4;
  const Eigen::RowVectorXf query = Eigen::RowVectorXf::Constant(2, 1000);
  CHECK(attend_to(query, keys, values).out == values.row(0));

  const row_matrix same = row_matrix::Constant(4, 2, 300);
  row_matrix ramp(4, 2);
  ramp << 1, 10, 2, 20, 3, 30, 4, 40;
  const answer a = attend_to(query, same, ramp);
  CHECK(a.out(0) == Approx(2.5));
  CHECK(a.out(1) == Approx(25));
  CHECK(a.weights.isConstant(0.25F));
}

TEST_CASE("attend: results over disjoint rows merge", "[reference][dense_attention]") {
  number_source numbers(2);
  row_matrix keys, values;
  Eigen::RowVectorXf query;
  numbers.fill(keys, 9, 4, 2);
  numbers.fill(values, 9, 4, 1);
  numbers.fill(query, 1, 4, 2);
  const answer whole = attend_to(query, keys, values);
  const answer front = attend_to(query, keys.topRows(4), values.topRows(4));
  const answer back = attend_to(query, keys.bottomRows(5), values.bottomRows(5));
  const float log_sum = std::log(std::exp(front.log_sum) + std::exp(back.log_sum));
  CHECK(log_sum == Approx(whole.log_sum).epsilon(1e-5));
  const Eigen::RowVectorXf merged =
      std::exp(front.log_sum - log_sum) * front.out + std::exp(back.log_sum - log_sum) * back.out;
  CHECK((merged - whole.out).cwiseAbs().maxCoeff() < 1e-6F);
}

TEST_CASE("dense_attention: causal, and a key-value head serves its group", "[reference][dense_attention]") {
  number_source numbers(3);
  kv_layer cache(2, 4);
  cache.append(0, 6);
  row_matrix queries, keys, values;
  numbers.fill(keys, 6, 8, 1);
  numbers.fill(values, 6, 8, 1);
  numbers.fill(queries, 3, 16, 1);  // four heads, for the last three rows
  cache.keys() = keys;
  cache.values() = values;
  row_matrix out(3, 16);
  Eigen::VectorXf scratch(6);
  dense_attention(queries, cache, out, scratch);
  for (Eigen::Index i = 0; i < 3; ++i) {
    for (Eigen::Index head = 0; head < 4; ++head) {
      const answer a = attend_to(queries.row(i).segment(4 * head, 4), keys.block(0, head / 2 * 4, 4 + i, 4),
                                 values.block(0, head / 2 * 4, 4 + i, 4));
      CHECK((out.row(i).segment(4 * head, 4) - a.out).cwiseAbs().maxCoeff() < 1e-6F);
    }
  }
}
