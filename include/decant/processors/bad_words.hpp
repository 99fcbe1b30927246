// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/processors/sequence_bias.hpp>
#include <decant/processors/token_list.hpp>

namespace decant {

struct bad_words_options {
  /// Hugging Face's reading: an entry that is just one of these end tokens is dropped from the list.
  std::vector<token_id> spared_end_tokens{};
  /// As sequence_bias_options::hf_prefix.
  bool hf_prefix = false;
};

/// Bans every token that would complete a listed sequence of tokens: none of them is ever generated.
///
/// Effect: as sequence_bias with -inf. A word is one sequence of tokens: its other spellings in tokens (in capitals,
/// after a space, split elsewhere) must be listed as well. A sequence that lies wholly in the prompt is not affected,
/// one that the output would complete is. May ban every token: the row is then empty. O(tokens listed), sparse edits.
/// Off: an empty list. Errors: parameter_error for an empty sequence; an id outside the vocabulary, anywhere in a
/// sequence, is misuse, found when the first row is processed.
/// Reference: Hugging Face transformers, "bad_words_ids".
class bad_words : public made_or_error<bad_words> {
 public:
  static constexpr std::string_view name = "bad_words";

  explicit bad_words(const std::vector<std::vector<token_id>>& sequences, const bad_words_options& options = {})
      : bans_(bans_of(sequences, options), {.hf_prefix = options.hf_prefix}),
        count_(sequences.size()),
        hf_prefix_(options.hf_prefix) {}

  static std::optional<parameter_fault> validate(const std::vector<std::vector<token_id>>& sequences,
                                                 const bad_words_options& = {}) {
    const bool wrong = std::ranges::any_of(sequences, [](const auto& tokens) { return tokens.empty(); });
    if (!wrong) return {};
    return parameter_fault{name, "length of a sequence", 0, "must be >= 1"};
  }

  void operator()(candidates& row, const step_context& context) const { bans_(row, context); }

  [[nodiscard]] bool off() const { return bans_.off(); }
  [[nodiscard]] std::string describe() const {
    return detail::option_text(detail::counted_text(name, count_, "sequence"), hf_prefix_, "hf_prefix = true");
  }

 private:
  static std::vector<sequence_with_bias> bans_of(const std::vector<std::vector<token_id>>& sequences,
                                                 const bad_words_options& options) {
    detail::raise_if(validate(sequences));
    std::vector<sequence_with_bias> bans;
    for (const auto& tokens : sequences) {
      const auto& spared = options.spared_end_tokens;
      if (tokens.size() == 1 && std::ranges::find(spared, tokens[0]) != spared.end()) continue;
      bans.push_back({tokens, static_cast<double>(gone)});
    }
    return bans;
  }

  sequence_bias bans_;
  std::size_t count_;
  bool hf_prefix_;
};

}  // namespace decant
