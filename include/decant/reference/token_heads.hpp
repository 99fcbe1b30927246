// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include <decant/core/errors.hpp>
#include <decant/reference/byte_source.hpp>
#include <decant/reference/checkpoint.hpp>
#include <decant/reference/transformer_pass.hpp>
#include <decant/reference/weight_file.hpp>

namespace decant {

/// Medusa heads at rest: from the hidden state that a model's classifier reads, head k makes one from which the same
/// classifier reads the token k places after the next. Each is a stack of residual blocks, x + SiLU(W x).
///
/// A value: copies share the weights.
/// Reference: Cai, Li, Geng, Peng, Lee, Chen, Dao, "Medusa: simple LLM inference acceleration framework with multiple
/// decoding heads", ICML 2024, arXiv 2401.10774. (There every head has a classifier of its own.)
class token_heads {
 public:
  /// From matrices: blocks[k][j] is the j-th block of head k + 1, [dim x dim]. shares[k][i]: how often the (i + 1)-th
  /// most probable token of that head is the one that comes, as measured; may be empty. Misuse: no heads, other shapes.
  explicit token_heads(std::vector<std::vector<row_matrix>> blocks, std::vector<std::vector<double>> shares = {})
      : weights_(std::make_shared<const tensors>(tensors{std::move(blocks), std::move(shares)})) {
    DECANT_ASSERT(!weights_->blocks.empty() && !weights_->blocks[0].empty(), "heads need blocks");
    DECANT_ASSERT(weights_->shares.empty() || weights_->shares.size() == weights_->blocks.size(),
                  "shares are known of all heads or of none");
    for (const auto& head : weights_->blocks) {
      for (const row_matrix& block : head) {
        DECANT_ASSERT(block.rows() == dim() && block.cols() == dim(), "every block is [dim x dim]");
      }
    }
  }

  /// Reads a file of heads: "dchd", then little-endian int32 (version 1, dim, heads, blocks a head, picks), then
  /// float32: shares [heads x picks], and for each head its blocks [dim x dim]. Nothing is allocated on the word of the
  /// header. Errors: bad_file; `where` names the field or tensor, "header", "version" or "size".
  static result<token_heads> read(std::span<const std::byte> bytes, const checkpoint_options& options = {}) {
    detail::memory_source source(bytes);
    return read_from(source, options);
  }

  /// The same from a file. Errors: also not_found.
  static result<token_heads> load(const std::filesystem::path& path, const checkpoint_options& options = {}) {
    auto source = detail::open_file(path);
    if (!source) return source.error();
    return read_from(*source, options);
  }

  [[nodiscard]] std::size_t count() const noexcept { return weights_->blocks.size(); }
  [[nodiscard]] Eigen::Index dim() const noexcept { return weights_->blocks[0][0].rows(); }

  /// Shares by head and pick: what tree_shape::likely takes.
  [[nodiscard]] const std::vector<std::vector<double>>& shares() const noexcept { return weights_->shares; }
  [[nodiscard]] std::span<const row_matrix> blocks(std::size_t head) const {
    DECANT_ASSERT(head >= 1 && head <= count(), "heads are numbered from 1");
    return weights_->blocks[head - 1];
  }

  /// The state that head `head` (from 1) makes of a hidden state: [dim] to [dim]. One product with each block;
  /// allocates one row.
  void apply(std::size_t head, std::span<const float> hidden, std::span<float> out) const {
    DECANT_ASSERT(static_cast<Eigen::Index>(hidden.size()) == dim() && out.size() == hidden.size(),
                  "a hidden state has dim numbers");
    Eigen::Map<Eigen::RowVectorXf> state(out.data(), dim());
    state = Eigen::Map<const Eigen::RowVectorXf>(hidden.data(), dim());
    row_matrix gate(1, dim());
    for (const row_matrix& block : blocks(head)) {
      gate.setZero();
      detail::add_product(state, block, gate);
      state.array() += gate.array() / (1 + (-gate.array()).exp());
    }
  }

 private:
  struct tensors {
    std::vector<std::vector<row_matrix>> blocks;
    std::vector<std::vector<double>> shares;
  };

  template <class Source>
  static result<token_heads> read_from(Source& source, const checkpoint_options& options) {
    const auto sizes = detail::read_sizes<4>(source, "dchd", {"dim", "heads", "blocks", "picks"});
    if (!sizes) return sizes.error();
    const auto [dim, heads, depth, picks] = *sizes;
    constexpr Eigen::Index width = sizeof(float);
    detail::size_sum bytes;
    bytes.add({width, heads, picks});
    bytes.add({width, heads, depth, dim, dim});
    if (auto fault = detail::size_fault(source, bytes.total())) return *std::move(fault);

    detail::tensor_reader reader(source, options);
    row_matrix table;
    reader.read("shares", table, heads, picks);
    std::vector<std::vector<row_matrix>> blocks(static_cast<std::size_t>(heads));
    for (auto& head : blocks) {
      head.resize(static_cast<std::size_t>(depth));
      for (row_matrix& block : head) reader.read("block", block, dim, dim);
    }
    if (const auto& failure = reader.failure()) return *failure;
    std::vector<std::vector<double>> shares;
    shares.reserve(static_cast<std::size_t>(heads));
    for (Eigen::Index head = 0; head < heads; ++head) {
      shares.emplace_back(table.row(head).begin(), table.row(head).end());
    }
    return token_heads(std::move(blocks), std::move(shares));
  }

  std::shared_ptr<const tensors> weights_;
};

}  // namespace decant
