// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/reference/checkpoint.hpp>
#include <decant/reference/dense_attention.hpp>
#include <decant/reference/eigen_rows.hpp>
#include <decant/reference/kv_cache.hpp>
#include <decant/reference/transformer_pass.hpp>

namespace decant {

/// How one pass through the layers differs from the plain one. The default is the plain one.
struct forward_options {
  /// Sub-layers to leave out: [2 * layer] its attention, [2 * layer + 1] its feed-forward block. Empty: none.
  /// A skipped attention adds no keys and values for the tokens of the pass: later tokens do not see them there.
  std::vector<bool> skip = {};
  /// Leave after so many layers, for the final norm and the classifier; the layers beyond add no keys and values.
  std::optional<std::size_t> layers = std::nullopt;
  /// Keep the residual stream after every layer, for layer_state(). Off, it costs nothing.
  bool record_layers = false;
  /// Attends instead of dense_attention. Not owned, and called by copies of the model too.
  attention_hook* attention = nullptr;
};

/// A small Llama-type transformer: RMSNorm (epsilon 1e-5), rotary embedding of interleaved pairs (theta 10000, absolute
/// positions), grouped-query attention, SwiGLU. Real text without an engine, and a look inside for methods that need
/// it.
///
/// Effect: holds one sequence. `evaluate` and `score` append tokens in one pass, which reads every weight once for all
/// of them. The logits of a position do not depend on how the sequence was divided into calls, nor on what was tried
/// and truncated in between: within one build they are the same bit for bit. `score` of a tree is likewise one pass; a
/// node gets the logits that it would have at the end of its own path.
/// A value: copying it forks the sequence; the weights are shared, keys, values and the last results are copied.
/// Complexity: per token one product with every weight, and O(size * dim) a layer for attention. A pass allocates only
/// when it is larger than all before, or the sequence outgrows what was reserved (amortised).
/// Misuse: ids outside the vocabulary, no tokens, more tokens than sequence_length(), parents that do not stand before
/// their nodes. The model is then unchanged.
/// Reference: Touvron et al. 2023 (Llama 2), arXiv 2307.09288; Ainslie et al. 2023 (grouped queries), arXiv 2305.13245.
class transformer {
 public:
  /// From a checkpoint, read or made. Misuse: weights whose shapes are not those of the sizes.
  explicit transformer(checkpoint model) : pass_(std::move(model)), cache_(pass_.config()) {}

  /// From a file in the llama2.c format. Errors: those of read_checkpoint.
  static result<transformer> load(const std::filesystem::path& path, const checkpoint_options& options = {}) {
    auto model = read_checkpoint(path, options);
    if (!model) return model.error();
    return transformer(*std::move(model));
  }

  /// Appends tokens and returns the logits of what follows the last of them: [vocabulary_size], valid until the next
  /// call of evaluate or score. The classifier runs for the last token alone.
  std::span<const float> evaluate(std::span<const token_id> tokens) { return evaluate(tokens, options_); }
  std::span<const float> evaluate(std::span<const token_id> tokens, const forward_options& options) {
    forward(tokens, {}, options);
    scored_ = 1;
    logits_of(hidden_.row(appended_ - 1));
    return as_row(logits_.row(0));
  }

  /// Appends tokens and computes the logits after each of them: row(i).
  void score(std::span<const token_id> tokens) { score(tokens, options_); }
  void score(std::span<const token_id> tokens, const forward_options& options) {
    forward(tokens, {}, options);
    score_all();
  }

  /// Computes the logits after every node of a tree that continues the tokens held; see TreeModel. An attention hook is
  /// called for one node at a time, with a cache whose last rows are the node's path.
  void score(std::span<const token_id> nodes, std::span<const std::int32_t> parents) {
    score(nodes, parents, options_);
  }
  void score(std::span<const token_id> nodes, std::span<const std::int32_t> parents, const forward_options& options) {
    DECANT_ASSERT(parents.size() == nodes.size(), "a tree has one parent a node");
    forward(nodes, parents, options);
    score_all();
  }

  /// Holds the nodes of `path` of the tree scored last, top down, each the parent of the next; forgets the others. Rows
  /// and hidden states of the call stay valid. O(path * layers * dim). Misuse: a path that does not begin below the
  /// tokens held or leaves out a node; a tree that another call has made the model forget.
  void keep(std::span<const std::size_t> path) {
    check_path(path);
    for (std::size_t layer = 0; layer < n_layers(); ++layer) {
      if (tree_.layers[layer].there) put_path(layer, path);
    }
    size_ += path.size();
    tree_.parents.clear();
  }

  /// evaluate and score without some sub-layers, numbered as in forward_options::skip; otherwise with options().
  [[nodiscard]] std::size_t sub_layers() const noexcept { return 2 * n_layers(); }
  std::span<const float> evaluate_skipping(std::span<const token_id> tokens, const std::vector<bool>& skip) {
    return evaluate(tokens, without(skip));
  }
  void score_skipping(std::span<const token_id> tokens, const std::vector<bool>& skip) { score(tokens, without(skip)); }

  /// The logits of what follows the i-th token of the last `score`: [vocabulary_size]. All rows are valid together,
  /// until the next call of evaluate or score. (After `evaluate` there is one row: the last token's.)
  [[nodiscard]] std::span<const float> row(std::size_t i) const {
    DECANT_ASSERT(index(i) < scored_, "no row of logits for this token");
    return as_row(logits_.row(index(i)));
  }

  /// Tokens held.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t vocabulary_size() const noexcept {
    return static_cast<std::size_t>(config().vocabulary_size);
  }
  /// The most tokens that can be held.
  [[nodiscard]] std::size_t sequence_length() const noexcept {
    return static_cast<std::size_t>(config().sequence_length);
  }
  [[nodiscard]] std::size_t n_layers() const noexcept { return static_cast<std::size_t>(config().n_layers); }
  [[nodiscard]] const model_config& config() const noexcept { return pass_.config(); }
  [[nodiscard]] const model_weights& weights() const noexcept { return pass_.weights(); }
  /// Sizes and weights, to make another model that shares them: `transformer_batch(model.as_checkpoint())`.
  [[nodiscard]] checkpoint as_checkpoint() const { return pass_.as_checkpoint(); }

  /// Forgets all tokens after the first `length`. Rows and hidden states of the last call stay valid.
  void truncate(std::size_t length) {
    DECANT_ASSERT(length <= size_, "cannot truncate to more tokens than are held");
    tree_.parents.clear();
    cache_.truncate(length);
    size_ = length;
  }

  /// Makes room, so that a sequence of `positions` tokens, evaluated one by one, allocates nothing.
  void reserve(std::size_t positions) {
    cache_.reserve(positions);
    pass_.reserve(1);
    reserve_results(1);
    reserve_logits(1);
    reserve_scratch(index(positions));
  }

  /// The options of the calls that name none.
  [[nodiscard]] const forward_options& options() const noexcept { return options_; }
  void set_options(forward_options options) { options_ = std::move(options); }

  /// How many tokens the last evaluate or score appended: the range of hidden() and layer_state().
  [[nodiscard]] std::size_t appended() const noexcept { return static_cast<std::size_t>(appended_); }

  /// The hidden state of the i-th token of the last call, after the final norm: what the classifier sees. [dim]
  [[nodiscard]] std::span<const float> hidden(std::size_t i) const {
    DECANT_ASSERT(index(i) < appended_, "no hidden state for this token");
    return as_row(hidden_.row(index(i)));
  }

  /// The residual stream of the i-th token of the last call after `depth` layers, before any norm: depth 0 is the
  /// embedding. [dim] Misuse: a depth that the last call did not reach, or did not record.
  [[nodiscard]] std::span<const float> layer_state(std::size_t depth, std::size_t i) const {
    DECANT_ASSERT(depth < recorded_, "layer state not recorded: see forward_options::record_layers");
    DECANT_ASSERT(index(i) < appended_, "no layer state for this token");
    return as_row(layer_states_[depth].row(index(i)));
  }

  /// The final norm of a residual state: [dim] to [dim].
  void normalise(std::span<const float> state, std::span<float> hidden) const {
    DECANT_ASSERT(index(state.size()) == config().dim && index(hidden.size()) == config().dim,
                  "states have dim numbers");
    pass_.normalise(one_row(state), one_row(hidden));
  }
  [[nodiscard]] std::vector<float> normalise(std::span<const float> state) const {
    std::vector<float> hidden(state.size());
    normalise(state, hidden);
    return hidden;
  }

  /// The logits of a normalised hidden state: [dim] to [vocabulary_size]. With normalise(), the logit lens:
  /// classify(normalise(layer_state(depth, i))).
  void classify(std::span<const float> hidden, std::span<float> logits) const {
    DECANT_ASSERT(index(hidden.size()) == config().dim, "a hidden state has dim numbers");
    DECANT_ASSERT(index(logits.size()) == config().vocabulary_size, "a row has vocabulary_size numbers");
    pass_.classify(one_row(hidden), one_row(logits));
  }
  [[nodiscard]] std::vector<float> classify(std::span<const float> hidden) const {
    std::vector<float> logits(vocabulary_size());
    classify(hidden, logits);
    return logits;
  }

  /// Keys and values, by layer, with positions. Rows that are changed or evicted stay so until they are truncated;
  /// positions of later tokens are counted by size(), whatever the cache holds.
  [[nodiscard]] const kv_cache& kv() const noexcept { return cache_; }
  [[nodiscard]] kv_cache& kv() noexcept { return cache_; }

 private:
  static Eigen::Index index(std::size_t number) noexcept { return static_cast<Eigen::Index>(number); }

  static Eigen::Map<row_matrix> one_row(std::span<float> numbers) { return {numbers.data(), 1, index(numbers.size())}; }
  static Eigen::Map<const row_matrix> one_row(std::span<const float> numbers) {
    return {numbers.data(), 1, index(numbers.size())};
  }

  /// A pass over a tree: what it needs, and what it leaves for `keep`.
  struct tree_pass {
    struct layer_rows {
      bool there = false;       // not if the pass left the layer out
      row_matrix keys, values;  // a row a node
    };

    void begin(std::span<const std::int32_t> of, std::size_t n_layers) {
      parents.assign(of.begin(), of.end());
      layers.resize(n_layers);
      for (layer_rows& rows : layers) rows.there = false;
    }

    /// Writes the nodes from the tokens held down to `node`; says how many stand above it.
    std::size_t find_path(std::size_t node) {
      path.clear();
      for (auto n = static_cast<std::int32_t>(node); n != no_parent; n = parents[static_cast<std::size_t>(n)]) {
        path.push_back(static_cast<std::size_t>(n));
      }
      std::reverse(path.begin(), path.end());
      return path.size() - 1;
    }

    std::vector<std::int32_t> parents;  // empty when the tokens of the last pass are a sequence
    std::vector<layer_rows> layers;
    std::vector<std::size_t> path;
  };

  /// With no parents the tokens are a sequence, and held when the pass has ended.
  void forward(std::span<const token_id> tokens, std::span<const std::int32_t> parents,
               const forward_options& options) {
    check_call(tokens, parents, options);
    cache_.truncate(size_);  // an attention hook that threw has left rows of a token that does not count
    tree_.begin(parents, n_layers());
    begin_pass(tokens, options);
    record(0, options);
    const std::size_t depth = options.layers.value_or(n_layers());
    for (std::size_t layer = 0; layer < depth; ++layer) {
      if (!skips(options, 2 * layer)) attention(layer, options);
      if (!skips(options, 2 * layer + 1)) pass_.feed_forward(layer);
      record(layer + 1, options);
    }
    const Eigen::Index count = index(tokens.size());
    pass_.final_norm(hidden_.topRows(count));
    appended_ = count;
    if (parents.empty()) size_ += tokens.size();
  }

  void score_all() {
    scored_ = appended_;
    logits_of(hidden_.topRows(appended_));
  }

  [[nodiscard]] forward_options without(const std::vector<bool>& skip) const {
    forward_options options = options_;
    options.skip = skip;
    return options;
  }

  void check_call(std::span<const token_id> tokens, std::span<const std::int32_t> parents,
                  const forward_options& options) const {
    DECANT_ASSERT(!tokens.empty(), "no tokens to evaluate");
    DECANT_ASSERT(parents.empty() || parents.size() == tokens.size(), "a tree has one parent a node");
    DECANT_ASSERT(options.skip.empty() || options.skip.size() == 2 * n_layers(), "skip must have two flags a layer");
    DECANT_ASSERT(!options.layers || *options.layers <= n_layers(), "cannot leave after more layers than there are");
    for (const token_id token : tokens) {
      DECANT_ASSERT(token >= 0 && token < config().vocabulary_size, "token id outside the vocabulary");
    }
    for (std::size_t i = 0; i < parents.size(); ++i) {
      DECANT_ASSERT(parents[i] >= no_parent && parents[i] < static_cast<std::int32_t>(i), "a parent before its node");
    }
    DECANT_ASSERT(longest_path(tokens.size(), parents) <= sequence_length() - size_,
                  "more tokens than the sequence length allows");
  }

  static std::size_t longest_path(std::size_t count, std::span<const std::int32_t> parents) {
    if (parents.empty()) return count;
    std::size_t longest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t length = 1;
      for (std::int32_t n = parents[i]; n != no_parent; n = parents[static_cast<std::size_t>(n)]) ++length;
      longest = std::max(longest, length);
    }
    return longest;
  }

  void check_path(std::span<const std::size_t> path) const {
    DECANT_ASSERT(!tree_.parents.empty() && appended_ > 0, "no tree has been scored since the sequence changed");
    std::int32_t above = no_parent;
    for (const std::size_t node : path) {
      DECANT_ASSERT(node < tree_.parents.size() && tree_.parents[node] == above, "a path goes from parent to child");
      above = static_cast<std::int32_t>(node);
    }
  }

  static bool skips(const forward_options& options, std::size_t sub_layer) {
    return !options.skip.empty() && options.skip[sub_layer];
  }

  void begin_pass(std::span<const token_id> tokens, const forward_options& options) {
    pass_.begin(index(tokens.size()));
    reserve_results(index(tokens.size()));
    reserve_scratch(index(size_ + tokens.size()));
    appended_ = 0;
    scored_ = 0;
    recorded_ = 0;
    if (options.record_layers) layer_states_.resize(n_layers() + 1);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      pass_.embed(index(i), tokens[i], size_ + (tree_.parents.empty() ? i : tree_.find_path(i)));
    }
  }

  void attention(std::size_t layer, const forward_options& options) {
    pass_.attention(layer, [&](const auto& queries, const auto& keys, const auto& values, const auto& out) {
      if (!tree_.parents.empty()) return attend_tree(layer, queries, keys, values, out, options);
      kv_layer& cache = cache_.layer(layer);
      cache.append(size_, keys.rows());
      cache.keys().bottomRows(keys.rows()) = keys;
      cache.values().bottomRows(keys.rows()) = values;
      attend(layer, queries, out, options);
    });
  }

  /// Lets queries look at the cache, whose last rows are theirs.
  void attend(std::size_t layer, const detail::const_matrix_ref& queries, const detail::matrix_ref& out,
              const forward_options& options) {
    if (options.attention != nullptr) {
      options.attention->attend(layer, queries, cache_.layer(layer), out);
    } else {
      dense_attention(queries, cache_.layer(layer), out, scratch_);
    }
  }

  /// One node after another finds its own path in the cache, as if there were no other.
  void attend_tree(std::size_t layer, const detail::const_matrix_ref& queries, const detail::const_matrix_ref& keys,
                   const detail::const_matrix_ref& values, detail::matrix_ref out, const forward_options& options) {
    tree_pass::layer_rows& rows = tree_.layers[layer];
    rows.there = true;
    for (row_matrix* numbers : {&rows.keys, &rows.values}) {
      if (numbers->rows() < keys.rows()) numbers->resize(keys.rows(), keys.cols());
    }
    rows.keys.topRows(keys.rows()) = keys;
    rows.values.topRows(keys.rows()) = values;
    for (Eigen::Index i = 0; i < queries.rows(); ++i) {
      tree_.find_path(static_cast<std::size_t>(i));
      put_path(layer, tree_.path);
      attend(layer, queries.middleRows(i, 1), out.middleRows(i, 1), options);
      cache_.layer(layer).truncate(size_);
    }
  }

  /// Appends the keys and values of nodes to those of the tokens held.
  void put_path(std::size_t layer, std::span<const std::size_t> path) {
    kv_layer& cache = cache_.layer(layer);
    cache.append(size_, index(path.size()));
    auto keys = cache.keys().bottomRows(index(path.size()));
    auto values = cache.values().bottomRows(index(path.size()));
    for (std::size_t depth = 0; depth < path.size(); ++depth) {
      keys.row(index(depth)) = tree_.layers[layer].keys.row(index(path[depth]));
      values.row(index(depth)) = tree_.layers[layer].values.row(index(path[depth]));
    }
  }

  void record(std::size_t depth, const forward_options& options) {
    if (!options.record_layers) return;
    layer_states_[depth] = pass_.state();
    recorded_ = depth + 1;
  }

  void logits_of(const detail::const_matrix_ref& hidden) {
    reserve_logits(hidden.rows());
    pass_.classify(hidden, logits_.topRows(hidden.rows()));
  }

  void reserve_results(Eigen::Index count) {
    if (hidden_.rows() < count) hidden_.resize(count, config().dim);
  }

  void reserve_logits(Eigen::Index rows) {
    if (logits_.rows() < rows) logits_.conservativeResize(rows, config().vocabulary_size);
  }

  void reserve_scratch(Eigen::Index positions) {
    if (scratch_.size() < positions) scratch_.resize(std::min(2 * positions, config().sequence_length));
  }

  transformer_pass pass_;
  kv_cache cache_;
  forward_options options_;
  std::size_t size_ = 0;
  tree_pass tree_;

  // Results of the last call. The matrices only grow: their first rows are in use.
  Eigen::Index appended_ = 0;
  Eigen::Index scored_ = 0;
  std::size_t recorded_ = 0;  // depths of layer_states_ that the last call filled
  row_matrix hidden_;
  row_matrix logits_;
  std::vector<row_matrix> layer_states_;
  Eigen::VectorXf scratch_;  // workspace, likewise
};

}  // namespace decant
