// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <decant/chain/decoder.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/token.hpp>
#include <decant/speculative/chain_drafter.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/head_rows.hpp>

namespace decant {

/// Blockwise parallel decoding: predicts a block with one head a place, verifies it in one pass, accepts its longest
/// prefix that the target would have written itself. Needs a HeadedModel as target.
///
/// Effect: predicts; a chain of the argmax of each head (ties by lower id), as many as there are and are asked for. The
/// driver's greedy rule verifies and accepts, which is the exact criterion of the paper: the output is the target's
/// greedy one. (Its relaxed criteria, which are not lossless, are relaxed_verification.) The pass that verifies a block
/// also shows the hidden state from which the next one is predicted, so m blocks take m + 1 passes. Proposals are
/// deterministic: medusa with tree_shape::chain. Complexity: each head once a round. Reference: Stern, Shazeer,
/// Uszkoreit, "Blockwise parallel decoding for deep autoregressive models", NeurIPS 2018, arXiv 1811.03115.
class blockwise_heads {
 public:
  template <HeadedModel M>
  void observe(M& model, std::span<const std::size_t> rows) {
    rows_.observe(model, rows);
  }

  void propose(const draft_request& request, draft& out) {
    out.set_mode(proposal::deterministic);
    std::int32_t node = no_parent;
    for (std::size_t ahead = 1; ahead <= std::min(request.max_depth, request.max_nodes); ++ahead) {
      const auto row = rows_.row(ahead);
      if (row.empty()) return;
      const detail::bound_row bound(workspace_.row, row);
      const token_id token = workspace_.row.argmax();
      if (token == no_token || detail::top_probability(workspace_.row) < request.min_confidence) return;
      node = out.add(token, node);
      if (detail::stops(request, token)) return;
    }
  }

  void reset() noexcept { rows_.reset(); }

 private:
  detail::head_rows rows_;
  detail::row_workspace workspace_;
};

}  // namespace decant
