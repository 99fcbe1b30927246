// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
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
#include <decant/math/kernels.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/splitmix64.hpp>
#include <decant/processors/history.hpp>
#include <decant/processors/watermark_detection.hpp>
#include <decant/processors/watermark_key.hpp>

namespace decant {

/// The numbers of a Gumbel watermark; those not given have their usual values.
struct gumbel_watermark_options {
  std::uint64_t key = 0;          ///< who knows it can detect the watermark, and foresee every token
  std::size_t context_width = 4;  ///< tokens that seed the numbers of the next
  std::size_t history = 0;        ///< of so many last steps a context counts as repeated; 0: none does
};

/// Draws the token of the largest u^(1/p), with a number u a token that key and context give: a mark that no one sees
/// in a single token, whose law over keys is the model's own.
///
/// Effect: as the Gumbel-max trick with pseudo-random noise, so the same key, context and row give the same token,
/// whatever the seed. Text that comes back to a context therefore tends to repeat itself; with `history` a token after
/// a repeated context is drawn plainly from the step's own random numbers, as it is where the text is shorter than the
/// context. A function of prompt and output: no state. One hash a token, nothing allocated in steady state.
///
/// Deliberately no LawSampler: given the key a step is not random, and speculation, which draws by itself, would lose
/// the mark. No off value. Errors: parameter_error for a width of 0; no_token on a bad row.
/// Reference: Aaronson, "Watermarking of large language models" (talk), 2022; Kuditipudi, Thickstun, Hashimoto, Liang,
/// "Robust distortion-free watermarks for language models", TMLR 2024, arXiv 2307.15593.
class gumbel_watermark : public made_or_error<gumbel_watermark> {
 public:
  static constexpr std::string_view name = "gumbel_watermark";
  static constexpr bool only_narrows = true;

  explicit gumbel_watermark(const gumbel_watermark_options& options = {}) : options_(options) {
    detail::raise_if(validate(options));
  }

  static std::optional<parameter_fault> validate(const gumbel_watermark_options& options = {}) {
    if (options.context_width > 0) return {};
    return parameter_fault{name, "context_width", 0, "must be at least 1"};
  }

  token_id operator()(candidates& row, const step_context& context) const {
    if (!marks(context)) return row.draw(context.draws);
    const std::uint64_t seed = context_seed(context.tokens);
    const token_id top = row.argmax();
    if (top == no_token) return no_token;
    // No token below what the largest logit has reached can win: few numbers are so near 1 that they are looked at.
    token_id best = no_token;
    double highest = draw_stream::gumbel(number(seed, top)), share = math::exp(-highest);
    row.visit_below_max(
        [&](token_id first, double most) {
          if (most * share >= 1) return ~std::uint64_t{0};
          return math::kernels().splitmix_at_least(seed, static_cast<std::uint64_t>(first),
                                                   draw_stream::upper_half_from(most * share));
        },
        [&](token_id id, double below) {
          const double perturbed = below + draw_stream::gumbel(number(seed, id));
          if (!(best == no_token ? perturbed >= highest : perturbed > highest)) return;
          highest = perturbed;
          share = math::exp(-highest);
          best = id;
        });
    return best;
  }

  /// The number u in (0, 1) of `token` after the text `before`, which must hold a context.
  [[nodiscard]] double number(std::span<const token_id> before, token_id token) const {
    DECANT_ASSERT(before.size() >= options_.context_width, "the text is shorter than the context");
    return number(context_seed(before), token);
  }

  /// The evidence for this watermark in a text, from the tokens alone. The score is the sum of -ln(1 - u) over the
  /// tokens that count, of law Gamma(tokens, 1) where nobody knows the key; p_value is that law's tail. An n-gram is
  /// the context and the token.
  [[nodiscard]] watermark_evidence detect(std::span<const token_id> text, const detection_options& options = {}) const {
    std::vector<seeded_token> tokens;
    for (std::size_t place = std::max(options.prompt_size, options_.context_width); place < text.size(); ++place) {
      tokens.push_back({context_seed(text.first(place)), text[place]});
    }
    if (!options.count_repeats) count_once(tokens);
    watermark_evidence found{.tokens = tokens.size()};
    for (const auto& [seed, token] : tokens) found.score -= math::log(1 - number(seed, token));
    if (found.tokens == 0) return found;
    const double count = static_cast<double>(found.tokens);
    found.z = (found.score - count) / std::sqrt(count);
    found.p_value = exponential_sum_tail(found.tokens, found.score);
    return found;
  }

  [[nodiscard]] std::string describe() const {
    std::string text = detail::call_text(name, {static_cast<double>(options_.context_width)});
    if (options_.history == 0) return text;
    return detail::with_option(std::move(text), "history", detail::number_text(options_.history));
  }

 private:
  [[nodiscard]] bool marks(const step_context& context) const {
    const std::size_t first = std::max(context.prompt_size, options_.context_width), here = context.tokens.size();
    if (here < options_.context_width) return false;
    return !context_windows(context.tokens, options_.context_width).seen_before(here, first, options_.history);
  }

  [[nodiscard]] std::uint64_t context_seed(std::span<const token_id> before) const {
    return watermark_key(options_.key, watermark_use::gumbel, before.last(options_.context_width));
  }

  static double number(std::uint64_t seed, token_id token) {
    return draw_stream::unit_interval(math::splitmix64(seed, static_cast<std::uint64_t>(token)));
  }

  gumbel_watermark_options options_;
};

}  // namespace decant
