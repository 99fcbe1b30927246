// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <decant/core/candidates.hpp>
#include <decant/processors/ties.hpp>

namespace decant::detail {

/// As keep_within's `least`: the count alone decides.
inline constexpr double above_every_token = 1;

/// Keeps the tokens for which logit - max >= `least`, and the largest `min_keep` (at least one) in any case.
///
/// What keep_above does, with the threshold counted from the maximum: however high the logits stand, after a low
/// temperature or a shift, nothing is rounded away before it is compared. `at_border` is for the tokens that only
/// min_keep lets stay.
inline void keep_within(candidates& row, double least, std::size_t min_keep, ties at_border = ties::lower_id) {
  if (row.status() != row_status::ok) return;
  if (at_border == ties::keep && row.count_near_max(least) < std::max<std::size_t>(min_keep, 1)) {
    const token_id last = row.descending(std::max<std::size_t>(min_keep, 1)).back().id;
    row.visit_below_max([&](token_id id, double below) { least = id == last ? below : least; });
  }
  row.keep_near_max(least, min_keep);
}

/// The same for tokens that reach a threshold of probability.
inline void keep_probable(candidates& row, const probability_threshold& threshold, std::size_t min_keep,
                          ties at_border = ties::lower_id) {
  min_keep = std::max<std::size_t>(min_keep, 1);
  if (at_border == ties::keep && row.count_probable(threshold) < min_keep) {
    return keep_within(row, above_every_token, min_keep, ties::keep);
  }
  row.keep_probable(threshold, min_keep);
}

}  // namespace decant::detail
