// SPDX-License-Identifier: MIT
#pragma once

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
#include <decant/math/scalar.hpp>
#include <decant/processors/green_list.hpp>
#include <decant/processors/history.hpp>
#include <decant/processors/watermark_detection.hpp>
#include <decant/processors/watermark_key.hpp>

namespace decant {

/// The numbers of a unigram watermark; those not given have their usual values.
struct unigram_options {
  double fraction = 0.5;  ///< of the vocabulary that is green
  double bias = 2;        ///< added to the logits of green tokens; 0: off
  std::uint64_t key = 0;  ///< who knows it can detect the watermark; statistics over much text can guess the list
  bool hard = false;      ///< ban all other tokens instead of adding `bias`
};

/// Marks text by raising the tokens of one fixed "green" list: survives edits better than lists that change.
///
/// Effect: the key chooses floor(fraction * n) of the n tokens; `bias` is added to the logits of these. Hard: only they
/// are left, or all tokens where none of them is. No text is needed. O(tokens left); the list is made once. Nothing
/// allocated in steady state. Off: bias = 0, unless hard. Errors: parameter_error for a fraction outside (0, 1) and a
/// bias that is not a finite number >= 0. Reference: Zhao, Ananth, Li, Wang, "Provable robust watermarking for
/// AI-generated text", ICLR 2024, arXiv 2306.17439.
class unigram_watermark : public made_or_error<unigram_watermark> {
 public:
  static constexpr std::string_view name = "unigram_watermark";

  explicit unigram_watermark(const unigram_options& options = {})
      : options_(options), seed_(watermark_key(options.key, watermark_use::unigram)) {
    detail::raise_if(validate(options));
  }

  static std::optional<parameter_fault> validate(const unigram_options& options = {}) {
    if (!(options.fraction > 0 && options.fraction < 1) || math::is_nan(options.fraction)) {
      return parameter_fault{name, "fraction", options.fraction, "must lie in (0, 1)"};
    }
    if (!math::is_finite(options.bias) || options.bias < 0) {
      return parameter_fault{name, "bias", options.bias, "must be a finite number >= 0"};
    }
    return {};
  }

  void operator()(candidates& row, const step_context&) {
    if (off() || row.status() != row_status::ok) return;
    const std::size_t n = row.vocabulary_size();
    list_.make(n, green_size(options_.fraction, n), seed_);
    options_.hard ? edit_.keep(row, list_) : edit_.raise(row, options_.bias, list_);
  }

  /// Whether a token is green.
  [[nodiscard]] bool green(token_id token, std::size_t vocabulary_size) const {
    DECANT_ASSERT(token >= 0 && static_cast<std::size_t>(token) < vocabulary_size, "token id outside the vocabulary");
    return on_green_list(token, vocabulary_size, green_size(options_.fraction, vocabulary_size), seed_);
  }

  /// The evidence for this watermark in a text; the score is the number of green tokens. Without repeats each token
  /// counts once, which keeps frequent words from passing for a watermark. The vocabulary must be as large as when the
  /// text was made.
  [[nodiscard]] watermark_evidence detect(std::span<const token_id> text, std::size_t vocabulary_size,
                                          const detection_options& options = {}) const {
    std::vector<seeded_token> tokens;
    for (std::size_t place = options.prompt_size; place < text.size(); ++place) tokens.push_back({seed_, text[place]});
    if (!options.count_repeats) count_once(tokens);
    std::size_t greens = 0;
    for (const seeded_token& each : tokens) greens += green(each.token, vocabulary_size);
    const double share =
        static_cast<double>(green_size(options_.fraction, vocabulary_size)) / static_cast<double>(vocabulary_size);
    return green_evidence(tokens.size(), greens, share);
  }

  [[nodiscard]] bool off() const { return options_.bias == 0 && !options_.hard; }
  [[nodiscard]] std::string describe() const {
    std::string text = detail::call_text(name, {options_.fraction, options_.bias});
    return options_.hard ? detail::with_option(std::move(text), "hard", "true") : text;
  }

 private:
  unigram_options options_;
  std::uint64_t seed_;
  green_list list_;
  green_list_edit edit_;
};

}  // namespace decant
