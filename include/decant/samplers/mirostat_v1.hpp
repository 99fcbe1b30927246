// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/strict.hpp>
#include <decant/samplers/mirostat.hpp>

namespace decant {

DECANT_STRICT_BEGIN

namespace detail {

/// The exponent s of the Zipf law p_i ~ i^-s that fits neighbouring ratios of a descending list best; 0 for a flat one.
inline double zipf_exponent(std::span<const entry> descending) {
  double products = 0, squares = 0;
  for (std::size_t i = 0; i + 1 < descending.size(); ++i) {
    const double t = math::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    const double b = static_cast<double>(descending[i].logit) - static_cast<double>(descending[i + 1].logit);
    products = math::rounded(products + math::product(t, b));
    squares = math::rounded(squares + math::product(t, t));
  }
  return products > 0 ? products / squares : 0;
}

/// (e 2^mu / (1 - n^-e))^(1/s) with e = s - 1: how many of n > 1 tokens of a Zipf law have a mean surprise of mu bits.
/// Between 0 and n; continuous through s = 1, where e / (1 - n^-e) is 1 / ln n, and towards s = 0, where what is
/// raised to a boundless power is either at most 1 (gives at most 1) or above it (gives n).
inline double mirostat_count(double s, double mu, double n) {
  const double log_n = math::log(n);
  const double x = math::product(s - 1, log_n);
  const bool near_zero = x > -1e-4 && x < 1e-4;
  const double ratio = near_zero ? 1 + x / 2 + math::product(x, x) / 12 : x / (1 - math::exp(-x));
  const double log_base = math::product(mu, 0.6931471805599453) + math::log(ratio / log_n);
  if (log_base > 0 && log_base >= math::product(s, log_n)) return n;
  return s > 0 ? math::exp(log_base / s) : log_base < 0 ? 0 : 1;
}

}  // namespace detail

/// Mirostat 1: fits a Zipf law to the row, keeps as many of the most probable tokens as that law needs for a surprise
/// of mu bits, and steers mu as mirostat does.
///
/// Effect: s is fitted to the ratios of the m most probable tokens (all, if there are fewer); with e = s - 1 and n
/// tokens that are not gone, k = (e 2^mu / (1 - n^-e))^(1/s); keeps the k largest, ties by lower id. `original` rounds
/// k and adds 1, `llama_cpp` truncates it; either keeps at least one and at most n. At s = 1 the limit 2^mu / ln n is
/// taken; on a flat row (s = 0) everything is kept if 2^mu > n - 1, else the formula gives k <= 1.
/// accept, mu, its start at 2 tau, copies and forced tokens: as mirostat. A partial sort; allocates nothing in steady
/// state but accept's memory for rollback.
/// No off value. Errors: parameter_error for tau or eta that is NaN, negative or above 10^6, and for m < 2; rolling
/// back more than was accepted is misuse; no_token on a bad row.
/// Reference: Basu, Ramachandran, Keskar, Varshney, "Mirostat: a neural text decoding algorithm that directly controls
/// perplexity", ICLR 2021, arXiv 2007.14966.
class mirostat_v1 : public made_or_error<mirostat_v1> {
 public:
  static constexpr std::string_view name = "mirostat_v1";
  static constexpr bool only_narrows = true;

  explicit mirostat_v1(double tau = 5, double eta = 0.1, mirostat_surprise observed = mirostat_surprise::original,
                       std::size_t m = 100)
      : state_(tau, eta, observed), m_(m) {
    detail::raise_if(validate(tau, eta, observed, m));
  }

  static std::optional<parameter_fault> validate(double tau = 5, double eta = 0.1,
                                                 mirostat_surprise = mirostat_surprise::original, std::size_t m = 100) {
    if (m < 2) return parameter_fault{name, "m", static_cast<double>(m), "must be at least 2"};
    return detail::mirostat_state::validate(name, tau, eta);
  }

  token_id operator()(candidates& row, const step_context& context) const {
    narrow(row, context);
    return row.draw(context.draws);
  }

  void narrow(candidates& row, const step_context&) const {
    if (row.status() != row_status::ok || row.size() == 1) return;
    const double n = static_cast<double>(row.size());
    const double k = detail::mirostat_count(detail::zipf_exponent(row.descending(m_)), mu(), n);
    const double wanted = state_.observed() == mirostat_surprise::original ? k + 1.5 : k;
    row.keep_largest(static_cast<std::size_t>(std::clamp(wanted, 1.0, n)));
  }

  /// The surprise aimed at, in bits.
  [[nodiscard]] double mu() const { return state_.mu(); }

  void accept(token_id, const step_record& record) { state_.accept(record); }
  void rollback(std::size_t count) { state_.rollback(count); }
  void reset() { state_.reset(); }

  /// Takes over mu and its past from a mirostat_v1 with other parameters: a change in mid-stream.
  void continue_from(const mirostat_v1& other) { state_.continue_from(other.state_); }

  [[nodiscard]] std::string describe() const { return state_.describe(name); }

  friend bool operator==(const mirostat_v1& a, const mirostat_v1& b) { return a.state_ == b.state_ && a.m_ == b.m_; }

 private:
  detail::mirostat_state state_;
  std::size_t m_;
};

DECANT_STRICT_END

}  // namespace decant
