// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <decant/core/token.hpp>
#include <decant/speculative/retokeniser.hpp>

// A target and a draft model that cut the same text in different ways.

namespace two_alphabets {

using decant::token_id;
using ids = std::vector<token_id>;

inline const std::vector<std::string> target_names{"a", "b", "ba"};
inline const std::vector<std::string> draft_names{"ab", "b", "a"};

/// The longest token that fits, from the left.
inline ids split(std::string_view text, const std::vector<std::string>& names) {
  ids tokens;
  while (!text.empty()) {
    std::size_t best = names.size();
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (text.starts_with(names[i]) && (best == names.size() || names[i].size() > names[best].size())) best = i;
    }
    tokens.push_back(static_cast<token_id>(best));
    text.remove_prefix(names[best].size());
  }
  return tokens;
}

inline decant::retokeniser between(const std::vector<std::string>& from, const std::vector<std::string>& to) {
  return {.bytes = [&from](token_id token) { return std::string_view(from[static_cast<std::size_t>(token)]); },
          .encode = [&to](std::string_view text) { return split(text, to); }};
}

inline decant::retokeniser to_draft() { return between(target_names, draft_names); }
inline decant::retokeniser to_target() { return between(draft_names, target_names); }

}  // namespace two_alphabets
