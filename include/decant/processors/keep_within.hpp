// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <decant/core/candidates.hpp>
#include <decant/processors/ties.hpp>

namespace decant::detail {

/// Keeps the tokens for which logit - max >= `least`, and the largest `min_keep` (at least one) in any case.
///
/// What keep_above does, with the threshold counted from the maximum: however high the logits stand, after a low
/// temperature or a shift, nothing is rounded away before it is compared. `at_border` is for the tokens that only
/// min_keep lets stay. Two passes and a cut.
inline void keep_within(candidates& row, double least, std::size_t min_keep, ties at_border = ties::lower_id) {
  if (row.status() != row_status::ok) return;
  std::size_t count = 0;
  double lowest_kept = 0, highest_cut = 0;
  const auto split = [&] {
    count = 0;
    lowest_kept = 0;
    highest_cut = -0x1p1000;
    row.visit_below_max([&](token_id, double below) {
      if (below >= least) {
        ++count;
        lowest_kept = std::min(lowest_kept, below);
      } else {
        highest_cut = std::max(highest_cut, below);
      }
    });
  };
  split();
  if (count < std::max<std::size_t>(min_keep, 1)) {
    if (at_border == ties::lower_id) return row.keep_largest(min_keep);
    const token_id last = row.descending(std::max<std::size_t>(min_keep, 1)).back().id;
    row.visit_below_max([&](token_id id, double below) { least = id == last ? below : least; });
    split();
  }
  if (count == row.size()) return;
  // Half way between the two, so that rounding decides nothing; unless they are too close for a double up there.
  const double top = row.max(), gap = lowest_kept - highest_cut;
  if (gap > 1e-12 * (std::abs(top) - highest_cut)) {
    row.keep_above(top + (lowest_kept + highest_cut) / 2, count);
  } else {
    row.keep_largest(count);
  }
}

}  // namespace decant::detail
