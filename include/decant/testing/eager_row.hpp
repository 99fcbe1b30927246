// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/token.hpp>
#include <decant/math/scalar.hpp>

namespace decant::testing {

/// What `candidates` must be equal to: the same verbs over a plain array, each done at once and in full.
///
/// No modes, no laziness, no undo: every question and every narrowing walks the whole array, in double. It rounds to
/// float exactly where candidates stores a float (set, add, transform), so survivors can be compared for equality. Use
/// it to state what a processor means, and compare: see tests/property. O(n log n) a narrowing.
class eager_row {
 public:
  explicit eager_row(std::span<const float> logits) {
    for (const float z : logits) z_.push_back(math::flush_denormal(z));
  }

  /// Reads the row: what is found bad stays bad, and from then on the verbs do nothing.
  [[nodiscard]] row_status status() {
    if (status_ != row_status::ok) return status_;
    if (ids().empty()) status_ = row_status::empty;
    for (const float z : z_) {
      if (!is_gone(z) && !math::is_finite(z)) status_ = row_status::not_finite;
    }
    return status_;
  }
  /// Whether a reading has found the row bad. Does not read.
  [[nodiscard]] bool found_bad() const { return bad(); }
  [[nodiscard]] std::size_t vocabulary_size() const { return z_.size(); }
  [[nodiscard]] std::size_t size() { return static_cast<void>(status()), ids().size(); }
  [[nodiscard]] float logit(token_id id) const { return rounded(at(id)); }
  [[nodiscard]] double max() { return good() ? effective(top()) : static_cast<double>(gone); }
  [[nodiscard]] double log_sum(double power = 1) {
    if (!good()) return static_cast<double>(gone);
    const float highest = top();
    double sum = 0;
    for (const token_id id : ids()) sum = math::rounded(sum + math::exp(math::product(power, below(id, highest))));
    return math::product(power, effective(highest)) + math::log(sum);
  }
  [[nodiscard]] double entropy() {
    if (!good()) return 0;
    const float highest = top();
    double sum = 0, weighted = 0;
    for (const token_id id : ids()) {
      const double d = below(id, highest), w = math::exp(d);
      sum = math::rounded(sum + w);
      weighted = math::rounded(weighted + math::product(w, d));
    }
    return std::max(0.0, math::log(sum) - weighted / sum);
  }
  [[nodiscard]] double sigma() {
    if (!good()) return 0;
    const float highest = top();
    const auto left = ids();
    double mean = 0, squares = 0;
    for (const token_id id : left) mean = math::rounded(mean + below(id, highest));
    mean /= static_cast<double>(left.size());
    for (const token_id id : left) {
      const double d = below(id, highest) - mean;
      squares = math::rounded(squares + math::product(d, d));
    }
    return std::sqrt(squares / static_cast<double>(left.size()));
  }

  /// logit - max() of each id, -inf for those that are gone: in double, with nothing that a shift would round away.
  [[nodiscard]] std::vector<double> below_max() {
    std::vector<double> values(z_.size(), static_cast<double>(gone));
    if (!good()) return values;
    const float highest = top();
    for (const token_id id : ids()) values[static_cast<std::size_t>(id)] = below(id, highest);
    return values;
  }
  /// The natural logarithm of the probability of each id, -inf for those that are gone.
  [[nodiscard]] std::vector<double> log_probabilities() {
    std::vector<double> values = below_max();
    double sum = 0;
    for (const double d : values) sum = math::rounded(sum + math::exp(d));
    for (double& d : values) d -= math::log(sum);
    return values;
  }

  /// Ids of the tokens left, in ascending id.
  [[nodiscard]] std::vector<token_id> ids() const {
    std::vector<token_id> left;
    for (std::size_t i = 0; i < z_.size(); ++i) {
      if (!is_gone(z_[i])) left.push_back(static_cast<token_id>(i));
    }
    return left;
  }
  /// Ids by (logit descending, id ascending); none of a bad row.
  [[nodiscard]] std::vector<token_id> descending() {
    if (!good()) return {};
    std::vector<token_id> order = ids();
    std::sort(order.begin(), order.end(),
              [&](token_id x, token_id y) { return at(x) > at(y) || (at(x) == at(y) && x < y); });
    return order;
  }
  /// The probability of each id, 0 for those that are gone; in double throughout.
  [[nodiscard]] std::vector<double> probabilities() {
    std::vector<double> p(z_.size(), 0);
    if (!good()) return p;
    const float highest = top();
    double sum = 0;
    for (const token_id id : ids()) sum += p[static_cast<std::size_t>(id)] = math::exp(below(id, highest));
    for (double& probability : p) probability /= sum;
    return p;
  }

  void set(token_id id, float logit) {
    if (bad() || is_gone(at(id))) return;
    if (!math::is_finite(logit)) return store(id, logit);
    store_scaled(id, (static_cast<double>(logit) - b_) / a_, [&] { return logit; });
  }
  void add(token_id id, float amount) {
    if (bad() || !math::is_finite(at(id))) return;
    if (!math::is_finite(amount)) return store(id, amount);
    const auto plain = [&] { return math::saturated(static_cast<double>(at(id)) + static_cast<double>(amount)); };
    store_scaled(id, static_cast<double>(at(id)) + static_cast<double>(amount) / a_, plain);
  }
  void ban(token_id id) { set(id, gone); }
  void affine(double a, double b = 0) {
    if (bad()) return;
    a_ = std::clamp(a_ * a, 0x1p-400, 0x1p400);
    b_ = std::clamp(math::product(b_, a) + b, -0x1p900, 0x1p900);
  }
  template <class F>
  void transform(F f) {
    if (bad()) return;
    for (const token_id id : ids()) store(id, f(id, logit(id)));
    a_ = 1;
    b_ = 0;
  }
  template <class F>
  void rewrite(F f) {
    for (std::size_t i = 0; i < z_.size(); ++i)
      store(static_cast<token_id>(i), f(static_cast<token_id>(i), rounded(z_[i])));
    a_ = 1;
    b_ = 0;
    status_ = row_status::ok;
  }
  /// What allow does: gone where the predicate says no.
  template <class Predicate>
  void keep_if(Predicate keep) {
    if (bad()) return;
    for (std::size_t i = 0; i < z_.size(); ++i) {
      if (!keep(static_cast<token_id>(i))) z_[i] = gone;
    }
  }

  void keep_largest(std::size_t count) {
    if (good()) keep_first(descending(), std::max<std::size_t>(count, 1));
  }
  void keep_above(double threshold, std::size_t min_keep = 1) {
    if (!good()) return;
    const auto order = descending();
    std::size_t kept = 0;
    while (kept < order.size() && effective(at(order[kept])) >= threshold) ++kept;
    keep_first(order, std::max({kept, min_keep, std::size_t{1}}));
  }
  void keep_mass(double p, std::size_t min_keep = 1) {
    if (good()) keep_mass_of(descending(), p, min_keep);
  }
  void keep_mass_around(double p, double around) {
    if (!good()) return;
    auto order = ids();
    const auto distance = [&](token_id id) { return std::abs(effective(at(id)) - around); };
    std::sort(order.begin(), order.end(), [&](token_id x, token_id y) {
      return distance(x) < distance(y) || (distance(x) == distance(y) && x < y);
    });
    keep_mass_of(order, p, 1);
  }

  /// Keeps the first `count` tokens, at least one, of an order of all that are left.
  void keep_first(const std::vector<token_id>& order, std::size_t count) {
    for (std::size_t i = std::max<std::size_t>(count, 1); i < order.size(); ++i) store(order[i], gone);
  }

 private:
  [[nodiscard]] bool bad() const { return status_ != row_status::ok; }
  [[nodiscard]] bool good() { return status() == row_status::ok; }
  [[nodiscard]] float at(token_id id) const { return z_[static_cast<std::size_t>(id)]; }
  void store(token_id id, float z) { z_[static_cast<std::size_t>(id)] = math::flush_denormal(z); }
  /// Stores a value that a and b have been divided out of; where a float cannot hold that, but could hold all logits as
  /// they stand, these are stored first, and then the value as it is.
  template <class Plain>
  void store_scaled(token_id id, double z, Plain plain) {
    if (a_ == 1 && b_ == 0) return store(id, plain());
    constexpr double largest = std::numeric_limits<float>::max(), smallest = std::numeric_limits<float>::min();
    const bool holds = z == 0 || (std::abs(z) <= largest && std::abs(z) >= smallest);
    const auto left = ids();
    if (holds || !std::all_of(left.begin(), left.end(), [&](token_id x) { return effective(at(x)) <= largest; }))
      return store(id, math::saturated(z));
    transform([](token_id, float logit) { return logit; });
    store(id, plain());
  }
  [[nodiscard]] double effective(float z) const {
    return is_gone(z) ? static_cast<double>(gone) : math::product(a_, static_cast<double>(z)) + b_;
  }
  [[nodiscard]] float rounded(float z) const {
    return !math::is_finite(z) || (a_ == 1 && b_ == 0) ? z : math::flush_denormal(math::saturated(effective(z)));
  }
  [[nodiscard]] float top() const { return *std::max_element(z_.begin(), z_.end()); }
  [[nodiscard]] double below(token_id id, float highest) const {
    return math::product(a_, static_cast<double>(at(id)) - static_cast<double>(highest));
  }

  void keep_mass_of(const std::vector<token_id>& order, double p, std::size_t min_keep) {
    if (p >= 1) return;
    const float highest = top();
    double total = 0, mass = 0;
    for (const token_id id : ids()) total = math::rounded(total + math::exp(below(id, highest)));
    std::size_t kept = 0;
    while (kept < order.size() && (mass < math::product(p, total) || kept < std::max<std::size_t>(min_keep, 1))) {
      mass = math::rounded(mass + math::exp(below(order[kept++], highest)));
    }
    keep_first(order, kept);
  }

  std::vector<float> z_;
  double a_ = 1, b_ = 0;
  row_status status_ = row_status::ok;
};

}  // namespace decant::testing
