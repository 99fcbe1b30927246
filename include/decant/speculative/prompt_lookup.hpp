// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/speculative/draft.hpp>

namespace decant {

/// Which of several places in the text is copied from.
enum class match_order : std::uint8_t {
  first,        ///< the earliest
  most_recent,  ///< the latest
};

/// How prompt_lookup searches and what it copies.
struct prompt_lookup_options {
  std::size_t max_ngram = 3;  ///< the longest end of the text that is looked for
  std::size_t min_ngram = 1;  ///< and the shortest
  std::size_t max_tokens = 10;
  match_order order = match_order::first;
  bool run_on = false;             ///< a copy that reaches the end of the text goes on with what it has copied
  bool before_stop = false;        ///< ends before a stop token, not with it
  std::vector<token_id> banned{};  ///< a copy ends before these; one that is then empty makes way for the next match
};

/// Drafts what followed the last tokens when they stood in the text before.
///
/// Effect: for n = max_ngram down to min_ngram, looks for the last n tokens elsewhere in prompt and output, and copies
/// up to max_tokens of what follows there. The first size that is found decides; no match drafts nothing. The match is
/// never the end of the text itself, so a copy has at least one token; near the end it may be short. Needs no model:
/// good where the output repeats the input (summaries, code, retrieval). Deterministic: the proposal is accepted with
/// the probability that the target gives it.
/// Complexity: O(tokens * max_ngram) at worst, nothing allocates in steady state.
/// Off: max_tokens = 0. Errors: parameter_error for min_ngram = 0 and for max_ngram < min_ngram.
/// Reference: Saxena, "Prompt lookup decoding", 2023; Yang et al. 2023 (LLMA), arXiv 2304.04487. With max_ngram = 2 and
/// before_stop, Hugging Face's prompt_lookup_num_tokens.
class prompt_lookup : public made_or_error<prompt_lookup> {
 public:
  static constexpr std::string_view name = "prompt_lookup";

  explicit prompt_lookup(prompt_lookup_options options = {}) : options_(std::move(options)) {
    detail::raise_if(validate(options_));
  }

  static std::optional<parameter_fault> validate(const prompt_lookup_options& options = {}) {
    if (options.min_ngram == 0) return parameter_fault{name, "min_ngram", 0, "must be at least 1"};
    if (options.max_ngram < options.min_ngram) {
      return parameter_fault{name, "max_ngram", static_cast<double>(options.max_ngram), "must be at least min_ngram"};
    }
    return {};
  }

  void propose(const draft_request& request, draft& out) {
    out.set_mode(proposal::deterministic);
    const std::size_t limit = std::min({options_.max_tokens, request.max_depth, request.max_nodes});
    const std::size_t size = request.context.tokens.size();
    if (limit == 0 || size < 2) return;
    for (std::size_t n = std::min(options_.max_ngram, size - 1); n >= options_.min_ngram; --n) {
      if (copy_after(n, limit, request)) break;
    }
    std::int32_t last = no_parent;
    for (const token_id token : copied_) {
      const bool stop = std::ranges::find(request.stop_tokens, token) != request.stop_tokens.end();
      if (stop && options_.before_stop) break;
      last = out.add(token, last);
      if (stop) break;
    }
    copied_.clear();
  }

  [[nodiscard]] const prompt_lookup_options& options() const { return options_; }
  [[nodiscard]] std::string describe() const {
    return detail::call_text(name, {static_cast<double>(options_.max_ngram), static_cast<double>(options_.min_ngram),
                                    static_cast<double>(options_.max_tokens)});
  }

 private:
  /// Copies what follows a place where the last n tokens stand; whether there is one with something to copy.
  bool copy_after(std::size_t n, std::size_t limit, const draft_request& request) {
    const auto tokens = request.context.tokens;
    const auto wanted = tokens.last(n);
    const std::size_t places = tokens.size() - n;  // the last would be the end of the text itself
    for (std::size_t i = 0; i < places; ++i) {
      const std::size_t at = options_.order == match_order::first ? i : places - 1 - i;
      if (std::ranges::equal(tokens.subspan(at, n), wanted)) copy_from(at + n, limit, tokens);
      if (!copied_.empty()) return true;
    }
    return false;
  }

  void copy_from(std::size_t from, std::size_t limit, std::span<const token_id> tokens) {
    for (; copied_.size() < limit; ++from) {
      if (from >= tokens.size() && !options_.run_on) return;
      const token_id token = from < tokens.size() ? tokens[from] : copied_[from - tokens.size()];
      if (std::ranges::find(options_.banned, token) != options_.banned.end()) return;
      copied_.push_back(token);
    }
  }

  prompt_lookup_options options_;
  std::vector<token_id> copied_;
};

}  // namespace decant
