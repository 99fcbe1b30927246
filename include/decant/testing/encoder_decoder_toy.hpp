// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>

namespace decant::testing {

/// An EncoderDecoderModel small enough to enumerate: word for word, it says what the source says where it looks.
///
/// Encoding turns every source token into a random distribution over the output vocabulary. The decoder looks near the
/// place that it has come to, drawn aside by what it said last, and mixes the distributions of what it sees; it may so
/// look twice at one word and never at another, which is what coverage is for. Everything is a pure function of the
/// seed, the source and the text; `encode_source`, `attention_after` and `row_after` are those functions. Counts what
/// it encodes. Misuse: an empty source, a sequence started without one, and what is misuse of a BatchModel.
class encoder_decoder_toy {
 public:
  /// One distribution for each source position.
  using encoding = std::vector<std::vector<double>>;

  encoder_decoder_toy(std::size_t vocabulary_size, std::uint64_t seed)
      : vocabulary_size_(vocabulary_size), seed_(seed) {}

  // ---- the model as functions

  [[nodiscard]] encoding encode_source(std::span<const token_id> source) const {
    encoding out;
    for (const token_id token : source) {
      const draw_stream draws(seed_, static_cast<std::uint64_t>(token));
      std::vector<double> weights;
      double total = 0;
      for (std::size_t v = 0; v < vocabulary_size_; ++v) {
        weights.push_back(std::exp(1.5 * draws.gumbel(purpose::user, static_cast<token_id>(v))));
        total += weights.back();
      }
      for (double& w : weights) w /= total;
      out.push_back(std::move(weights));
    }
    return out;
  }

  /// The weights of `positions` source positions, when `text` (the first token of which is no output) has been said.
  [[nodiscard]] std::vector<float> attention_after(std::size_t positions, std::span<const token_id> text) const {
    const draw_stream draws(seed_ + 1, static_cast<std::uint64_t>(text.back()));
    std::vector<double> weights;
    double total = 0;
    for (std::size_t i = 0; i < positions; ++i) {
      const double distance = std::abs(static_cast<double>(i) + 1 - static_cast<double>(text.size()));
      weights.push_back(std::exp(draws.gumbel(purpose::user, static_cast<token_id>(i)) - 1.2 * distance));
      total += weights.back();
    }
    std::vector<float> out;
    out.reserve(positions);
    for (const double w : weights) out.push_back(static_cast<float>(w / total));
    return out;
  }

  [[nodiscard]] std::vector<float> row_after(const encoding& source, std::span<const token_id> text) const {
    const std::vector<float> attention = attention_after(source.size(), text);
    std::vector<float> row;
    for (std::size_t v = 0; v < vocabulary_size_; ++v) {
      double p = 0;
      for (std::size_t i = 0; i < source.size(); ++i) p += static_cast<double>(attention[i]) * source[i][v];
      row.push_back(static_cast<float>(std::log(p)));
    }
    return row;
  }

  // ---- the model as a model

  void encode(std::span<const token_id> source) {
    DECANT_ASSERT(!source.empty(), "a source needs a token");
    ++encodings_;
    source_ = std::make_shared<const encoding>(encode_source(source));
  }
  /// How many sources have been encoded.
  [[nodiscard]] std::size_t encodings() const { return encodings_; }

  [[nodiscard]] std::size_t start() {
    DECANT_ASSERT(source_ != nullptr, "a sequence needs a source: call encode first");
    return add({{}, source_});
  }
  [[nodiscard]] std::size_t fork(std::size_t sequence) { return add(held(sequence)); }
  void drop(std::size_t sequence) { held(sequence).source = nullptr; }

  void evaluate(std::span<const batch_item> items) {
    rows_.clear();
    attention_.clear();
    for (const batch_item& item : items) {
      DECANT_ASSERT(!item.tokens.empty(), "evaluate needs a token");
      decoding& sequence = held(item.sequence);
      sequence.tokens.insert(sequence.tokens.end(), item.tokens.begin(), item.tokens.end());
      rows_.push_back(row_after(*sequence.source, sequence.tokens));
      attention_.push_back(attention_after(sequence.source->size(), sequence.tokens));
    }
  }

  [[nodiscard]] std::span<const float> row(std::size_t i) const {
    DECANT_ASSERT(i < rows_.size(), "row outside the last pass");
    return rows_[i];
  }
  [[nodiscard]] std::span<const float> cross_attention(std::size_t i) const {
    DECANT_ASSERT(i < attention_.size(), "attention outside the last pass");
    return attention_[i];
  }

  void truncate(std::size_t sequence, std::size_t count) {
    DECANT_ASSERT(count <= size(sequence), "truncate cannot grow");
    held(sequence).tokens.resize(count);
  }
  [[nodiscard]] std::size_t size(std::size_t sequence) const {
    return const_cast<encoder_decoder_toy&>(*this).held(sequence).tokens.size();
  }
  [[nodiscard]] std::size_t vocabulary_size() const { return vocabulary_size_; }

 private:
  struct decoding {
    std::vector<token_id> tokens;
    std::shared_ptr<const encoding> source;  // null: not live
  };

  std::size_t add(decoding sequence) {
    sequences_.push_back(std::move(sequence));
    return sequences_.size() - 1;
  }

  decoding& held(std::size_t sequence) {
    DECANT_ASSERT(sequence < sequences_.size() && sequences_[sequence].source != nullptr, "no such sequence");
    return sequences_[sequence];
  }

  std::size_t vocabulary_size_;
  std::uint64_t seed_;
  std::shared_ptr<const encoding> source_;
  std::size_t encodings_ = 0;
  std::vector<decoding> sequences_;
  std::vector<std::vector<float>> rows_, attention_;
};

}  // namespace decant::testing
