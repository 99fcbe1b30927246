// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include <decant/core/errors.hpp>
#include <decant/reference/byte_source.hpp>

namespace decant {

/// A matrix whose rows are contiguous: one row a position, an output feature or a token.
using row_matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The sizes of a Llama-type model.
struct model_config {
  Eigen::Index dim = 0;         ///< width of the residual stream
  Eigen::Index hidden_dim = 0;  ///< width inside the feed-forward block
  Eigen::Index n_layers = 0;
  Eigen::Index n_heads = 0;     ///< query heads
  Eigen::Index n_kv_heads = 0;  ///< key and value heads; each serves n_heads / n_kv_heads query heads
  Eigen::Index vocabulary_size = 0;
  Eigen::Index sequence_length = 0;  ///< the most tokens that the model can hold
  bool shared_classifier = true;     ///< whether the token embedding is also the classifier

  [[nodiscard]] Eigen::Index head_size() const noexcept { return dim / n_heads; }
  [[nodiscard]] Eigen::Index kv_dim() const noexcept { return head_size() * n_kv_heads; }

  bool operator==(const model_config&) const = default;
};

/// The weights of one layer. Matrices are [outputs x inputs].
struct layer_weights {
  Eigen::VectorXf attention_norm;     ///< [dim]
  row_matrix query;                   ///< [dim x dim]
  row_matrix key;                     ///< [kv_dim x dim]
  row_matrix value;                   ///< [kv_dim x dim]
  row_matrix output;                  ///< [dim x dim]
  Eigen::VectorXf feed_forward_norm;  ///< [dim]
  row_matrix gate;                    ///< [hidden_dim x dim]
  row_matrix down;                    ///< [dim x hidden_dim]
  row_matrix up;                      ///< [hidden_dim x dim]
};

/// All weights of a model.
struct model_weights {
  row_matrix embedding;  ///< [vocabulary_size x dim]
  std::vector<layer_weights> layers;
  Eigen::VectorXf final_norm;  ///< [dim]
  row_matrix classifier;       ///< [vocabulary_size x dim]; empty when the embedding serves

  /// The matrix that turns a final hidden state into logits.
  [[nodiscard]] const row_matrix& head() const noexcept { return classifier.size() > 0 ? classifier : embedding; }
};

/// A model at rest: sizes and weights. Copies share the weights, which nobody changes.
struct checkpoint {
  model_config config;
  std::shared_ptr<const model_weights> weights;
};

struct checkpoint_options {
  /// Refuse a file with a NaN or an infinity among its weights. One more look at every weight.
  bool require_finite = true;
};

/// The first rule that the sizes break, if any: all positive, dim a multiple of n_heads, dim / n_heads even (rotary
/// embedding turns pairs), n_heads a multiple of n_kv_heads. The error names the field.
inline std::optional<error> config_fault(const model_config& config) {
  const auto fault = [](const char* field, const std::string& message) {
    return error{error_code::bad_file, field, message};
  };
  const std::pair<const char*, Eigen::Index> counts[] = {
      {"dim", config.dim},
      {"hidden_dim", config.hidden_dim},
      {"n_layers", config.n_layers},
      {"n_heads", config.n_heads},
      {"n_kv_heads", config.n_kv_heads},
      {"vocabulary_size", config.vocabulary_size},
      {"sequence_length", config.sequence_length},
  };
  for (const auto& [field, value] : counts) {
    if (value <= 0) return fault(field, std::to_string(value) + " must be positive");
  }
  if (config.dim % config.n_heads != 0) {
    return fault("dim",
                 std::to_string(config.dim) + " must be a multiple of n_heads = " + std::to_string(config.n_heads));
  }
  if (config.head_size() % 2 != 0) {
    return fault("dim",
                 std::to_string(config.dim) + " / n_heads must be even, and is " + std::to_string(config.head_size()));
  }
  if (config.n_heads % config.n_kv_heads != 0) {
    return fault("n_kv_heads",
                 std::to_string(config.n_kv_heads) + " must divide n_heads = " + std::to_string(config.n_heads));
  }
  return std::nullopt;
}

namespace detail {

/// Adds up products of sizes that a file states, and notices when 64 bits are not enough.
class size_sum {
 public:
  void add(std::initializer_list<Eigen::Index> factors) {
    std::uint64_t product = 1;
    for (const Eigen::Index factor : factors) {
      const auto size = static_cast<std::uint64_t>(factor);
      overflow_ = overflow_ || (size != 0 && product > limit / size);
      product *= size;
    }
    overflow_ = overflow_ || product > limit - total_;
    total_ += product;
  }

  [[nodiscard]] std::optional<std::uint64_t> total() const { return overflow_ ? std::nullopt : std::optional(total_); }

 private:
  static constexpr std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t total_ = 0;
  bool overflow_ = false;
};

/// Bytes of a version 0 checkpoint after its header, or nothing when 64 bits cannot count them.
inline std::optional<std::uint64_t> weight_bytes(const model_config& config) {
  constexpr Eigen::Index width = sizeof(float);
  const Eigen::Index layers = config.n_layers;
  size_sum bytes;
  bytes.add({width, config.vocabulary_size, config.dim});
  bytes.add({width, layers, config.dim, 2});              // both norms
  bytes.add({width, layers, config.dim, config.dim, 2});  // query, output
  bytes.add({width, layers, config.kv_dim(), config.dim, 2});
  bytes.add({width, layers, config.hidden_dim, config.dim, 3});
  bytes.add({width, config.dim});
  bytes.add({width, config.sequence_length, config.head_size()});  // legacy rotation tables
  if (!config.shared_classifier) bytes.add({width, config.vocabulary_size, config.dim});
  return bytes.total();
}

/// Reads tensors one after the other. After the first failure it does nothing, so that a caller can ask once.
template <class Source>
class tensor_reader {
 public:
  tensor_reader(Source& source, const checkpoint_options& options) : source_(source), options_(options) {}

  template <class Tensor>
  void read(const char* name, Tensor& tensor, Eigen::Index rows, Eigen::Index columns = 1) {
    if (failure_) return;
    tensor.resize(rows, columns);
    const std::span<float> numbers(tensor.data(), static_cast<std::size_t>(tensor.size()));
    if (!read_numbers(source_, numbers)) {
      failure_ = error{error_code::bad_file, name, "cannot be read"};
    } else if (options_.require_finite && !std::all_of(numbers.begin(), numbers.end(), has_finite_bits)) {
      failure_ = error{error_code::bad_file, name, "holds a NaN or an infinity"};
    }
  }

  void skip(const char* name, Eigen::Index rows, Eigen::Index columns) {
    if (failure_) return;
    const auto bytes = static_cast<std::uint64_t>(rows * columns) * sizeof(float);
    if (!source_.skip(bytes)) failure_ = error{error_code::bad_file, name, "cannot be read"};
  }

  [[nodiscard]] const std::optional<error>& failure() const noexcept { return failure_; }

 private:
  Source& source_;
  checkpoint_options options_;
  std::optional<error> failure_;
};

template <class Source>
result<model_config> read_config(Source& source) {
  std::array<std::int32_t, 7> header{};
  if (source.remaining() < sizeof header) {
    return error{error_code::bad_file, "header",
                 std::to_string(source.remaining()) + " bytes, must have " + std::to_string(sizeof header)};
  }
  if (!read_numbers(source, std::span<std::int32_t>(header))) {
    return error{error_code::bad_file, "header", "cannot be read"};
  }
  const Eigen::Index vocabulary = header[5];
  model_config config{
      .dim = header[0],
      .hidden_dim = header[1],
      .n_layers = header[2],
      .n_heads = header[3],
      .n_kv_heads = header[4],
      .vocabulary_size = vocabulary < 0 ? -vocabulary : vocabulary,
      .sequence_length = header[6],
      .shared_classifier = vocabulary > 0,
  };
  if (auto fault = config_fault(config)) return *std::move(fault);
  return config;
}

template <class Source>
result<checkpoint> read_checkpoint_from(Source& source, const checkpoint_options& options) {
  auto header = read_config(source);
  if (!header) return header.error();
  const model_config config = *header;

  // No size of the header is believed, and nothing allocated for it, before the bytes are known to be there.
  const auto needed = weight_bytes(config);
  if (!needed) return error{error_code::bad_file, "header", "its sizes multiply to more than 64 bits can count"};
  if (*needed != source.remaining()) {
    return error{error_code::bad_file, "size",
                 std::to_string(source.remaining()) + " bytes after the header, must be " + std::to_string(*needed) +
                     " by its sizes"};
  }

  auto weights = std::make_shared<model_weights>();
  weights->layers.resize(static_cast<std::size_t>(config.n_layers));
  auto& layers = weights->layers;
  tensor_reader reader(source, options);
  reader.read("embedding", weights->embedding, config.vocabulary_size, config.dim);
  for (auto& layer : layers) reader.read("attention_norm", layer.attention_norm, config.dim);
  for (auto& layer : layers) reader.read("query", layer.query, config.dim, config.dim);
  for (auto& layer : layers) reader.read("key", layer.key, config.kv_dim(), config.dim);
  for (auto& layer : layers) reader.read("value", layer.value, config.kv_dim(), config.dim);
  for (auto& layer : layers) reader.read("output", layer.output, config.dim, config.dim);
  for (auto& layer : layers) reader.read("feed_forward_norm", layer.feed_forward_norm, config.dim);
  for (auto& layer : layers) reader.read("gate", layer.gate, config.hidden_dim, config.dim);
  for (auto& layer : layers) reader.read("down", layer.down, config.dim, config.hidden_dim);
  for (auto& layer : layers) reader.read("up", layer.up, config.hidden_dim, config.dim);
  reader.read("final_norm", weights->final_norm, config.dim);
  reader.skip("rotation", config.sequence_length, config.head_size());
  if (!config.shared_classifier) {
    reader.read("classifier", weights->classifier, config.vocabulary_size, config.dim);
  }
  if (const auto& failure = reader.failure()) return *failure;
  return checkpoint{config, std::move(weights)};
}

}  // namespace detail

/// Reads a checkpoint in the llama2.c format, version 0: seven little-endian int32 (dim, hidden_dim, n_layers,
/// n_heads, n_kv_heads, vocabulary_size, sequence_length), then float32 weights. A negative vocabulary size says that
/// a classifier of its own follows. The rotation tables of old files are skipped: they follow from the sizes.
///
/// Time and memory: one copy of the weights. Nothing is allocated on the word of the header: its sizes must first
/// agree, to the byte, with what is there.
/// Errors: bad_file; `where` names the field or tensor, "header" or "size", the message gives value and rule.
inline result<checkpoint> read_checkpoint(std::span<const std::byte> bytes, const checkpoint_options& options = {}) {
  detail::memory_source source(bytes);
  return detail::read_checkpoint_from(source, options);
}

/// The same from a file. Errors: also not_found, and bad_file for what is not a readable regular file; `where` is then
/// the path.
inline result<checkpoint> read_checkpoint(const std::filesystem::path& path, const checkpoint_options& options = {}) {
  auto source = detail::open_file(path);
  if (!source) return source.error();
  return detail::read_checkpoint_from(*source, options);
}

}  // namespace decant
