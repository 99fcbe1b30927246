// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/math/row_products.hpp>
#include <decant/reference/checkpoint.hpp>

namespace decant {

namespace detail {

using const_matrix_ref = Eigen::Ref<const row_matrix>;
using matrix_ref = Eigen::Ref<row_matrix>;

/// out += x weight^T, for x [n x inputs], weight [outputs x inputs]: a row is rounded alike in company and alone, which
/// Eigen's matrix-matrix product does not promise (2e-5 in logits near 20).
inline void add_product(const const_matrix_ref& x, const row_matrix& weight, matrix_ref out) {
  const auto size = [](Eigen::Index number) { return static_cast<std::size_t>(number); };
  math::add_row_products({x.data(), size(x.rows()), size(x.outerStride())},
                         {weight.data(), size(weight.rows()), size(weight.cols())},
                         {out.data(), size(out.rows()), size(out.outerStride())});
}

/// Every row over its root mean square (epsilon 1e-5), times the weight.
inline void rms_norm(const const_matrix_ref& x, const Eigen::VectorXf& weight, matrix_ref out) {
  constexpr float epsilon = 1e-5F;
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const float mean_square = x.row(i).squaredNorm() / static_cast<float>(x.cols());
    const float scale = 1 / std::sqrt(mean_square + epsilon);
    out.row(i) = scale * x.row(i).cwiseProduct(weight.transpose());
  }
}

}  // namespace detail

/// One pass of rows through the layers of a Llama-type transformer, whatever sequence each row belongs to and wherever
/// keys and values are kept: what `transformer` and `transformer_batch` are made of.
///
/// Usage: begin(n), embed(i, token, position) or place(i, position) for each row, then attention and feed_forward a
/// layer, then final_norm and logits. A row's numbers depend on its token, its position and what its attention answers,
/// never on the other rows: bit for bit. Every weight is read once a pass. Holds weights by reference and a workspace
/// that only grows. Misuse: weights whose shapes are not those of the sizes.
class transformer_pass {
 public:
  explicit transformer_pass(checkpoint model)
      : config_(checked(model.config, model.weights.get())), weights_(std::move(model.weights)) {
    const Eigen::Index pairs = config_.head_size() / 2;
    frequencies_ = Eigen::ArrayXd(pairs);
    for (Eigen::Index i = 0; i < pairs; ++i) {
      frequencies_(i) = std::pow(rope_theta, -static_cast<double>(i) / static_cast<double>(pairs));
    }
  }

  [[nodiscard]] const model_config& config() const noexcept { return config_; }
  [[nodiscard]] const model_weights& weights() const noexcept { return *weights_; }
  /// Sizes and weights, which the copy shares.
  [[nodiscard]] checkpoint as_checkpoint() const { return {config_, weights_}; }

  /// Makes room for passes of `count` rows.
  void reserve(Eigen::Index count) {
    if (state_.rows() >= count) return;
    for (row_matrix* buffer : {&state_, &normed_, &queries_, &attended_}) buffer->resize(count, config_.dim);
    for (row_matrix* buffer : {&keys_, &values_}) buffer->resize(count, config_.kv_dim());
    for (row_matrix* buffer : {&gate_, &up_}) buffer->resize(count, config_.hidden_dim);
    gated_.resize(config_.hidden_dim);
    for (row_matrix* buffer : {&cosines_, &sines_}) buffer->resize(count, config_.head_size() / 2);
  }

  /// Starts a pass of `count` rows, each of which then needs embed() or place().
  void begin(Eigen::Index count) {
    reserve(count);
    count_ = count;
  }

  /// Row i is this token at this position of its sequence.
  void embed(Eigen::Index i, token_id token, std::size_t position) {
    place(i, position) = weights_->embedding.row(token);
  }

  /// Row i is at this position, and what it starts from is to be written to the row returned: [dim].
  Eigen::Ref<Eigen::RowVectorXf> place(Eigen::Index i, std::size_t position) {
    const auto angles = (frequencies_ * static_cast<double>(position)).transpose();
    cosines_.row(i) = angles.cos().cast<float>();
    sines_.row(i) = angles.sin().cast<float>();
    return state_.row(i);
  }

  /// Adds the attention of one layer to the rows. `attend(queries, keys, values, out)` is given the rows' queries and
  /// keys, after rotary embedding, and values; it keeps what it wants of keys and values and fills `out` as queries.
  template <class Attend>
  void attention(std::size_t layer, Attend&& attend) {
    const layer_weights& weights = weights_->layers[layer];
    auto normed = normed_.topRows(count_);
    auto queries = queries_.topRows(count_);
    auto keys = keys_.topRows(count_);
    auto values = values_.topRows(count_);
    auto attended = attended_.topRows(count_);
    detail::rms_norm(state_.topRows(count_), weights.attention_norm, normed);
    queries.setZero();
    keys.setZero();
    values.setZero();
    detail::add_product(normed, weights.query, queries);
    detail::add_product(normed, weights.key, keys);
    detail::add_product(normed, weights.value, values);
    rotate(queries);
    rotate(keys);
    attend(detail::const_matrix_ref(queries), detail::const_matrix_ref(keys), detail::const_matrix_ref(values),
           detail::matrix_ref(attended));
    detail::add_product(attended, weights.output, state_.topRows(count_));
  }

  /// Adds the feed-forward block of one layer to the rows.
  void feed_forward(std::size_t layer) {
    const layer_weights& weights = weights_->layers[layer];
    auto normed = normed_.topRows(count_);
    auto gate = gate_.topRows(count_);
    auto up = up_.topRows(count_);
    detail::rms_norm(state_.topRows(count_), weights.feed_forward_norm, normed);
    gate.setZero();
    up.setZero();
    detail::add_product(normed, weights.gate, gate);
    detail::add_product(normed, weights.up, up);
    for (Eigen::Index i = 0; i < count_; ++i) {
      gated_ = (gate.row(i).array() * up.row(i).array() / (1 + (-gate.row(i).array()).exp())).matrix();
      gate.row(i) = gated_;
    }
    detail::add_product(gate, weights.down, state_.topRows(count_));
  }

  /// The residual stream as it stands: [count x dim].
  [[nodiscard]] auto state() const { return state_.topRows(count_); }

  /// The final norm of the rows: what the classifier sees. `out` is [count x dim].
  void final_norm(const detail::matrix_ref& out) const { normalise(state(), out); }

  /// The final norm of any states: [n x dim] to [n x dim].
  void normalise(const detail::const_matrix_ref& states, const detail::matrix_ref& out) const {
    detail::rms_norm(states, weights_->final_norm, out);
  }

  /// The logits of normalised hidden states: [n x dim] to [n x vocabulary_size].
  void classify(const detail::const_matrix_ref& hidden, detail::matrix_ref logits) const {
    logits.setZero();
    detail::add_product(hidden, weights_->head(), logits);
  }

 private:
  static constexpr double rope_theta = 10000;

  static model_config checked(model_config config, const model_weights* weights) {
    DECANT_ASSERT(!config_fault(config), "the sizes of the model break a rule");
    DECANT_ASSERT(weights != nullptr && fits(config, *weights), "the weights do not have the shapes of the sizes");
    return config;
  }

  static bool fits(const model_config& config, const model_weights& weights) {
    const auto shaped = [](const auto& tensor, Eigen::Index rows, Eigen::Index columns) {
      return tensor.rows() == rows && tensor.cols() == columns;
    };
    const auto layer_fits = [&](const layer_weights& layer) {
      return shaped(layer.attention_norm, config.dim, 1) && shaped(layer.query, config.dim, config.dim) &&
             shaped(layer.key, config.kv_dim(), config.dim) && shaped(layer.value, config.kv_dim(), config.dim) &&
             shaped(layer.output, config.dim, config.dim) && shaped(layer.feed_forward_norm, config.dim, 1) &&
             shaped(layer.gate, config.hidden_dim, config.dim) && shaped(layer.down, config.dim, config.hidden_dim) &&
             shaped(layer.up, config.hidden_dim, config.dim);
    };
    return shaped(weights.embedding, config.vocabulary_size, config.dim) &&
           static_cast<Eigen::Index>(weights.layers.size()) == config.n_layers &&
           std::all_of(weights.layers.begin(), weights.layers.end(), layer_fits) &&
           shaped(weights.final_norm, config.dim, 1) && (weights.classifier.size() == 0) == config.shared_classifier &&
           shaped(weights.head(), config.vocabulary_size, config.dim);
  }

  /// Turns the pairs (2j, 2j + 1) of every head by the angle of the row's position and of the pair's frequency.
  void rotate(detail::matrix_ref heads) const {
    const Eigen::Index head_size = config_.head_size();
    for (Eigen::Index i = 0; i < heads.rows(); ++i) {
      for (Eigen::Index column = 0; column < heads.cols(); column += 2) {
        const Eigen::Index pair = column % head_size / 2;
        const float cosine = cosines_(i, pair);
        const float sine = sines_(i, pair);
        const float x = heads(i, column);
        const float y = heads(i, column + 1);
        heads(i, column) = x * cosine - y * sine;
        heads(i, column + 1) = x * sine + y * cosine;
      }
    }
  }

  model_config config_;
  std::shared_ptr<const model_weights> weights_;
  Eigen::ArrayXd frequencies_;  // radians a position, one a pair
  Eigen::Index count_ = 0;      // rows of the pass that is going on

  // Workspace. The matrices only grow: their first rows are in use.
  row_matrix state_, normed_, queries_, keys_, values_, attended_;
  row_matrix gate_, up_;
  Eigen::RowVectorXf gated_;  // one row, always aligned alike: packets and single numbers round exp differently
  row_matrix cosines_, sines_;
};

}  // namespace decant
