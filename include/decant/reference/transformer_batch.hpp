// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
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
#include <decant/reference/kv_pages.hpp>
#include <decant/reference/transformer_pass.hpp>

namespace decant {

/// The reference transformer for many sequences at a time: what search runs on. A BatchModel and a HiddenStateModel.
///
/// Effect: `evaluate` appends the tokens of all items in one pass, which reads every weight once for all of them. Rows
/// and hidden states are those that `transformer` gives to each sequence alone, bit for bit. A fork shares the keys and
/// values of its prefix (kv_pages): memory is that of the tree of all sequences, not of their sum.
/// Complexity: a row costs one product with every weight, O(size * dim) a layer for attention, and the copy of the
/// sequence's keys and values, as far as they are not those of the item before. In steady state nothing allocates: when
/// no pass, sequence or number of sequences is larger than all before.
/// Misuse: a sequence that is not live or stands twice in a pass, an item without tokens, ids outside the vocabulary,
/// more tokens than sequence_length(). The model is then unchanged.
class transformer_batch {
 public:
  /// From a checkpoint, read or made. Misuse: weights whose shapes are not those of the sizes.
  explicit transformer_batch(checkpoint model)
      : pass_(std::move(model)),
        pages_(pass_.config()),
        gathered_(pass_.config().n_kv_heads, pass_.config().head_size()) {}

  /// From a file in the llama2.c format. Errors: those of read_checkpoint.
  static result<transformer_batch> load(const std::filesystem::path& path, const checkpoint_options& options = {}) {
    auto model = read_checkpoint(path, options);
    if (!model) return model.error();
    return transformer_batch(*std::move(model));
  }

  /// Makes an empty sequence and returns its number.
  [[nodiscard]] std::size_t start() {
    if (free_.empty()) {
      free_.reserve(sequences_.size() + 1);  // so that dropping never allocates
      sequences_.emplace_back();
      return sequences_.size() - 1;
    }
    const std::size_t number = free_.back();
    free_.pop_back();
    sequences_[number].live = true;
    return number;
  }

  /// Makes a sequence with all tokens of another, whose keys and values it shares. O(size / 16).
  [[nodiscard]] std::size_t fork(std::size_t sequence) {
    DECANT_ASSERT(live(sequence), "no such sequence");
    const std::size_t number = start();
    pages_.fork(sequences_[sequence].rows, sequences_[number].rows);
    return number;
  }

  /// Ends a sequence; its number will serve again. Rows and hidden states of the last pass stay valid.
  void drop(std::size_t sequence) {
    truncate(sequence, 0);
    sequences_[sequence].live = false;
    free_.push_back(sequence);
  }

  /// Appends the tokens of every item to its sequence. row(i) is valid until the next call, as is hidden(i, j).
  void evaluate(std::span<const batch_item> items) {
    check_call(items);
    begin_pass(items);
    for (std::size_t layer = 0; layer < n_layers(); ++layer) {
      attention(layer, items);
      pass_.feed_forward(layer);
    }
    finish_pass(items);
  }

  /// The logits of what follows the last token of item i of the last pass: [vocabulary_size].
  [[nodiscard]] std::span<const float> row(std::size_t i) const {
    DECANT_ASSERT(i + 1 < first_.size(), "no row of logits for this item");
    return as_row(logits_.row(index(i)));
  }

  /// The hidden state of the j-th token of item i of the last pass, after the final norm. [dim]
  [[nodiscard]] std::span<const float> hidden(std::size_t i, std::size_t j) const {
    DECANT_ASSERT(i + 1 < first_.size() && index(j) < first_[i + 1] - first_[i], "no hidden state for this token");
    return as_row(hidden_.row(first_[i] + index(j)));
  }

  /// Forgets all tokens of a sequence after the first `length`.
  void truncate(std::size_t sequence, std::size_t length) {
    DECANT_ASSERT(live(sequence), "no such sequence");
    pages_.truncate(sequences_[sequence].rows, length);
  }

  /// Tokens of a sequence.
  [[nodiscard]] std::size_t size(std::size_t sequence) const {
    DECANT_ASSERT(live(sequence), "no such sequence");
    return sequences_[sequence].rows.size;
  }
  [[nodiscard]] std::size_t vocabulary_size() const noexcept {
    return static_cast<std::size_t>(config().vocabulary_size);
  }
  /// The most tokens that one sequence can hold.
  [[nodiscard]] std::size_t sequence_length() const noexcept {
    return static_cast<std::size_t>(config().sequence_length);
  }
  [[nodiscard]] std::size_t n_layers() const noexcept { return static_cast<std::size_t>(config().n_layers); }
  [[nodiscard]] const model_config& config() const noexcept { return pass_.config(); }

  /// Sequences that are live.
  [[nodiscard]] std::size_t sequences() const noexcept { return sequences_.size() - free_.size(); }
  /// The store of keys and values: how much memory the sequences take.
  [[nodiscard]] const kv_pages& kv() const noexcept { return pages_; }

 private:
  struct held_sequence {
    paged_rows rows{};
    bool live = true;
    std::size_t pass = 0;  ///< the last one that it took part in
  };

  static Eigen::Index index(std::size_t number) noexcept { return static_cast<Eigen::Index>(number); }

  [[nodiscard]] bool live(std::size_t sequence) const noexcept {
    return sequence < sequences_.size() && sequences_[sequence].live;
  }

  void check_call(std::span<const batch_item> items) {
    ++passes_;
    for (const batch_item& item : items) {
      DECANT_ASSERT(live(item.sequence), "no such sequence");
      held_sequence& sequence = sequences_[item.sequence];
      DECANT_ASSERT(sequence.pass != passes_, "a sequence stands twice in one pass");
      sequence.pass = passes_;
      DECANT_ASSERT(!item.tokens.empty(), "no tokens to evaluate");
      DECANT_ASSERT(item.tokens.size() <= sequence_length() - sequence.rows.size,
                    "more tokens than the sequence length allows");
      for (const token_id token : item.tokens) {
        DECANT_ASSERT(token >= 0 && token < config().vocabulary_size, "token id outside the vocabulary");
      }
    }
  }

  void begin_pass(std::span<const batch_item> items) {
    first_.assign(1, 0);
    std::size_t longest = 0;
    for (const batch_item& item : items) {
      paged_rows& rows = sequences_[item.sequence].rows;
      pages_.make_room(rows, item.tokens.size());
      longest = std::max(longest, rows.size + item.tokens.size());
      first_.push_back(first_.back() + index(item.tokens.size()));
    }
    if (scratch_.size() < index(longest)) scratch_.resize(std::min(2 * index(longest), config().sequence_length));
    pass_.begin(first_.back());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::size_t held = sequences_[items[i].sequence].rows.size;
      for (std::size_t j = 0; j < items[i].tokens.size(); ++j) {
        pass_.embed(first_[i] + index(j), items[i].tokens[j], held + j);
      }
    }
  }

  void attention(std::size_t layer, std::span<const batch_item> items) {
    gathered_pages_.clear();
    pass_.attention(layer, [&](const auto& queries, const auto& keys, const auto& values, auto out) {
      for (std::size_t i = 0; i < items.size(); ++i) {
        const paged_rows& rows = sequences_[items[i].sequence].rows;
        const Eigen::Index first = first_[i], count = first_[i + 1] - first_[i];
        for (Eigen::Index j = 0; j < count; ++j) {
          pages_.write(rows, layer, rows.size + static_cast<std::size_t>(j), as_row(keys.row(first + j)),
                       as_row(values.row(first + j)));
        }
        gather(layer, rows, rows.size + static_cast<std::size_t>(count));
        dense_attention(queries.middleRows(first, count), gathered_, out.middleRows(first, count), scratch_);
      }
    });
  }

  /// Makes gathered_ the rows of one sequence. What it has in common with the item before, in whole pages that nobody
  /// writes, stays where it is.
  void gather(std::size_t layer, const paged_rows& rows, std::size_t length) {
    const auto [mine, other] =
        std::mismatch(rows.pages.begin(), rows.pages.end(), gathered_pages_.begin(), gathered_pages_.end());
    const auto common = static_cast<std::size_t>(mine - rows.pages.begin()) * kv_pages::page_rows;
    pages_.gather(rows, layer, common, length, gathered_);
    gathered_pages_.assign(rows.pages.begin(), rows.pages.end());
  }

  void finish_pass(std::span<const batch_item> items) {
    const Eigen::Index rows = first_.back(), count = index(items.size());
    if (hidden_.rows() < rows) hidden_.resize(rows, config().dim);
    if (last_.rows() < count) last_.resize(count, config().dim);
    if (logits_.rows() < count) logits_.resize(count, config().vocabulary_size);
    pass_.final_norm(hidden_.topRows(rows));
    for (std::size_t i = 0; i < items.size(); ++i) {
      sequences_[items[i].sequence].rows.size += items[i].tokens.size();
      last_.row(index(i)) = hidden_.row(first_[i + 1] - 1);
    }
    pass_.classify(last_.topRows(count), logits_.topRows(count));
  }

  transformer_pass pass_;
  kv_pages pages_;
  std::vector<held_sequence> sequences_;
  std::vector<std::size_t> free_;
  std::size_t passes_ = 0;

  // Results of the last pass, and workspace. The matrices only grow: their first rows are in use.
  std::vector<Eigen::Index> first_{0};  // the first row of each item, and the end
  row_matrix hidden_, logits_;
  row_matrix last_;  // the last hidden state of each item
  Eigen::VectorXf scratch_;
  kv_layer gathered_;  // keys and values of one sequence in the layer that is going on, and their pages
  std::vector<std::uint32_t> gathered_pages_;
};

}  // namespace decant
