// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/math/scalar.hpp>
#include <decant/speculative/statistics.hpp>

namespace decant {

/// How many tokens a pass of the target gives on average when k are drafted, each accepted with probability `rate`
/// after those before it: (1 - a^(k+1)) / (1 - a), the target's own token included.
[[nodiscard]] inline double expected_tokens(double rate, std::size_t k) {
  double sum = 1, power = 1;
  for (std::size_t i = 0; i < k; ++i) sum += power *= rate;
  return sum;
}

/// How much faster that is than plain decoding when drafting a token costs `cost` passes of the target.
/// Reference: Leviathan, Kalman, Matias, ICML 2023, arXiv 2211.17192, theorem 3.8.
[[nodiscard]] inline double expected_speedup(double rate, std::size_t k, double cost) {
  return expected_tokens(rate, k) / (static_cast<double>(k) * cost + 1);
}

/// The draft length of the largest expected speed-up, at most `longest`; 0 where drafting loses. O(longest).
[[nodiscard]] inline std::size_t optimal_draft_length(double rate, double cost, std::size_t longest) {
  std::size_t best = 0;
  double best_speedup = 1, tokens = 1, power = 1;
  for (std::size_t k = 1; k <= longest; ++k) {
    tokens += power *= rate;
    const double speedup = tokens / (static_cast<double>(k) * cost + 1);
    if (speedup > best_speedup) {
      best = k;
      best_speedup = speedup;
    }
  }
  return best;
}

/// How far ahead to draft: a number, or a rule that follows what becomes of the drafts of this sequence. A value.
///
/// Whatever it says, what comes out has the target's law: it looks at rounds that are over. All but `optimal` with a
/// measured cost are functions of the tokens drafted and accepted, so that a run can be repeated.
class draft_length {
 public:
  /// Always k tokens; 0 drafts nothing.
  static draft_length fixed(std::size_t k) { return {kind::fixed, k, k, 0}; }

  /// Two more after a draft that was accepted whole, one fewer (at least one) after one that was not.
  /// Reference: the schedule "heuristic" of Hugging Face transformers' assisted generation.
  static draft_length heuristic(std::size_t first = 5, std::size_t longest = 32) {
    return {kind::heuristic, first, longest, 0};
  }

  /// The optimum of expected_speedup, with the acceptance rate of this sequence so far (one token accepted and one not
  /// are assumed before any is seen) and the cost of drafting a token given as a share of a pass of the target.
  /// Errors: parameter_error unless 0 <= cost < 1.
  static draft_length optimal(double cost, std::size_t longest = 16) {
    detail::raise_if(validate(cost));
    return {kind::optimal, longest, longest, cost};
  }
  static result<draft_length> make_optimal(double cost, std::size_t longest = 16) {
    if (const auto fault = validate(cost)) return error{error_code::bad_parameter, "draft_length", fault->text()};
    return draft_length(kind::optimal, longest, longest, cost);
  }

  static std::optional<parameter_fault> validate(double cost) {
    if (cost >= 0 && cost < 1) return {};
    return parameter_fault{"draft_length", "cost", cost, "must lie in [0, 1)"};
  }

  /// How far to draft next. At least one token where the kind is `optimal`: whether to draft at all is not its
  /// question.
  [[nodiscard]] std::size_t next(const speculation_statistics& seen) const {
    if (kind_ != kind::optimal) return length_;
    const double rate =
        static_cast<double>(seen.drafted_tokens_accepted() + 1) / static_cast<double>(seen.drafted_tokens_tried() + 2);
    return std::max<std::size_t>(1, optimal_draft_length(rate, cost_, longest_));
  }

  /// Learns what became of a draft.
  void feedback(std::size_t proposed, std::size_t accepted) {
    if (kind_ != kind::heuristic || proposed == 0) return;
    length_ = accepted == proposed ? std::min(longest_, length_ + 2) : std::max<std::size_t>(1, length_ - 1);
  }

  /// The cost from now on: where it is measured.
  void set_cost(double cost) { cost_ = std::clamp(cost, 0.0, 0.999); }
  [[nodiscard]] double cost() const { return cost_; }

 private:
  enum class kind : std::uint8_t { fixed, heuristic, optimal };

  draft_length(kind how, std::size_t length, std::size_t longest, double cost)
      : kind_(how), length_(length), longest_(longest), cost_(cost) {}

  kind kind_;
  std::size_t length_, longest_;
  double cost_;
};

}  // namespace decant
