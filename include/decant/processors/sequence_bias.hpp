// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/processors/bias_sum.hpp>
#include <decant/processors/token_list.hpp>

namespace decant {

/// A sequence of tokens and what is added to the logit of its last one where the others stand before it.
struct sequence_with_bias {
  std::vector<token_id> tokens;
  double bias;
};

struct sequence_bias_options {
  /// Hugging Face's reading: a sequence of several tokens is matched only in a text at least as long as itself, so not
  /// where the text is all of it but the last token.
  bool hf_prefix = false;
};

/// Adds to a token's logit where it would complete a listed sequence; a bias of -inf bans.
///
/// Effect: a sequence of one token always counts; a longer one when prompt and output end with all of it but the last
/// token, which gets the bias. Those that apply to one token add up, in any order to the same bits, also when one
/// sequence is listed twice; -inf wins over all. A token that is gone stays gone. Shifting all logits changes nothing.
/// O(tokens listed), sparse edits. May ban every token: the row is then empty.
/// Off: no sequences, or only biases of 0. Errors: parameter_error for an empty sequence and for a bias of NaN or +inf;
/// an id outside the vocabulary, anywhere in a sequence, is misuse, found when the first row is processed.
/// Reference: Hugging Face transformers, "sequence_bias".
class sequence_bias : public made_or_error<sequence_bias> {
 public:
  static constexpr std::string_view name = "sequence_bias";

  explicit sequence_bias(std::vector<sequence_with_bias> sequences, sequence_bias_options options = {})
      : sequences_(std::move(sequences)), options_(options) {
    detail::raise_if(validate(sequences_));
    for (const auto& each : sequences_) ids_.include(each.tokens);
    std::erase_if(sequences_, [](const sequence_with_bias& each) { return each.bias == 0; });
    std::ranges::sort(sequences_, [](const sequence_with_bias& x, const sequence_with_bias& y) {
      const token_id last_x = x.tokens.back(), last_y = y.tokens.back();
      return std::tie(last_x, x.tokens, x.bias) < std::tie(last_y, y.tokens, y.bias);
    });
  }

  static std::optional<parameter_fault> validate(const std::vector<sequence_with_bias>& sequences,
                                                 sequence_bias_options = {}) {
    for (const auto& [tokens, bias] : sequences) {
      if (tokens.empty()) return parameter_fault{name, "length of a sequence", 0, "must be >= 1"};
      if (!bias_sum::valid(bias)) return parameter_fault{name, "bias", bias, bias_sum::rule};
    }
    return {};
  }

  void operator()(candidates& row, const step_context& context) const {
    if (off()) return;
    ids_.check(row);
    for (auto next = sequences_.begin(); next != sequences_.end();) {
      const token_id last = next->tokens.back();
      bias_sum sum;
      for (; next != sequences_.end() && next->tokens.back() == last; ++next) {
        if (applies(next->tokens, context.tokens)) sum.add(next->bias);
      }
      sum.apply(row, last);
    }
  }

  [[nodiscard]] bool off() const { return sequences_.empty(); }
  [[nodiscard]] std::string describe() const {
    return detail::option_text(detail::counted_text(name, sequences_.size(), "sequence"), options_.hf_prefix,
                               "hf_prefix = true");
  }

 private:
  [[nodiscard]] bool applies(std::span<const token_id> sequence, std::span<const token_id> text) const {
    const std::size_t prefix = sequence.size() - 1;
    if (prefix > text.size() || (options_.hf_prefix && prefix > 0 && prefix == text.size())) return false;
    return std::ranges::equal(sequence.first(prefix), text.last(prefix));
  }

  std::vector<sequence_with_bias> sequences_;  // by last token, so that its biases are added up at once
  sequence_bias_options options_;
  id_range ids_;
};

}  // namespace decant
