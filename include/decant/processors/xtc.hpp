// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// Exclude top choices: now and then removes all tokens above a threshold but the least probable of them.
///
/// Effect: with the given probability a step, of the tokens with probability >= threshold all but the last in
/// descending order are banned; with fewer than two such tokens nothing happens. Protected ids (newline, end) are never
/// removed. Tosses one coin a step, the same for all rows of a speculative round. Belongs after truncations, before
/// temperature. One pass and a selection, sparse edits.
/// Off: probability = 0, or threshold > 0.5, where at most one token can qualify. Errors: parameter_error for a
/// probability outside [0, 1], a NaN or negative threshold.
/// Reference: p-e-w, "Exclude Top Choices (XTC)", text-generation-webui pull request 6335, 2024.
class xtc : public made_or_error<xtc> {
 public:
  static constexpr std::string_view name = "xtc";

  /// Leaves at least `min_keep` tokens (at least one), or else does nothing.
  explicit xtc(double probability, double threshold = 0.1, std::vector<token_id> protected_ids = {},
               std::size_t min_keep = 1)
      : probability_(probability), threshold_(threshold), protected_(std::move(protected_ids)), min_keep_(min_keep) {
    detail::raise_if(validate(probability, threshold));
  }

  static std::optional<parameter_fault> validate(double probability, double threshold = 0.1,
                                                 const std::vector<token_id>& = {}, std::size_t = 1) {
    if (!(probability >= 0 && probability <= 1)) {
      return parameter_fault{name, "probability", probability, "must lie in [0, 1]"};
    }
    if (!(threshold >= 0)) return parameter_fault{name, "threshold", threshold, "must be a number >= 0"};
    return {};
  }

  void operator()(candidates& row, const step_context& context) {
    if (off() || !context.draws.chance(probability_, purpose::coin)) return;
    const std::size_t qualified = row.count_probable({math::log(threshold_)});
    if (qualified < 2) return;
    removed_.clear();
    for (const entry& e : row.descending(qualified).first(qualified - 1)) {
      if (std::find(protected_.begin(), protected_.end(), e.id) == protected_.end()) removed_.push_back(e.id);
    }
    if (row.size() - removed_.size() < min_keep_) return;
    row.ban(removed_);
  }

  [[nodiscard]] bool off() const { return probability_ == 0 || threshold_ > 0.5; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {probability_, threshold_}); }

 private:
  double probability_, threshold_;
  std::vector<token_id> protected_;
  std::size_t min_keep_;
  std::vector<token_id> removed_;
};

}  // namespace decant
