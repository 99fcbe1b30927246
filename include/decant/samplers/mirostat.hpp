// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/strict.hpp>

namespace decant {

DECANT_STRICT_BEGIN

/// Under which distribution mirostat measures the surprise of the token that was chosen.
enum class mirostat_surprise : std::uint8_t {
  original,   ///< the row as it came, before anything was removed: the authors' script. Mean surprise settles at tau
  llama_cpp,  ///< what was left, renormalised: surprises are smaller, so mu settles higher
};

namespace detail {

/// The feedback loop that both versions of mirostat share: mu, and what it was before each accepted token.
class mirostat_state {
 public:
  mirostat_state(double tau, double eta, mirostat_surprise observed)
      : tau_(tau), eta_(eta), observed_(observed), mu_(2 * tau) {}

  static std::optional<parameter_fault> validate(std::string_view policy, double tau, double eta) {
    // 1e6 bits is beyond what any row can be surprised by; the limit keeps the arithmetic finite.
    const auto valid = [](double x) { return math::is_finite(x) && x >= 0 && x <= 1e6; };
    if (!valid(tau)) return parameter_fault{policy, "tau", tau, "must lie in [0, 1000000]"};
    if (!valid(eta)) return parameter_fault{policy, "eta", eta, "must lie in [0, 1000000]"};
    return {};
  }

  [[nodiscard]] double mu() const { return mu_; }
  [[nodiscard]] mirostat_surprise observed() const { return observed_; }

  void accept(const step_record& record) {
    trail_.push_back(mu_);
    const double log_prob = observed_ == mirostat_surprise::original ? record.log_prob_before : record.log_prob_after;
    if (!math::is_finite(log_prob)) return;
    const double error = math::rounded(-log_prob * bits_per_nat) - tau_;
    mu_ = std::clamp(mu_ - math::product(eta_, error), -0x1p900, 0x1p900);
  }

  void rollback(std::size_t count) {
    DECANT_ASSERT(count <= trail_.size(), "rollback of more tokens than were accepted");
    if (count == 0) return;
    mu_ = trail_[trail_.size() - count];
    trail_.resize(trail_.size() - count);
  }

  void reset() { rollback(trail_.size()); }

  /// Goes on where another loop stands; a reset leads to this one's own start.
  void continue_from(const mirostat_state& other) {
    if (other.trail_.empty()) return;
    const double start = trail_.empty() ? mu_ : trail_.front();
    mu_ = other.mu_;
    trail_ = other.trail_;
    trail_.front() = start;
  }

  [[nodiscard]] std::string describe(std::string_view name) const {
    std::string text = call_text(name, {tau_, eta_});
    if (observed_ == mirostat_surprise::llama_cpp) text.insert(text.size() - 1, ", llama_cpp");
    return text;
  }

  friend bool operator==(const mirostat_state&, const mirostat_state&) = default;

 private:
  static constexpr double bits_per_nat = 1.4426950408889634;

  double tau_, eta_;
  mirostat_surprise observed_;
  double mu_;
  std::vector<double> trail_;
};

}  // namespace detail

/// Mirostat 2: draws from the tokens whose surprise is at most mu bits, and steers mu so that the surprise of what is
/// chosen stays near tau bits a token.
///
/// Effect: keeps -log2 p <= mu (the argmax in any case; ties stand or fall together, except that of equal tokens all
/// above mu the lowest id is kept), renormalises and draws. A surprise within 10^-9 bits of mu counts as equal to it:
/// rounding must not tear a flat row apart. accept sets mu <- mu - eta (surprise - tau); mu starts at 2 tau, is one a
/// sequence, and a copy of the policy forks it. A record whose log-probability is not finite (a token that could not
/// have been drawn) leaves mu alone. Put nothing after it and no other truncation before it: that one would decide.
/// O(n), a few passes; accept remembers one number a token, for rollback, and nothing else allocates.
/// No off value; eta = 0 holds mu and makes it an epsilon cutoff at 2^-mu. Errors: parameter_error for tau or eta that
/// is NaN, negative or above 10^6; rolling back more than was accepted is misuse; no_token on a bad row.
/// Reference: Basu, Ramachandran, Keskar, Varshney, "Mirostat: a neural text decoding algorithm that directly controls
/// perplexity", ICLR 2021, arXiv 2007.14966. The defaults are llama.cpp's; the paper used tau = 3.
class mirostat : public made_or_error<mirostat> {
 public:
  static constexpr std::string_view name = "mirostat";
  static constexpr bool only_narrows = true;

  /// `tau` in bits a token, `eta` the learning rate.
  explicit mirostat(double tau = 5, double eta = 0.1, mirostat_surprise observed = mirostat_surprise::original)
      : state_(tau, eta, observed) {
    detail::raise_if(validate(tau, eta));
  }

  static std::optional<parameter_fault> validate(double tau = 5, double eta = 0.1,
                                                 mirostat_surprise = mirostat_surprise::original) {
    return detail::mirostat_state::validate(name, tau, eta);
  }

  token_id operator()(candidates& row, const step_context& context) const {
    narrow(row, context);
    return row.draw(context.draws);
  }

  void narrow(candidates& row, const step_context&) const {
    row.keep_probable({-math::product(mu() + 1e-9, nats_per_bit)});
  }

  /// The largest surprise that is let through, in bits.
  [[nodiscard]] double mu() const { return state_.mu(); }

  void accept(token_id, const step_record& record) { state_.accept(record); }
  void rollback(std::size_t count) { state_.rollback(count); }
  void reset() { state_.reset(); }

  /// Takes over mu and its past from a mirostat with other parameters: a change in mid-stream.
  void continue_from(const mirostat& other) { state_.continue_from(other.state_); }

  [[nodiscard]] std::string describe() const { return state_.describe(name); }

  friend bool operator==(const mirostat& a, const mirostat& b) { return a.state_ == b.state_; }

 private:
  static constexpr double nats_per_bit = 0.6931471805599453;

  detail::mirostat_state state_;
};

DECANT_STRICT_END

}  // namespace decant
