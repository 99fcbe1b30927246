// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>

namespace decant {

/// Bans every token that would complete an n-gram of a source text.
///
/// Effect: with x the last n - 1 tokens of prompt and output, bans each v for which (x, v) stands in the source. n = 1
/// bans every token of the source. May ban all tokens: the row is then empty. The source is copied. O(source), sparse
/// edits.
/// Off: n <= 0, or a source shorter than n. Errors: none, every n has a meaning; a source token outside the vocabulary
/// is misuse, found when it would be banned.
/// Reference: Roller et al., "Recipes for building an open-domain chatbot", EACL 2021, arXiv 2004.13637.
class encoder_no_repeat_ngram : public made_or_error<encoder_no_repeat_ngram> {
 public:
  static constexpr std::string_view name = "encoder_no_repeat_ngram";

  encoder_no_repeat_ngram(std::int64_t n, std::span<const token_id> source)
      : n_(n), source_(source.begin(), source.end()) {}

  static std::optional<parameter_fault> validate(std::int64_t, std::span<const token_id>) { return {}; }

  void operator()(candidates& row, const step_context& context) const {
    if (off()) return;
    const auto prefix = static_cast<std::size_t>(n_ - 1);
    if (context.tokens.size() < prefix) return;
    const auto suffix = context.tokens.last(prefix);
    const std::span<const token_id> source(source_);
    for (std::size_t i = prefix; i < source.size(); ++i) {
      if (std::ranges::equal(source.subspan(i - prefix, prefix), suffix)) row.ban(source[i]);
    }
  }

  [[nodiscard]] bool off() const { return n_ <= 0 || static_cast<std::size_t>(n_) > source_.size(); }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {static_cast<double>(n_)}); }

 private:
  std::int64_t n_;
  std::vector<token_id> source_;
};

}  // namespace decant
