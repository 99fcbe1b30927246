// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/strict.hpp>

namespace decant {

DECANT_STRICT_BEGIN

namespace detail {

/// The logit that adaptive_p gives a token of probability p.
DECANT_STRICT inline float adapted_logit(double p, double aim) noexcept {
  const double distance = std::abs(p - aim) / 0.3;
  return static_cast<float>(5 - 10 * math::product(distance, distance) / (1 + distance));
}

}  // namespace detail

/// Prefers tokens whose probability is near a target, and moves the target so that the running mean of the chosen
/// tokens' probabilities settles there.
///
/// Effect: every token that is not gone gets the logit 5 - 10 d^2 / (1 + d), d = |p - t| / 0.3, where p is its
/// probability in the row as it came; then a draw. Equal probabilities stay equal; nothing is removed. t = clamp(2
/// target - W / N, 0, 1), where W / N is the mean, weighted by powers of decay, of the probabilities p of the tokens
/// accepted so far (record.log_prob_before); it starts as if it had always stood at the target. accept takes W <- p +
/// decay W, N <- 1 + decay N. Copying forks the state. Put a min_p before it, which cuts off the tail that it would
/// raise; nothing can follow it.
/// Two exponentials a token; accept remembers two numbers a token, for rollback.
/// Off: target < 0, a plain draw that keeps no state. The decay is clamped to [0, 0.99]. Errors: parameter_error for a
/// target that is NaN or above 1, and for a decay that is NaN; rolling back more than was accepted is misuse; no_token
/// on a bad row.
/// Reference: llama.cpp, pull request 17927, 2025.
class adaptive_p : public made_or_error<adaptive_p> {
 public:
  static constexpr std::string_view name = "adaptive_p";

  explicit adaptive_p(double target, double decay = 0.9) : target_(target), decay_(std::clamp(decay, 0.0, 0.99)) {
    detail::raise_if(validate(target, decay));
    mean_ = {target_ / (1 - decay_), 1 / (1 - decay_)};
  }

  static std::optional<parameter_fault> validate(double target, double decay = 0.9) {
    if (math::is_nan(target) || target > 1) return parameter_fault{name, "target", target, "must be a number <= 1"};
    if (math::is_nan(decay)) return parameter_fault{name, "decay", decay, "must be a number"};
    return {};
  }

  token_id operator()(candidates& row, const step_context& context) const {
    narrow(row, context);
    return row.draw(context.draws);
  }

  /// Leaves the row reshaped: the law that is drawn from.
  void narrow(candidates& row, const step_context&) const {
    if (off() || row.status() != row_status::ok) return;
    row.affine(1, -row.max());  // so that rounding a logit to float loses nothing that a low temperature has spread out
    const double log_sum = row.log_sum(), aim = adapted_target();
    row.transform([&](token_id, float logit) {
      return detail::adapted_logit(math::exp(static_cast<double>(logit) - log_sum), aim);
    });
  }

  /// The probability that the next token is drawn towards.
  [[nodiscard]] double adapted_target() const {
    return std::clamp(2 * target_ - mean_.weighted / mean_.weight, 0.0, 1.0);
  }

  void accept(token_id, const step_record& record) {
    if (off()) return;
    trail_.push_back(mean_);
    if (math::is_nan(record.log_prob_before)) return;
    const double p = math::exp(std::min(record.log_prob_before, 0.0));
    mean_ = {p + math::product(decay_, mean_.weighted), 1 + math::product(decay_, mean_.weight)};
  }

  void rollback(std::size_t count) {
    if (off() || count == 0) return;
    DECANT_ASSERT(count <= trail_.size(), "rollback of more tokens than were accepted");
    mean_ = trail_[trail_.size() - count];
    trail_.resize(trail_.size() - count);
  }

  void reset() { rollback(trail_.size()); }

  /// Takes over the running mean and its past from an adaptive_p with other parameters: a change in mid-stream. A reset
  /// leads to this one's own start.
  void continue_from(const adaptive_p& other) {
    if (off() || other.trail_.empty()) return;
    const running_mean start = trail_.empty() ? mean_ : trail_.front();
    mean_ = other.mean_;
    trail_ = other.trail_;
    trail_.front() = start;
  }

  [[nodiscard]] bool off() const { return target_ < 0; }
  [[nodiscard]] bool keeps_state() const { return !off(); }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {target_, decay_}); }

  friend bool operator==(const adaptive_p& a, const adaptive_p& b) {
    return a.target_ == b.target_ && a.decay_ == b.decay_ && a.mean_ == b.mean_ && a.trail_ == b.trail_;
  }

 private:
  struct running_mean {
    double weighted = 0, weight = 0;

    friend bool operator==(const running_mean&, const running_mean&) = default;
  };

  double target_, decay_;
  running_mean mean_;
  std::vector<running_mean> trail_;
};

DECANT_STRICT_END

}  // namespace decant
