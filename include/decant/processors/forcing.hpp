// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <span>

#include <decant/core/candidates.hpp>
#include <decant/core/token.hpp>

namespace decant {

struct forcing_options {
  /// Hugging Face's reading: brings forced tokens back although they were gone, undoing bans, and makes a bad row good.
  bool revive = false;
};

/// Leaves only the given tokens, each with logit 0: what forced_bos and forced_eos do when their time has come.
///
/// A forced token that is gone stays gone, and if all of them are, the row is empty; unless `options.revive`, which
/// rewrites the row. What the logits were does not matter, so a NaN is no obstacle in a row that has not been read.
inline void force(candidates& row, std::span<const token_id> ids, forcing_options options = {}) {
  row.allow(ids);
  if (options.revive) {
    row.rewrite([&](token_id id, float) { return std::ranges::find(ids, id) != ids.end() ? 0.0F : opaque_gone(); });
  } else {
    for (const token_id id : ids) row.set(id, 0);
  }
}

}  // namespace decant
