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

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/token.hpp>
#include <decant/processors/vocabulary_bytes.hpp>
#include <decant/text/utf8_stream.hpp>

namespace decant {

/// How a model's thinking is told from its answer.
struct thinking_markers {
  std::vector<token_id> start{};   ///< the tokens after which it thinks
  std::vector<token_id> end{};     ///< the tokens after which it no longer does
  std::vector<token_id> forced{};  ///< what to write when the budget is used up; empty: `end`
  bool prompt = false;             ///< whether thinking in the prompt counts: templates often end with the start
};

/// Ends a model's thinking after so many tokens.
///
/// Effect: once so many tokens have followed the start, forces the tokens of `forced` one by one: the others are gone,
/// the forced one has logit 0. Where the thinking already ends with a beginning of them, only the rest. Then, or when
/// the model writes the end itself, thinking is over until the next start. Tokens of an unfinished end count. A token
/// that is not the forced one, such as before the policy joined, makes it begin anew. With the bytes of the vocabulary
/// nothing is forced inside a UTF-8 character, which takes up to three tokens more in well-formed text. A forced token
/// that is gone leaves the row empty; one that is NaN in a row not yet read is forced all the same.
///
/// A function of the tokens alone, so it holds at every place of a draft. O(output), or O(tokens) with the prompt,
/// times the length of a marker at worst; nothing allocates.
/// Off: budget < 0; 0 ends thinking at once. Errors: parameter_error for an empty start or end.
/// Reference: Muennighoff et al., "s1: simple test-time scaling", 2025, arXiv 2501.19393 ("budget forcing").
class thinking_budget : public made_or_error<thinking_budget> {
 public:
  static constexpr std::string_view name = "thinking_budget";

  thinking_budget(std::int64_t budget, thinking_markers markers, vocabulary_bytes bytes = {})
      : budget_(budget), markers_(std::move(markers)), bytes_(std::move(bytes)) {
    detail::raise_if(validate(budget_, markers_, bytes_));
    if (markers_.forced.empty()) markers_.forced = markers_.end;
  }

  static std::optional<parameter_fault> validate(std::int64_t, const thinking_markers& markers,
                                                 const vocabulary_bytes& = {}) {
    constexpr std::string_view rule = "tokens, must be at least one";
    if (markers.start.empty()) return parameter_fault{name, "start", 0, rule};
    if (markers.end.empty()) return parameter_fault{name, "end", 0, rule};
    return {};
  }

  void operator()(candidates& row, const step_context& context) const {
    if (off()) return;
    const token_id id = forced_after(markers_.prompt ? context.tokens : context.output());
    if (id == no_token) return;
    row.allow(std::span<const token_id>(&id, 1));
    row.set(id, 0);
  }

  [[nodiscard]] bool off() const { return budget_ < 0; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {static_cast<double>(budget_)}); }

 private:
  static bool ends_with(std::span<const token_id> tokens, std::span<const token_id> end) {
    return tokens.size() >= end.size() && std::ranges::equal(tokens.last(end.size()), end);
  }

  /// How many tokens of `forced`, but not all, the thinking ends with.
  [[nodiscard]] std::size_t begun(std::span<const token_id> thinking) const {
    std::size_t count = std::min(thinking.size(), markers_.forced.size() - 1);
    while (!ends_with(thinking, std::span(markers_.forced).first(count))) --count;
    return count;
  }

  /// Whether the text of the thinking ends inside a character.
  [[nodiscard]] bool splits_character(std::span<const token_id> thinking) const {
    std::uint8_t after = 0;  // the byte after the one looked at
    std::size_t length = 0;
    for (std::size_t i = thinking.size(); i-- > 0;) {
      const std::string_view bytes = bytes_(thinking[i]);
      for (std::size_t j = bytes.size(); j-- > 0;) {
        const auto byte = static_cast<std::uint8_t>(bytes[j]);
        ++length;
        if ((byte & 0xC0) != 0x80) {  // no continuation byte: only from here on can a character have begun
          return detail::utf8_length(byte) > length && (length == 1 || detail::utf8_second(byte, after));
        }
        if (length == 3) return false;  // one that lacked an end would have begun
        after = byte;
      }
    }
    return false;
  }

  /// The token to be forced after `tokens`, or no_token.
  [[nodiscard]] token_id forced_after(std::span<const token_id> tokens) const {
    bool thinking = false, forcing = false;
    std::size_t from = 0, written = 0;  // where the marker that is looked for may begin; how much of `forced` stands
    const auto budget = static_cast<std::uint64_t>(budget_);
    for (std::size_t i = 0; i <= tokens.size(); ++i) {
      if (thinking && !forcing && i - from >= budget) {
        const auto thought = tokens.subspan(from, i - from);
        forcing = !splits_character(thought);
        if (forcing) written = begun(thought);
      }
      if (i == tokens.size()) break;
      const auto part = tokens.subspan(from, i + 1 - from);
      if (!thinking) {
        if (!ends_with(part, markers_.start)) continue;
        thinking = true;
        forcing = false;
        from = i + 1;
        continue;
      }
      const bool as_forced = forcing && tokens[i] == markers_.forced[written];
      if (forcing) written = as_forced ? written + 1 : begun(part);
      if (as_forced ? written == markers_.forced.size() : ends_with(part, markers_.end)) {
        thinking = false;
        from = i + 1;
      }
    }
    return thinking && forcing ? markers_.forced[written] : no_token;
  }

  std::int64_t budget_;
  thinking_markers markers_;
  vocabulary_bytes bytes_;
};

}  // namespace decant
