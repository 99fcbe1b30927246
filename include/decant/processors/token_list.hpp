// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <decant/core/candidates.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// The smallest and the largest of the ids that a policy was given: enough to find misuse in O(1) a row, also by ids
/// whose turn has not come yet.
class id_range {
 public:
  void include(token_id id) {
    lowest_ = std::min(lowest_, id);
    highest_ = std::max(highest_, id);
  }
  void include(std::span<const token_id> ids) {
    for (const token_id id : ids) include(id);
  }

  /// Misuse: an id outside the row's vocabulary.
  void check(const candidates& row) const {
    DECANT_ASSERT(lowest_ >= 0 && static_cast<std::size_t>(highest_) < row.vocabulary_size(),
                  "token id outside the vocabulary");
  }

 private:
  token_id lowest_ = 0, highest_ = 0;
};

namespace detail {

/// "name(3 tokens)": lists may be long, so a description counts them.
inline std::string counted_text(std::string_view name, std::size_t count, std::string_view what = "token") {
  return call_text(name) + "(" + std::to_string(count) + " " + std::string(what) + (count == 1 ? ")" : "s)");
}

/// "name(3, revive = true)" of "name(3)": a description tells options that are not at their default.
inline std::string option_text(std::string text, bool given, std::string_view option) {
  if (!given) return text;
  if (!text.ends_with(')')) return text + "(" + std::string(option) + ")";
  text.pop_back();
  return text + ", " + std::string(option) + ")";
}

}  // namespace detail

}  // namespace decant
