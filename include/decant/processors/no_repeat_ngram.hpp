// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>

namespace decant {

/// Bans every token that would repeat an n-gram that has occurred.
///
/// Effect: with x the last n - 1 tokens, bans each v for which (x, v) stands in the history, prompt included. n = 1
/// bans every token that has occurred. May ban all tokens: the row is then empty. O(history), sparse edits.
/// Off: n <= 0. Errors: none, every n has a meaning.
/// Reference: Paulus, Xiong, Socher, "A deep reinforced model for abstractive summarization", ICLR 2018,
/// arXiv 1705.04304.
class no_repeat_ngram : public made_or_error<no_repeat_ngram> {
 public:
  static constexpr std::string_view name = "no_repeat_ngram";

  explicit no_repeat_ngram(std::int64_t n) : n_(n) {}

  static std::optional<parameter_fault> validate(std::int64_t) { return {}; }

  void operator()(candidates& row, const step_context& context) const {
    const auto history = context.tokens;
    if (off() || history.size() < static_cast<std::size_t>(n_)) return;
    const auto prefix = static_cast<std::size_t>(n_ - 1);
    const auto suffix = history.last(prefix);
    for (std::size_t i = prefix; i < history.size(); ++i) {
      if (std::ranges::equal(history.subspan(i - prefix, prefix), suffix)) row.ban(history[i]);
    }
  }

  [[nodiscard]] bool off() const { return n_ <= 0; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {static_cast<double>(n_)}); }

 private:
  std::int64_t n_;
};

}  // namespace decant
