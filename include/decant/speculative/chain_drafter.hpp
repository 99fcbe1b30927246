// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/chain/steps.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/core/token.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/sum_tree.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/residual.hpp>

namespace decant::detail {

/// The largest probability of a row, 0 of a bad one.
inline double top_probability(candidates& row) {
  const token_id best = row.argmax();
  return best == no_token ? 0 : math::exp(row.log_probability(best));
}

/// Whether a law's largest probability is at least that.
inline bool is_sure(const law& from, double least) { return largest_weight(from) >= math::product(least, from.total); }

/// Writes a chain whose tokens are drawn by a decoder of the drafter's own, from rows that come one at a time. A
/// decoder that takes the argmax makes a deterministic proposal, any other one of draws with their laws.
template <class D>
class chain_drafter {
 public:
  explicit chain_drafter(D decoder) : decoder_(std::move(decoder)) {
    DECANT_ASSERT(!decoder_.keeps_state(), "a decoder with state cannot draft: nobody tells it what was accepted");
  }

  /// `next(history)` returns the row that follows a text, empty to end the chain; the text grows by the tokens drafted.
  /// The chain also ends where the largest probability of a row is below `threshold`, on a bad row, and after a stop
  /// token.
  template <class Next>
  void run(const draft_request& request, draft& out, double threshold, Next next) {
    const bool deterministic = takes_argmax(decoder_.sampler());
    out.set_mode(deterministic ? proposal::deterministic : proposal::with_replacement);
    history_.assign(request.context.tokens.begin(), request.context.tokens.end());
    std::int32_t node = no_parent;
    for (std::size_t depth = 0; depth < std::min(request.max_depth, request.max_nodes); ++depth) {
      const std::span<const float> row = next(std::span<const token_id>(history_));
      if (row.empty() || !sure(row, threshold)) return;
      const step_context context = context_after(history_, request.context.prompt_size, request.context.draws);
      law& from = out.children_law(node);
      decoder_.law_of(row, context, from);
      if (from.empty()) return;
      const auto index = static_cast<std::uint32_t>(out.size());
      const token_id token = draw(from, request.draws.at(history_.size()), purpose::draft, index, sums_);
      if (deterministic) from.clear();
      node = out.add(token, node);
      history_.push_back(token);
      if (stops(request, token)) return;
    }
  }

 private:
  bool sure(std::span<const float> row, double threshold) {
    if (!(threshold > 0)) return true;
    const bound_row bound(workspace_.row, row);
    return top_probability(workspace_.row) >= threshold;
  }

  D decoder_;
  std::vector<token_id> history_;
  row_workspace workspace_;
  math::sum_tree sums_;
};

}  // namespace decant::detail
