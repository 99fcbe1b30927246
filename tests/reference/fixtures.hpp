// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <decant/core/token.hpp>
#include <decant/reference/checkpoint.hpp>

#include "support/catch.hpp"
#include "support/shared.hpp"

#ifndef DECANT_SHARED_DIR
#define DECANT_SHARED_DIR ""
#endif

namespace reference_tests {

using decant::token_id;

/// Numbers in (-scale, scale); the same on every platform, which std::uniform_real_distribution does not promise.
class number_source {
 public:
  explicit number_source(std::uint32_t seed) : engine_(seed) {}

  float next(float scale) { return scale * (static_cast<float>(engine_() >> 8) * 0x1p-23F - 1); }
  std::size_t below(std::size_t bound) { return engine_() % bound; }

  template <class Tensor>
  void fill(Tensor& tensor, Eigen::Index rows, Eigen::Index columns, float scale, float centre = 0) {
    tensor.resize(rows, columns);
    for (Eigen::Index i = 0; i < tensor.size(); ++i) tensor.data()[i] = centre + next(scale);
  }

  std::vector<token_id> tokens(std::size_t count, Eigen::Index vocabulary) {
    std::vector<token_id> ids;
    while (ids.size() < count) ids.push_back(static_cast<token_id>(below(static_cast<std::size_t>(vocabulary))));
    return ids;
  }

 private:
  std::mt19937 engine_;
};

/// Two layers, grouped queries, and no size a multiple of a SIMD width.
inline decant::model_config tiny_config(bool shared_classifier) {
  return {.dim = 18,
          .hidden_dim = 13,
          .n_layers = 2,
          .n_heads = 3,
          .n_kv_heads = 1,
          .vocabulary_size = 29,
          .sequence_length = 40,
          .shared_classifier = shared_classifier};
}

/// Four layers, two query heads for each of two key-value heads.
inline decant::model_config small_config() {
  return {.dim = 32,
          .hidden_dim = 44,
          .n_layers = 4,
          .n_heads = 4,
          .n_kv_heads = 2,
          .vocabulary_size = 31,
          .sequence_length = 64,
          .shared_classifier = true};
}

inline decant::checkpoint random_checkpoint(const decant::model_config& config, std::uint32_t seed) {
  number_source numbers(seed);
  auto weights = std::make_shared<decant::model_weights>();
  numbers.fill(weights->embedding, config.vocabulary_size, config.dim, 1);
  weights->layers.resize(static_cast<std::size_t>(config.n_layers));
  for (auto& layer : weights->layers) {
    numbers.fill(layer.attention_norm, config.dim, 1, 0.3F, 1);
    numbers.fill(layer.query, config.dim, config.dim, 0.6F);
    numbers.fill(layer.key, config.kv_dim(), config.dim, 0.6F);
    numbers.fill(layer.value, config.kv_dim(), config.dim, 0.6F);
    numbers.fill(layer.output, config.dim, config.dim, 0.4F);
    numbers.fill(layer.feed_forward_norm, config.dim, 1, 0.3F, 1);
    numbers.fill(layer.gate, config.hidden_dim, config.dim, 0.6F);
    numbers.fill(layer.down, config.dim, config.hidden_dim, 0.4F);
    numbers.fill(layer.up, config.hidden_dim, config.dim, 0.6F);
  }
  numbers.fill(weights->final_norm, config.dim, 1, 0.3F, 1);
  if (!config.shared_classifier) numbers.fill(weights->classifier, config.vocabulary_size, config.dim, 0.6F);
  return {config, std::move(weights)};
}

/// Appends the bytes of a number or of a tensor. (The tests run on little-endian machines.)
inline void put(std::vector<std::byte>& out, const void* data, std::size_t count) {
  const auto* bytes = static_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + count);
}
inline void put(std::vector<std::byte>& out, std::int32_t number) { put(out, &number, sizeof number); }
inline void put(std::vector<std::byte>& out, float number) { put(out, &number, sizeof number); }

/// A checkpoint as the bytes of a llama2.c file.
inline std::vector<std::byte> file_of(const decant::checkpoint& model) {
  std::vector<std::byte> out;
  const decant::model_config& config = model.config;
  const decant::model_weights& weights = *model.weights;
  for (const Eigen::Index size :
       {config.dim, config.hidden_dim, config.n_layers, config.n_heads, config.n_kv_heads,
        config.shared_classifier ? config.vocabulary_size : -config.vocabulary_size, config.sequence_length}) {
    put(out, static_cast<std::int32_t>(size));
  }
  const auto tensor = [&](const auto& t) { put(out, t.data(), static_cast<std::size_t>(t.size()) * sizeof(float)); };
  const auto in_every_layer = [&](auto member) {
    for (const auto& layer : weights.layers) tensor(layer.*member);
  };
  tensor(weights.embedding);
  in_every_layer(&decant::layer_weights::attention_norm);
  in_every_layer(&decant::layer_weights::query);
  in_every_layer(&decant::layer_weights::key);
  in_every_layer(&decant::layer_weights::value);
  in_every_layer(&decant::layer_weights::output);
  in_every_layer(&decant::layer_weights::feed_forward_norm);
  in_every_layer(&decant::layer_weights::gate);
  in_every_layer(&decant::layer_weights::down);
  in_every_layer(&decant::layer_weights::up);
  tensor(weights.final_norm);
  out.resize(out.size() + static_cast<std::size_t>(config.sequence_length * config.head_size()) * sizeof(float),
             std::byte{0xFF});  // rotation tables: NaN, because nobody may read them
  if (!config.shared_classifier) tensor(weights.classifier);
  return out;
}

/// A file that is gone when the test is over.
class temporary_file {
 public:
  temporary_file(const std::string& name, std::span<const std::byte> content)
      : path_(std::filesystem::temp_directory_path() / name) {
    std::ofstream stream(path_, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  ~temporary_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace reference_tests
