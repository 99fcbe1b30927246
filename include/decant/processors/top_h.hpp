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
#include <decant/math/scalar.hpp>

namespace decant {

/// Whose entropy top_h bounds.
enum class top_h_rule : std::uint8_t {
  paper,  ///< of the set kept, renormalised
  hf,     ///< Hugging Face transformers: the share of the set, not renormalised, in the entropy of the first 100 tokens
};

/// Top-H: keeps as many of the most probable tokens as a share of the entropy allows.
///
/// Effect: grows the set in descending order, ties by lower id, while the entropy of the set, renormalised, is <= alpha
/// times the entropy of all; the argmax always stays. The entropy of all is as exact as it takes to decide; one walk
/// down the set. Off: alpha >= 1. Errors: parameter_error for NaN or negative alpha. Reference: Potraghloo, Azizi,
/// Kundu, Pedram, "Top-H decoding: adapting the creativity and coherence with bounded entropy in text generation",
/// NeurIPS 2025, arXiv 2509.02510.
class top_h : public made_or_error<top_h> {
 public:
  static constexpr std::string_view name = "top_h";
  static constexpr bool argmax_invariant = true;

  /// Keeps at least `min_keep` tokens (at least one).
  explicit top_h(double alpha, std::size_t min_keep = 1, top_h_rule rule = top_h_rule::paper)
      : alpha_(alpha), min_keep_(min_keep), rule_(rule) {
    detail::raise_if(validate(alpha));
  }

  static std::optional<parameter_fault> validate(double alpha, std::size_t = 1, top_h_rule = top_h_rule::paper) {
    if (alpha >= 0) return {};
    return parameter_fault{name, "alpha", alpha, "must be a number >= 0"};
  }

  void operator()(candidates& row, const step_context&) const {
    if (off()) return;
    row.decide_by_bounds([&](const candidates::law_bounds& law) {
      const auto count = rule_ == top_h_rule::hf ? count_hf(row) : count_within(row, law);
      if (count) row.keep_largest(std::max(min_keep_, *count));
      return count.has_value();
    });
  }

  [[nodiscard]] bool off() const { return alpha_ >= 1; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {alpha_}); }

 private:
  /// How many tokens the entropy allows, if bounds of it tell.
  [[nodiscard]] std::optional<std::size_t> count_within(candidates& row, const candidates::law_bounds& law) const {
    const auto entropy = law.entropy();
    const double low = math::product(alpha_, entropy.low), high = math::product(alpha_, entropy.high);
    // Entropy of a set with weights w = e^(logit - max): ln sum w - (sum w (logit - max)) / sum w.
    double sum = 0, weighted = 0;
    std::size_t kept = 0;
    for (std::size_t reach = 32; kept < row.size(); reach *= 4) {
      const auto order = row.descending(reach);
      for (; kept < order.size(); ++kept) {
        const double below = row.below_max(order[kept].id), w = math::exp(below);
        // A weight of 0 has underflowed: the sums do not see it, and the entropy, which is 0, would bound nothing.
        if (w == 0) return kept;
        sum = math::rounded(sum + w);
        weighted = math::rounded(weighted + math::product(w, below));
        const double used = math::log(sum) - weighted / sum;
        if (kept == 0 || used <= low) continue;
        return used > high ? std::optional(kept) : std::nullopt;
      }
    }
    return kept;
  }

  [[nodiscard]] std::optional<std::size_t> count_hf(candidates& row) const {
    constexpr std::size_t first = 100;
    const auto order = row.descending(first);
    double sum = 0, weighted = 0;
    for (const entry& e : order) {
      const double below = row.below_max(e.id), w = math::exp(below);
      sum = math::rounded(sum + w);
      weighted = math::rounded(weighted + math::product(w, below));
    }
    const double log_sum = math::log(sum), allowed = math::product(alpha_, log_sum - weighted / sum);
    double share = 0;
    for (std::size_t kept = 0; kept < order.size(); ++kept) {
      const double log_p = row.below_max(order[kept].id) - log_sum, p = math::exp(log_p);
      share = math::rounded(share - math::product(p, log_p));
      if (kept > 0 && (p == 0 || share > allowed)) return kept;
    }
    return order.size();
  }

  double alpha_;
  std::size_t min_keep_;
  top_h_rule rule_;
};

}  // namespace decant
