// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <Eigen/Core>

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
/// and truncated in between: within one build they are the same bit for bit.
/// A value: copying it forks the sequence; the weights are shared, keys, values and the last results are copied.
/// Complexity: per token one product with every weight, and O(size * dim) a layer for attention. A pass allocates only
/// when it is larger than all before, or the sequence outgrows what was reserved (amortised).
/// Misuse: ids outside the vocabulary, no tokens, more tokens than sequence_length(). The model is then unchanged.
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
    forward(tokens, options);
    scored_ = 1;
    logits_of(hidden_.row(appended_ - 1));
    return as_row(logits_.row(0));
  }

  /// Appends tokens and computes the logits after each of them: row(i).
  void score(std::span<const token_id> tokens) { score(tokens, options_); }
  void score(std::span<const token_id> tokens, const forward_options& options) {
    forward(tokens, options);
    scored_ = appended_;
    logits_of(hidden_.topRows(appended_));
  }

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

  void forward(std::span<const token_id> tokens, const forward_options& options) {
    check_call(tokens, options);
    cache_.truncate(size_);  // an attention hook that threw has left rows of a token that does not count
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
    size_ += tokens.size();
  }

  void check_call(std::span<const token_id> tokens, const forward_options& options) const {
    DECANT_ASSERT(!tokens.empty(), "no tokens to evaluate");
    DECANT_ASSERT(tokens.size() <= sequence_length() - size_, "more tokens than the sequence length allows");
    DECANT_ASSERT(options.skip.empty() || options.skip.size() == 2 * n_layers(), "skip must have two flags a layer");
    DECANT_ASSERT(!options.layers || *options.layers <= n_layers(), "cannot leave after more layers than there are");
    for (const token_id token : tokens) {
      DECANT_ASSERT(token >= 0 && token < config().vocabulary_size, "token id outside the vocabulary");
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
    for (std::size_t i = 0; i < tokens.size(); ++i) pass_.embed(index(i), tokens[i], size_ + i);
  }

  void attention(std::size_t layer, const forward_options& options) {
    pass_.attention(layer, [&](const auto& queries, const auto& keys, const auto& values, const auto& out) {
      kv_layer& cache = cache_.layer(layer);
      cache.append(size_, keys.rows());
      cache.keys().bottomRows(keys.rows()) = keys;
      cache.values().bottomRows(keys.rows()) = values;
      if (options.attention != nullptr) {
        options.attention->attend(layer, queries, cache, out);
      } else {
        dense_attention(queries, cache, out, scratch_);
      }
    });
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
