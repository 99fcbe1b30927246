// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/pass_rows.hpp>

namespace decant {

/// Jacobi decoding: drafts what the target itself guessed for the next places in the pass before.
///
/// Effect: holds guesses for the next `window` tokens. The target scores them all in one pass; what it would say at
/// each place, given the guesses before it, are the guesses of the next round. Under greedy verification this is the
/// fixed-point iteration y_i <- argmax p(. | y_1 .. y_(i-1)) with the part that has converged taken at once: each pass
/// decides at least one token. The first guesses are tokens of the text; any would do. Deterministic.
/// Complexity: one argmax a guess; nothing allocates in steady state. Errors: parameter_error for window = 0.
/// Reference: Santilli et al. 2023, "Accelerating transformer inference for translation via parallel decoding", arXiv
/// 2305.10427.
class jacobi : public made_or_error<jacobi> {
 public:
  static constexpr std::string_view name = "jacobi";

  explicit jacobi(std::size_t window = 8) : window_(window) { detail::raise_if(validate(window)); }

  static std::optional<parameter_fault> validate(std::size_t window = 8) {
    if (window == 0) return parameter_fault{name, "window", 0, "must be at least 1"};
    return {};
  }

  void propose(const draft_request& request, draft& out) {
    out.set_mode(proposal::deterministic);
    const auto tokens = request.context.tokens;
    if (tokens.empty()) return;
    for (std::size_t i = guesses_.size(); i < window_; ++i) guesses_.push_back(tokens[i % tokens.size()]);
    std::int32_t last = no_parent;
    for (std::size_t i = 0; i < std::min({window_, request.max_depth, request.max_nodes}); ++i) {
      last = out.add(guesses_[i], last);
    }
    drafted_ = out.size();
  }

  template <Model M>
    requires requires(M& model) { std::span(model.row(0)); }
  void observe(M& model, std::span<const std::size_t> rows) {
    if (drafted_ > 0 && !rows.empty()) {
      const detail::pass_rows<M> pass(model, rows);
      // After the accepted tokens and the one decided by the pass itself.
      for (std::size_t node = pass.accepted(); node < drafted_; ++node) {
        const token_id guess = pass.argmax(node, workspace_);
        if (guess != no_token) guesses_[node] = guess;
      }
      guesses_.erase(guesses_.begin(), guesses_.begin() + static_cast<std::ptrdiff_t>(pass.accepted()));
    }
    drafted_ = 0;
  }

  void reset() {
    guesses_.clear();
    drafted_ = 0;
  }

  [[nodiscard]] std::string describe() const { return detail::call_text(name, {static_cast<double>(window_)}); }

 private:
  std::size_t window_;
  std::vector<token_id> guesses_;  // for the places after the text
  std::size_t drafted_ = 0;        // tokens of the draft that is out
  detail::row_workspace workspace_;
};

}  // namespace decant
