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
#include <decant/math/scalar.hpp>

namespace decant {

/// Which tokens confidence_increment keeps. The increments do not fall monotonically, so the two differ.
enum class increment_rule : std::uint8_t {
  prefix,  ///< those before the first increment that is too small, as in the paper
  each,    ///< every token whose own increment is large enough, as in the authors' later code
};

/// Adaptive decoding: keeps the most probable tokens while each makes confidence grow by more than epsilon.
///
/// Effect: the confidence of the k most probable tokens is 1 minus the entropy, in units of ln n, of the distribution
/// that keeps their probabilities and spreads the rest evenly over the n - k others (n tokens are left). Token k is
/// kept while that grows with it by more than epsilon, and by more than 1e-12, which rounding may feign; ties by lower
/// id. Equal tokens only, or epsilon >= 1, keep `min_keep`. One pass and a walk down the set; increment_rule::each
/// sorts the row.
/// No off value. Errors: parameter_error for NaN or negative epsilon.
/// Reference: Zhu et al., "Improving open-ended text generation via adaptive decoding", ICML 2024, arXiv 2402.18223.
class confidence_increment : public made_or_error<confidence_increment> {
 public:
  static constexpr std::string_view name = "confidence_increment";
  static constexpr bool argmax_invariant = true;

  /// Keeps at least the largest `min_keep` tokens (at least one).
  explicit confidence_increment(double epsilon, std::size_t min_keep = 1, increment_rule rule = increment_rule::prefix)
      : epsilon_(epsilon), min_keep_(min_keep), rule_(rule) {
    detail::raise_if(validate(epsilon));
  }

  static std::optional<parameter_fault> validate(double epsilon, std::size_t = 1,
                                                 increment_rule = increment_rule::prefix) {
    if (epsilon >= 0) return {};
    return parameter_fault{name, "epsilon", epsilon, "must be a number >= 0"};
  }

  void operator()(candidates& row, const step_context&) {
    if (row.size() < 2 || row.status() != row_status::ok) return;
    const std::size_t least = std::max<std::size_t>(min_keep_, 1);
    if (rule_ == increment_rule::prefix) {
      std::size_t kept = 0;
      walk(row, [&](token_id, double increment) {
        const bool more = enough(increment);
        kept += more;
        return more;
      });
      return row.keep_largest(std::max(kept, least));
    }
    kept_.clear();
    std::size_t k = 0;
    walk(row, [&](token_id id, double increment) {
      if (k++ < least || enough(increment)) kept_.push_back(id);
      return true;
    });
    row.allow(std::span<const token_id>(kept_));
  }

  [[nodiscard]] std::string describe() const { return detail::call_text(name, {epsilon_}); }

 private:
  [[nodiscard]] bool enough(double increment) const { return increment > std::max(epsilon_, 1e-12); }

  /// Calls f(id, increment of the confidence) down the descending order until it says no.
  template <class F>
  static void walk(candidates& row, F f) {
    const std::size_t n = row.size();
    const double log_n = math::log(static_cast<double>(n));
    double rest = 1;         // the probability of what has not been reached yet
    double spread = -log_n;  // rest ln (rest / number of them)
    std::size_t k = 0;
    for (std::size_t reach = 32; k < n; reach *= 4) {
      const std::span<const entry> order = row.descending(reach);
      for (; k < order.size(); ++k) {
        const double log_p = row.log_probability(order[k].id), p = math::exp(log_p);
        rest = std::max(0.0, rest - p);
        const double others = static_cast<double>(n - k - 1);
        const double next = rest > 0 && others > 0 ? math::product(rest, math::log(rest / others)) : 0;
        if (!f(order[k].id, (math::product(p, log_p) + next - spread) / log_n)) return;
        spread = next;
      }
    }
  }

  double epsilon_;
  std::size_t min_keep_;
  increment_rule rule_;
  std::vector<token_id> kept_;
};

}  // namespace decant
