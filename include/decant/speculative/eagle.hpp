// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/speculative/dynamic_tree.hpp>

namespace decant {

/// Rows of a drafter of features, for a dynamic tree. Needs a HiddenRowModel as target, whose hidden states it keeps.
///
/// Where the tokens held end the target's feature is known, of the drafted tokens the drafter's own. The features shown
/// since the last reset are those of the tokens before the one that waits for its pass; earlier tokens are not seen. A
/// text that differs from the last one costs the pairs after the common part. No row before the target was observed.
template <FeatureDrafter F>
class feature_rows {
 public:
  explicit feature_rows(F drafter) : drafter_(std::move(drafter)) {}

  template <HiddenRowModel M>
  void observe(M& model, std::span<const std::size_t> rows) {
    for (const std::size_t row : rows) {
      const auto hidden = std::span(model.hidden(row));
      DECANT_ASSERT(hidden.size() == drafter_.feature_size(), "the target's hidden states have another width");
      features_.insert(features_.end(), hidden.begin(), hidden.end());
    }
  }

  std::span<const float> start(std::span<const token_id> tokens) {
    const std::size_t width = drafter_.feature_size(), pairs = features_.size() / width;
    if (pairs == 0 || pairs >= tokens.size()) return {};
    const auto wanted = tokens.last(pairs);  // each is paired with the feature before it
    const auto differ = std::ranges::mismatch(held_, wanted);
    // The last pair is always made anew: its row begins the tree.
    const std::size_t same = tokens.size() - pairs == begin_ ? static_cast<std::size_t>(differ.in1 - held_.begin()) : 0;
    const std::size_t keep = std::min(same, pairs - 1);
    drafter_.truncate(keep);
    begin_ = tokens.size() - pairs;
    held_.assign(wanted.begin(), wanted.end());
    return drafter_.extend(wanted.subspan(keep), std::span<const float>(features_).subspan(keep * width));
  }

  void grow(std::span<const token_id> nodes, std::span<const std::int32_t> parents) { drafter_.grow(nodes, parents); }
  [[nodiscard]] auto row(std::size_t node) { return drafter_.row(node); }

  void reset() {
    features_.clear();
    held_.clear();
    drafter_.truncate(0);
  }

  [[nodiscard]] const F& drafter() const noexcept { return drafter_; }

 private:
  F drafter_;
  std::vector<float> features_;  // of the tokens before the one that waits
  std::vector<token_id> held_;   // tokens of the drafter's pairs
  std::size_t begin_ = 0;        // where in the text they begin
};

/// EAGLE-2: the dynamic tree over a drafter of the target's features. `eagle drafter(network, {.width = 4})`; see
/// dynamic_tree for what it does, feature_rows for what it knows.
template <FeatureDrafter F>
class eagle : public dynamic_tree<feature_rows<F>> {
 public:
  explicit eagle(F drafter, const dynamic_tree_options& options = {})
      : dynamic_tree<feature_rows<F>>(feature_rows<F>(std::move(drafter)), options) {}
};

}  // namespace decant
