// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/reference/byte_source.hpp>
#include <decant/reference/checkpoint.hpp>
#include <decant/reference/dense_attention.hpp>
#include <decant/reference/eigen_rows.hpp>
#include <decant/reference/transformer_pass.hpp>
#include <decant/reference/weight_file.hpp>

namespace decant {

/// The weights of a feature drafter; matrices are [outputs x inputs].
struct feature_weights {
  row_matrix fusion;           ///< [dim x 2 dim]: reads the embedding, then the feature
  layer_weights layer;         ///< one layer of a Llama-type model
  Eigen::VectorXf final_norm;  ///< [dim]
};

/// EAGLE's drafter: extrapolates the target's features. A feature is the hidden state that the target's classifier
/// reads; from the feature at position t and the token at t + 1 the drafter makes one for t + 1, which the classifier
/// turns into a row about the token at t + 2. One decoder layer, which sees all earlier pairs.
///
/// Effect: holds pairs (token, feature before it), appended by `extend` from the target's own features, and a tree of
/// drafted tokens on top of them, each of which is paired with the drafted feature of its parent. A node sees the pairs
/// held, its ancestors and itself. A value: copies share the weights.
/// Complexity: per pair or node one product with each weight of the layer, and one with the classifier for the last
/// pair and every node. Misuse: ids outside the vocabulary, features of another width. Reference: Li, Wei, Zhang,
/// Zhang, "EAGLE: speculative sampling requires rethinking feature uncertainty", ICML 2024, arXiv 2401.15077. (Here a
/// norm ends the layer.)
class feature_drafter {
 public:
  /// Takes embedding and classifier from the target. Misuse: weights whose shapes do not fit it.
  feature_drafter(const checkpoint& target, feature_weights weights)
      : fusion_(std::make_shared<const row_matrix>(std::move(weights.fusion))),
        pass_(one_layer(target, std::move(weights))) {
    DECANT_ASSERT(fusion_->rows() == dim() && fusion_->cols() == 2 * dim(), "fusion is [dim x 2 dim]");
    input_.resize(1, 2 * dim());
  }

  /// Reads a file of a feature drafter: "dcfd", then little-endian int32 (version 1, dim, hidden_dim, n_heads,
  /// n_kv_heads, sequence_length, vocabulary_size), then float32: fusion [dim x 2 dim], attention norm, query, key,
  /// value, output, feed-forward norm, gate, down, up, final norm. Nothing is allocated on the word of the header.
  /// Errors: bad_file; `where` names the field or tensor, "header", "version" or "size", or a field in which the target
  /// is another.
  static result<feature_drafter> read(std::span<const std::byte> bytes, const checkpoint& target,
                                      const checkpoint_options& options = {}) {
    detail::memory_source source(bytes);
    return read_from(source, target, options);
  }

  /// The same from a file. Errors: also not_found.
  static result<feature_drafter> load(const std::filesystem::path& path, const checkpoint& target,
                                      const checkpoint_options& options = {}) {
    auto source = detail::open_file(path);
    if (!source) return source.error();
    return read_from(*source, target, options);
  }

  /// Pairs held; nodes do not count.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t vocabulary_size() const noexcept {
    return static_cast<std::size_t>(pass_.config().vocabulary_size);
  }
  [[nodiscard]] std::size_t feature_size() const noexcept { return static_cast<std::size_t>(dim()); }

  /// Appends pairs: tokens[i] and the feature of the position before it, features[i * dim .. (i + 1) * dim). Forgets
  /// all nodes. Returns the row about the token after the last of them: valid until the next call of extend or
  /// truncate.
  std::span<const float> extend(std::span<const token_id> tokens, std::span<const float> features) {
    DECANT_ASSERT(!tokens.empty(), "no tokens to extend by");
    DECANT_ASSERT(features.size() == tokens.size() * feature_size(), "every token needs the feature before it");
    forget_nodes();
    const Eigen::Index count = index(tokens.size());
    fit(keys_, index(size_) + count, kv_dim());
    fit(values_, index(size_) + count, kv_dim());
    pass_.begin(count);
    for (Eigen::Index i = 0; i < count; ++i) {
      const auto place = static_cast<std::size_t>(i);
      fuse(i, tokens[place], features.subspan(place * feature_size(), feature_size()), size_ + place);
    }
    const Eigen::Index before = index(size_);
    run(
        [&](const auto& keys, const auto& values) {
          keys_.middleRows(before, count) = keys;
          values_.middleRows(before, count) = values;
        },
        [&](Eigen::Index i) { return before + i + 1; });
    fit(features_, count, dim());
    pass_.final_norm(features_.topRows(count));
    root_feature_ = features_.row(count - 1);
    root_row_.resize(1, pass_.config().vocabulary_size);
    pass_.classify(root_feature_, root_row_);
    size_ += tokens.size();
    return as_row(root_row_.row(0));
  }

  /// Forgets the nodes, and the pairs after the first `length`.
  void truncate(std::size_t length) {
    DECANT_ASSERT(length <= size_, "cannot truncate to more pairs than are held");
    forget_nodes();
    size_ = length;
    root_feature_.resize(0, 0);
  }

  /// Adds nodes to the tree on top of the last pair that `extend` appended. parents[i] numbers an earlier node of the
  /// tree, not of this call alone; no_parent stands for that last pair. Misuse: a parent that is not there, no pair.
  void grow(std::span<const token_id> tokens, std::span<const std::int32_t> parents) {
    DECANT_ASSERT(tokens.size() == parents.size() && !tokens.empty(), "every node needs a parent");
    DECANT_ASSERT(root_feature_.size() > 0, "a tree grows on a pair that extend appended");
    const Eigen::Index first = index(parents_.size()), count = index(tokens.size());
    for (row_matrix* buffer : {&node_keys_, &node_values_}) fit(*buffer, first + count, kv_dim());
    fit(features_, first + count, dim());
    fit(rows_, first + count, pass_.config().vocabulary_size);
    pass_.begin(count);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      DECANT_ASSERT(parents[i] >= no_parent && parents[i] < static_cast<std::int32_t>(first), "no such parent");
      const bool at_root = parents[i] == no_parent;
      depths_.push_back(at_root ? 1 : depths_[static_cast<std::size_t>(parents[i])] + 1);
      const auto feature =
          at_root ? as_row(std::as_const(root_feature_).row(0)) : as_row(std::as_const(features_).row(parents[i]));
      fuse(index(i), tokens[i], feature, size_ + depths_.back() - 1);
    }
    parents_.insert(parents_.end(), parents.begin(), parents.end());
    run(
        [&](const auto& keys, const auto& values) {
          node_keys_.middleRows(first, count) = keys;
          node_values_.middleRows(first, count) = values;
        },
        [&](Eigen::Index i) { return lay_out(first + i); });
    pass_.final_norm(features_.middleRows(first, count));
    pass_.classify(features_.middleRows(first, count), rows_.middleRows(first, count));
  }

  /// The row about the token after a node: valid until extend or truncate, or until the tree outgrows what was
  /// reserved.
  [[nodiscard]] std::span<const float> row(std::size_t node) const {
    DECANT_ASSERT(node < parents_.size(), "no such node");
    return as_row(rows_.row(index(node)));
  }

  /// The features that the drafter made after the last pair and after a node: [feature_size()], valid like rows.
  [[nodiscard]] std::span<const float> feature() const {
    DECANT_ASSERT(root_feature_.size() > 0, "no pair that extend appended");
    return as_row(root_feature_.row(0));
  }
  [[nodiscard]] std::span<const float> feature(std::size_t node) const {
    DECANT_ASSERT(node < parents_.size(), "no such node");
    return as_row(features_.row(index(node)));
  }

 private:
  static Eigen::Index index(std::size_t number) noexcept { return static_cast<Eigen::Index>(number); }

  [[nodiscard]] Eigen::Index dim() const noexcept { return pass_.config().dim; }
  [[nodiscard]] Eigen::Index kv_dim() const noexcept { return pass_.config().kv_dim(); }

  /// A model of one layer with the target's embedding and classifier.
  static checkpoint one_layer(const checkpoint& target, feature_weights weights) {
    model_config config = target.config;
    config.n_layers = 1;
    config.hidden_dim = weights.layer.gate.rows();
    const Eigen::Index head_size = config.head_size();
    DECANT_ASSERT(weights.layer.key.rows() % head_size == 0, "keys are whole heads");
    config.n_kv_heads = weights.layer.key.rows() / head_size;
    auto all = std::make_shared<model_weights>();
    all->embedding = target.weights->embedding;
    all->classifier = target.weights->classifier;
    all->layers.push_back(std::move(weights.layer));
    all->final_norm = std::move(weights.final_norm);
    return {config, std::move(all)};
  }

  template <class Source>
  static result<feature_drafter> read_from(Source& source, const checkpoint& target,
                                           const checkpoint_options& options) {
    const auto sizes = detail::read_sizes<6>(
        source, "dcfd", {"dim", "hidden_dim", "n_heads", "n_kv_heads", "sequence_length", "vocabulary_size"});
    if (!sizes) return sizes.error();
    const auto [dim, hidden_dim, heads, kv_heads, length, vocabulary] = *sizes;
    const model_config config{.dim = dim,
                              .hidden_dim = hidden_dim,
                              .n_layers = 1,
                              .n_heads = heads,
                              .n_kv_heads = kv_heads,
                              .vocabulary_size = vocabulary,
                              .sequence_length = length};
    if (auto fault = config_fault(config)) return *std::move(fault);
    if (auto fault = mismatch(config, target.config)) return *std::move(fault);
    constexpr Eigen::Index width = sizeof(float);
    detail::size_sum bytes;
    bytes.add({width, dim, dim, 4});  // fusion, query, output
    bytes.add({width, dim, 3});
    bytes.add({width, config.kv_dim(), dim, 2});
    bytes.add({width, hidden_dim, dim, 3});
    if (auto fault = detail::size_fault(source, bytes.total())) return *std::move(fault);

    feature_weights weights;
    layer_weights& layer = weights.layer;
    detail::tensor_reader reader(source, options);
    reader.read("fusion", weights.fusion, dim, 2 * dim);
    reader.read("attention_norm", layer.attention_norm, dim);
    reader.read("query", layer.query, dim, dim);
    reader.read("key", layer.key, config.kv_dim(), dim);
    reader.read("value", layer.value, config.kv_dim(), dim);
    reader.read("output", layer.output, dim, dim);
    reader.read("feed_forward_norm", layer.feed_forward_norm, dim);
    reader.read("gate", layer.gate, hidden_dim, dim);
    reader.read("down", layer.down, dim, hidden_dim);
    reader.read("up", layer.up, hidden_dim, dim);
    reader.read("final_norm", weights.final_norm, dim);
    if (const auto& failure = reader.failure()) return *failure;
    return feature_drafter(target, std::move(weights));
  }

  /// The first size that the target must have too and does not.
  static std::optional<error> mismatch(const model_config& drafter, const model_config& target) {
    const auto fault = [](const char* field, Eigen::Index own, Eigen::Index other) {
      return error{error_code::bad_file, field,
                   std::to_string(own) + " must be the target's, " + std::to_string(other)};
    };
    if (drafter.dim != target.dim) return fault("dim", drafter.dim, target.dim);
    if (drafter.n_heads != target.n_heads) return fault("n_heads", drafter.n_heads, target.n_heads);
    if (drafter.vocabulary_size != target.vocabulary_size) {
      return fault("vocabulary_size", drafter.vocabulary_size, target.vocabulary_size);
    }
    return std::nullopt;
  }

  /// Room for rows, whose earlier ones stay; grows by doubling.
  static void fit(row_matrix& buffer, Eigen::Index rows, Eigen::Index columns) {
    if (buffer.rows() >= rows && buffer.cols() == columns) return;
    buffer.conservativeResize(std::max(rows, 2 * buffer.rows()), columns);
  }

  void forget_nodes() {
    parents_.clear();
    depths_.clear();
  }

  /// Row i of the pass starts from a token's embedding and a feature.
  void fuse(Eigen::Index i, token_id token, std::span<const float> feature, std::size_t position) {
    DECANT_ASSERT(token >= 0 && token < pass_.config().vocabulary_size, "token id outside the vocabulary");
    input_.leftCols(dim()) = pass_.weights().embedding.row(token);
    input_.rightCols(dim()) = Eigen::Map<const Eigen::RowVectorXf>(feature.data(), dim());
    auto state = pass_.place(i, position);
    state.setZero();
    detail::add_product(input_, *fusion_, state);
  }

  /// The layer. `keep(keys, values)` stores those of the pass; `visible(i)` says how many of the first rows of keys_
  /// and values_ row i sees, and puts there what it sees beyond the pairs held.
  template <class Keep, class Visible>
  void run(Keep keep, Visible visible) {
    pass_.attention(0, [&](const auto& queries, const auto& keys, const auto& values, auto out) {
      keep(keys, values);
      const Eigen::Index head_size = pass_.config().head_size();
      const Eigen::Index group = pass_.config().n_heads / pass_.config().n_kv_heads;
      for (Eigen::Index i = 0; i < queries.rows(); ++i) {
        const Eigen::Index rows = visible(i);
        if (scratch_.size() < rows) scratch_.resize(2 * rows);
        for (Eigen::Index head = 0; head < pass_.config().n_heads; ++head) {
          const Eigen::Index column = head / group * head_size;
          attend(queries.row(i).segment(head * head_size, head_size), keys_.block(0, column, rows, head_size),
                 values_.block(0, column, rows, head_size), scratch_.head(rows),
                 out.row(i).segment(head * head_size, head_size));
        }
      }
    });
    pass_.feed_forward(0);
  }

  /// Puts a node and its ancestors behind the pairs held; returns how many rows that makes.
  Eigen::Index lay_out(Eigen::Index node) {
    const Eigen::Index rows = index(size_ + depths_[static_cast<std::size_t>(node)]);
    for (row_matrix* buffer : {&keys_, &values_}) fit(*buffer, rows, kv_dim());
    for (Eigen::Index row = rows - 1; node != no_parent; --row) {
      keys_.row(row) = node_keys_.row(node);
      values_.row(row) = node_values_.row(node);
      node = parents_[static_cast<std::size_t>(node)];
    }
    return rows;
  }

  std::shared_ptr<const row_matrix> fusion_;
  transformer_pass pass_;
  std::size_t size_ = 0;
  row_matrix keys_, values_;  // of the pairs held; the rows behind them are workspace
  row_matrix root_feature_, root_row_;

  // The tree. Matrices only grow: their first rows are in use.
  std::vector<std::int32_t> parents_;
  std::vector<std::size_t> depths_;
  row_matrix node_keys_, node_values_, features_, rows_;

  row_matrix input_;
  Eigen::VectorXf scratch_;
};

}  // namespace decant
