// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>

#include <decant/chain/decoder.hpp>
#include <decant/core/token.hpp>
#include <decant/generate/output.hpp>

namespace decant::detail {

/// What the target found for the nodes of a draft: for drafters that guess again from the same pass.
///
/// The pass of a round scores the last token of the text and then the draft's nodes: node i has row i + 1. Rows of the
/// nodes that were not accepted are there as well.
template <class M>
class pass_rows {
 public:
  /// `rows` as a drafter is shown them: of the last token and of the nodes that were accepted.
  pass_rows(M& model, std::span<const std::size_t> rows) : model_(&model), accepted_(rows.size() - 1) {}

  /// How many tokens of the draft were accepted.
  [[nodiscard]] std::size_t accepted() const { return accepted_; }

  /// The token with the largest logit after a node, no_token on a bad row.
  [[nodiscard]] token_id argmax(std::size_t node, row_workspace& workspace) const {
    const bound_row bound(workspace.row, without_padding(*model_, model_->row(node + 1)));
    return workspace.row.argmax();
  }

 private:
  M* model_;
  std::size_t accepted_;
};

}  // namespace decant::detail
