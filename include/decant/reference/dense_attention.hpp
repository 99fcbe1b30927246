// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>

#include <Eigen/Core>

#include <decant/core/errors.hpp>
#include <decant/reference/checkpoint.hpp>
#include <decant/reference/kv_cache.hpp>

namespace decant {

/// Takes the place of dense attention during a pass: which rows of the cache a query looks at, and how, is its matter.
/// Called once a layer, in layer order, after the keys and values of the new tokens were added to `cache`.
class attention_hook {
 public:
  /// Computes `out` [n x n_heads * head_size] from `queries` of the same shape (after rotary embedding, heads side by
  /// side). The queries belong to the last n rows of `cache`; query head h reads key-value head
  /// h / (n_heads / cache.heads()).
  virtual void attend(std::size_t layer, const Eigen::Ref<const row_matrix>& queries, const kv_layer& cache,
                      Eigen::Ref<row_matrix> out) = 0;

 protected:
  ~attention_hook() = default;
};

/// One query over all rows of `keys` and `values` [T x head_size], T >= 1: out = softmax(keys q / sqrt(head_size))
/// values, and `weights` [T] is left holding the softmax. O(T * head_size), allocates nothing.
/// Returns the log of the softmax's denominator, with which results over disjoint rows can be merged.
inline float attend(const Eigen::Ref<const Eigen::RowVectorXf>& query, const Eigen::Ref<const row_matrix>& keys,
                    const Eigen::Ref<const row_matrix>& values, Eigen::Ref<Eigen::VectorXf> weights,
                    Eigen::Ref<Eigen::RowVectorXf> out) {
  weights.noalias() = keys * query.transpose();
  weights *= 1 / std::sqrt(static_cast<float>(query.size()));
  const float greatest = weights.maxCoeff();
  weights = (weights.array() - greatest).exp().matrix();
  const float sum = weights.sum();
  weights /= sum;
  out.noalias() = weights.transpose() * values;
  return greatest + std::log(sum);
}

/// Causal attention of n queries [n x n_heads * head_size], which belong to the last n rows of `cache`, over all rows
/// up to their own. `scratch` has room for cache.size() numbers. O(n * rows * n_heads * head_size), allocates nothing.
inline void dense_attention(const Eigen::Ref<const row_matrix>& queries, const kv_layer& cache,
                            Eigen::Ref<row_matrix> out, Eigen::Ref<Eigen::VectorXf> scratch) {
  DECANT_ASSERT(queries.rows() <= cache.size() && scratch.size() >= cache.size(), "sizes do not fit the cache");
  const Eigen::Index head_size = cache.head_size();
  const Eigen::Index heads = queries.cols() / head_size;
  const Eigen::Index group = heads / cache.heads();
  const Eigen::Index before = cache.size() - queries.rows();
  for (Eigen::Index head = 0; head < heads; ++head) {
    const auto keys = cache.keys(head / group);
    const auto values = cache.values(head / group);
    for (Eigen::Index i = 0; i < queries.rows(); ++i) {
      const Eigen::Index visible = before + i + 1;
      attend(queries.row(i).segment(head * head_size, head_size), keys.topRows(visible), values.topRows(visible),
             scratch.head(visible), out.row(i).segment(head * head_size, head_size));
    }
  }
}

}  // namespace decant
