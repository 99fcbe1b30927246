// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// What the vocabularies of a draft model and of a target have in common: tokens that stand for the same bytes.
///
/// A token without bytes has no partner. Of several target tokens with the same bytes the lowest is the partner of all
/// draft tokens with these bytes; back, the lowest of those. O(both vocabularies) to build, O(1) to ask.
/// Errors: parameter_error if the vocabularies share nothing.
/// Reference: Timor et al., ICML 2025, "Accelerating LLM inference with lossless speculative decoding algorithms for
/// heterogeneous vocabularies", arXiv 2502.05202 (token-level intersection).
class vocabulary_map : public made_or_error<vocabulary_map> {
 public:
  static constexpr std::string_view name = "vocabulary_map";

  /// From what each token stands for, by id.
  vocabulary_map(const std::vector<std::string>& drafted, const std::vector<std::string>& target)
      : vocabulary_map(drafted, target, lowest_ids(target)) {
    detail::raise_if(fault(*this));
  }

  static std::optional<parameter_fault> validate(const std::vector<std::string>& drafted,
                                                 const std::vector<std::string>& target) {
    return fault(vocabulary_map(drafted, target, lowest_ids(target)));
  }

  /// The target's token with the bytes of a draft token, or no_token. Misuse: ids outside the vocabularies.
  [[nodiscard]] token_id to_target(token_id token) const { return at(to_target_, token); }
  /// The draft model's token with the bytes of a target token, or no_token.
  [[nodiscard]] token_id to_draft(token_id token) const { return at(to_draft_, token); }

  /// How many target tokens have a partner.
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t draft_size() const { return to_target_.size(); }
  [[nodiscard]] std::size_t target_size() const { return to_draft_.size(); }

 private:
  using partners = std::unordered_map<std::string_view, token_id>;

  static partners lowest_ids(const std::vector<std::string>& target) {
    partners lowest;
    for (std::size_t i = 0; i < target.size(); ++i) {
      if (!target[i].empty()) lowest.try_emplace(target[i], static_cast<token_id>(i));
    }
    return lowest;
  }

  vocabulary_map(const std::vector<std::string>& drafted, const std::vector<std::string>& target,
                 const partners& by_bytes)
      : to_target_(drafted.size(), no_token), to_draft_(target.size(), no_token) {
    for (std::size_t i = 0; i < drafted.size(); ++i) {
      const auto found = by_bytes.find(drafted[i]);
      if (found == by_bytes.end()) continue;
      to_target_[i] = found->second;
      token_id& back = to_draft_[static_cast<std::size_t>(found->second)];
      if (back != no_token) continue;
      back = static_cast<token_id>(i);
      ++size_;
    }
  }

  static std::optional<parameter_fault> fault(const vocabulary_map& map) {
    if (map.size_ > 0) return {};
    return parameter_fault{name, "common tokens", 0, "must be at least one"};
  }

  static token_id at(const std::vector<token_id>& partner_of, token_id token) {
    DECANT_ASSERT(token >= 0 && static_cast<std::size_t>(token) < partner_of.size(), "token id outside the vocabulary");
    return partner_of[static_cast<std::size_t>(token)];
  }

  std::vector<token_id> to_target_, to_draft_;
  std::size_t size_ = 0;
};

}  // namespace decant
