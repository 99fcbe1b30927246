// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/processors/sequence_bias.hpp>

namespace decant::hf {

/// Parameters of text generation by the names that Hugging Face transformers gives them. One that is set is one whose
/// processor Hugging Face is asked for, also at a value that decant takes for off.
struct parameters {
  std::optional<double> guidance_scale{};
  std::optional<std::vector<sequence_with_bias>> sequence_bias{};
  std::optional<double> diversity_penalty{};
  std::optional<std::int64_t> num_beams{};        ///< matters to the diversity penalty alone
  std::optional<std::int64_t> num_beam_groups{};  ///< likewise
  std::optional<double> encoder_repetition_penalty{};
  std::optional<double> repetition_penalty{};
  std::optional<std::int64_t> prompt_ignore_length{};
  std::optional<std::int64_t> no_repeat_ngram_size{};
  std::optional<std::int64_t> encoder_no_repeat_ngram_size{};
  std::optional<std::vector<std::vector<token_id>>> bad_words_ids{};
  std::optional<std::int64_t> min_length{};
  std::optional<std::int64_t> prompt_length_to_skip{};
  std::optional<std::int64_t> min_new_tokens{};
  std::optional<std::vector<token_id>> eos_token_id{};
  std::optional<double> temperature{};
  std::optional<double> top_h{};
  std::optional<std::int64_t> top_k{};
  std::optional<double> top_p{};
  std::optional<double> min_p{};
  std::optional<double> typical_p{};
  std::optional<double> epsilon_cutoff{};
  std::optional<double> eta_cutoff{};
  std::optional<std::int64_t> min_tokens_to_keep{};
  std::optional<double> greenlist_ratio{};
  std::optional<std::string> seeding_scheme{};
};

namespace detail {

/// Collects rules, and remembers the first that is broken.
class rules {
 public:
  template <class Number, class Rule>
  void require(std::string_view name, const std::optional<Number>& value, Rule keeps, std::string_view rule) {
    if (value && !keeps(*value)) report(name, " = " + decant::detail::number_text(*value), rule);
  }

  void report(std::string_view name, const std::string& value, std::string_view rule) {
    if (broken_) return;
    const std::string where = "hf." + std::string(name);
    broken_ = error{error_code::bad_parameter, where, "hf: " + std::string(name) + value + " " + std::string(rule)};
  }

  [[nodiscard]] const std::optional<error>& broken() const { return broken_; }

 private:
  std::optional<error> broken_;
};

/// Whether every id of every list can be one.
template <class Lists, class Tokens>
bool ids_are_valid(const Lists& lists, Tokens tokens_of) {
  return std::ranges::all_of(lists, [&](const auto& list) {
    return std::ranges::all_of(tokens_of(list), [](token_id id) { return id >= 0; });
  });
}

}  // namespace detail

/// The first parameter that Hugging Face transformers refuses, in the order of its processors; nothing if it takes all.
///
/// For programs that promise to accept and to refuse what it does: decant's own rules are wider, since an off value is
/// the identity here (top_k = 0) and an error there. NaN is refused everywhere. What its errors say of Python's types
/// has no counterpart. O(ids listed).
/// Reference: Hugging Face transformers, `generation/logits_process.py`.
[[nodiscard]] inline std::optional<error> validate(const parameters& given) {
  detail::rules rules;
  const auto positive = [](auto x) { return x > 0; };
  const auto not_negative = [](auto x) { return x >= 0; };
  const auto share = [](double x) { return x >= 0 && x <= 1; };
  const auto inner_share = [](double x) { return x > 0 && x < 1; };

  rules.require("guidance_scale", given.guidance_scale, [](double x) { return x > 1; }, "must be > 1");
  if (const auto& biases = given.sequence_bias) {
    const auto tokens_of = [](const sequence_with_bias& entry) -> const auto& { return entry.tokens; };
    const bool hollow = std::ranges::any_of(*biases, [&](const auto& entry) { return entry.tokens.empty(); });
    if (biases->empty()) rules.report("sequence_bias", "", "must not be empty");
    if (hollow) rules.report("sequence_bias", "", "must not hold an empty sequence");
    if (!detail::ids_are_valid(*biases, tokens_of)) rules.report("sequence_bias", "", "must hold ids >= 0");
  }
  if (given.diversity_penalty) {
    rules.require("diversity_penalty", given.diversity_penalty, positive, "must be > 0");
    const auto two_or_more = [](std::int64_t x) { return x >= 2; };
    rules.require("num_beams", given.num_beams, two_or_more, "must be >= 2");
    rules.require("num_beam_groups", given.num_beam_groups, two_or_more, "must be >= 2");
    const std::int64_t beams = given.num_beams.value_or(given.num_beam_groups.value_or(2));
    rules.require(
        "num_beam_groups", given.num_beam_groups, [=](std::int64_t x) { return x <= beams; }, "must be <= num_beams");
  }
  rules.require("encoder_repetition_penalty", given.encoder_repetition_penalty, positive, "must be > 0");
  rules.require("repetition_penalty", given.repetition_penalty, positive, "must be > 0");
  rules.require("prompt_ignore_length", given.prompt_ignore_length, not_negative, "must be >= 0");
  rules.require("no_repeat_ngram_size", given.no_repeat_ngram_size, positive, "must be > 0");
  rules.require("encoder_no_repeat_ngram_size", given.encoder_no_repeat_ngram_size, positive, "must be > 0");
  if (const auto& words = given.bad_words_ids) {
    const auto tokens_of = [](const std::vector<token_id>& word) -> const auto& { return word; };
    if (words->empty()) rules.report("bad_words_ids", "", "must not be empty");
    if (!detail::ids_are_valid(*words, tokens_of)) rules.report("bad_words_ids", "", "must hold ids >= 0");
  }
  rules.require("min_length", given.min_length, not_negative, "must be >= 0");
  rules.require("prompt_length_to_skip", given.prompt_length_to_skip, not_negative, "must be >= 0");
  rules.require("min_new_tokens", given.min_new_tokens, not_negative, "must be >= 0");
  for (const token_id id : given.eos_token_id.value_or(std::vector<token_id>{})) {
    rules.require("eos_token_id", std::optional(id), not_negative, "must be >= 0");
  }
  rules.require("temperature", given.temperature, positive, "must be > 0");
  rules.require("top_h", given.top_h, [](double x) { return x > 0 && x <= 1; }, "must lie in (0, 1]");
  rules.require("top_k", given.top_k, positive, "must be > 0");
  rules.require("top_p", given.top_p, share, "must lie in [0, 1]");
  rules.require("min_p", given.min_p, share, "must lie in [0, 1]");
  rules.require("typical_p", given.typical_p, inner_share, "must lie in (0, 1)");
  rules.require("epsilon_cutoff", given.epsilon_cutoff, inner_share, "must lie in (0, 1)");
  rules.require("eta_cutoff", given.eta_cutoff, inner_share, "must lie in (0, 1)");
  rules.require("min_tokens_to_keep", given.min_tokens_to_keep, positive, "must be >= 1");
  rules.require("greenlist_ratio", given.greenlist_ratio, inner_share, "must lie in (0, 1)");
  if (const auto& scheme = given.seeding_scheme; scheme && *scheme != "lefthash" && *scheme != "selfhash") {
    rules.report("seeding_scheme", " = " + *scheme, "must be lefthash or selfhash");
  }
  return rules.broken();
}

}  // namespace decant::hf
