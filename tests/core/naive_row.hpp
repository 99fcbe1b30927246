// SPDX-License-Identifier: MIT
#pragma once

#include <decant/core/candidates.hpp>

#include "math/bits.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace naive {

/// What candidates promises, done the plain way: a full copy, a full sort, nothing lazy but the two numbers of affine.
/// It rounds to float exactly where decant stores a float, so survivors must be equal, not nearly equal.
class row {
 public:
  explicit row(std::vector<float> z) : z_(std::move(z)) {
    for (float& z1 : z_) z1 = decant::math::flush_denormal(z1);
  }

  [[nodiscard]] bool there(std::size_t i) const { return !decant::is_gone(z_[i]); }
  [[nodiscard]] std::size_t length() const { return z_.size(); }
  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(std::ranges::count_if(z_, [](float z) { return !decant::is_gone(z); }));
  }
  [[nodiscard]] double exact(std::size_t i) const { return scale_ * static_cast<double>(z_[i]) + shift_; }
  [[nodiscard]] float stored(std::size_t i) const { return z_[i]; }
  [[nodiscard]] double scale() const { return scale_; }
  [[nodiscard]] float logit(std::size_t i) const {
    if (!there(i) || (scale_ == 1 && shift_ == 0)) return z_[i];
    const double largest = 3.4028234663852886e38;
    return decant::math::flush_denormal(static_cast<float>(std::min(largest, std::max(-largest, exact(i)))));
  }

  void set(std::size_t i, float logit) {
    if (!there(i)) return;
    if (decant::is_gone(logit)) return store(i, logit);
    if (scale_ == 1 && shift_ == 0) return store(i, logit);
    store_scaled(i, (static_cast<double>(logit) - shift_) / scale_, logit);
  }
  void add(std::size_t i, float amount) {
    if (!there(i)) return;
    if (decant::is_gone(amount)) return store(i, amount);
    if (scale_ == 1 && shift_ == 0)
      return store(i, static_cast<float>(static_cast<double>(z_[i]) + static_cast<double>(amount)));
    store_scaled(i, static_cast<double>(z_[i]) + static_cast<double>(amount) / scale_, logit(i) + amount);
  }
  void affine(double scale, double shift) {
    scale_ *= scale;
    shift_ = shift_ * scale + shift;
  }
  template <class F>
  void transform(F f) {
    for (std::size_t i = 0; i < z_.size(); ++i) {
      if (there(i)) z_[i] = decant::math::flush_denormal(f(static_cast<decant::token_id>(i), logit(i)));
    }
    scale_ = 1;
    shift_ = 0;
  }
  template <class F>
  void rewrite(F f) {
    for (std::size_t i = 0; i < z_.size(); ++i)
      z_[i] = decant::math::flush_denormal(f(static_cast<decant::token_id>(i), logit(i)));
    scale_ = 1;
    shift_ = 0;
  }
  template <class Allowed>
  void allow(Allowed allowed) {
    for (std::size_t i = 0; i < z_.size(); ++i) {
      if (!allowed(i)) z_[i] = decant::gone;
    }
  }

  /// All tokens left, by logit descending, ties by lower id.
  [[nodiscard]] std::vector<std::size_t> order() const {
    std::vector<std::size_t> ids;
    for (std::size_t i = 0; i < z_.size(); ++i) {
      if (there(i)) ids.push_back(i);
    }
    std::ranges::stable_sort(ids, [&](std::size_t x, std::size_t y) { return z_[x] > z_[y]; });
    return ids;
  }

  void keep_largest(std::size_t count) { keep(order(), std::max<std::size_t>(count, 1)); }
  void keep_above(double threshold, std::size_t min_keep) {
    const auto ids = order();
    std::size_t count = 0;
    while (count < ids.size() && exact(ids[count]) >= threshold) ++count;
    keep(ids, std::max({count, min_keep, std::size_t{1}}));
  }
  void keep_mass(double p, std::size_t min_keep) {
    if (p >= 1) return;
    keep_reaching(order(), p, min_keep);
  }
  void keep_mass_around(double p, std::size_t min_keep, double around) {
    if (p >= 1) return;
    auto ids = order();
    std::ranges::sort(ids);
    std::ranges::stable_sort(
        ids, [&](std::size_t x, std::size_t y) { return std::abs(exact(x) - around) < std::abs(exact(y) - around); });
    keep_reaching(ids, p, min_keep);
  }

  [[nodiscard]] std::vector<double> probabilities() const {
    std::vector<double> p(z_.size(), 0);
    float top = decant::gone;
    for (std::size_t i = 0; i < z_.size(); ++i) {
      if (there(i) && (decant::is_gone(top) || z_[i] > top)) top = z_[i];
    }
    long double sum = 0;
    const auto weight = [&](std::size_t i) {
      return std::exp((static_cast<long double>(z_[i]) - static_cast<long double>(top)) *
                      static_cast<long double>(scale_));
    };
    for (std::size_t i = 0; i < z_.size(); ++i) {
      if (there(i)) sum += weight(i);
    }
    for (std::size_t i = 0; i < z_.size(); ++i) {
      if (there(i)) p[i] = static_cast<double>(weight(i) / sum);
    }
    return p;
  }

 private:
  void store(std::size_t i, float z) { z_[i] = decant::math::flush_denormal(z); }
  void store_scaled(std::size_t i, double z, float plain) {
    if (std::abs(z) <= 3.4028234663852886e38) return store(i, static_cast<float>(z));
    transform([](decant::token_id, float logit) { return logit; });
    store(i, plain);
  }
  void keep(const std::vector<std::size_t>& ids, std::size_t count) {
    for (std::size_t i = count; i < ids.size(); ++i) z_[ids[i]] = decant::gone;
  }
  void keep_reaching(const std::vector<std::size_t>& ids, double p, std::size_t min_keep) {
    const auto all = probabilities();
    double mass = 0;
    std::size_t count = 0;
    while (count < ids.size() && (mass < p || count < min_keep || count < 1)) mass += all[ids[count++]];
    keep(ids, count);
  }

  std::vector<float> z_;
  double scale_ = 1, shift_ = 0;
};

/// What is left of a row, as decant shows it.
inline std::vector<decant::entry> survivors(const decant::candidates& row) {
  std::vector<decant::entry> all;
  row.visit([&](decant::token_id id, float logit) { all.push_back({id, logit}); });
  return all;
}
inline std::vector<decant::entry> survivors(const row& r) {
  std::vector<decant::entry> all;
  for (std::size_t i = 0; i < r.length(); ++i) {
    if (r.there(i)) all.push_back({static_cast<decant::token_id>(i), r.logit(i)});
  }
  return all;
}
inline std::vector<decant::token_id> ids(const decant::candidates& row) {
  std::vector<decant::token_id> all;
  row.visit([&](decant::token_id id, float) { all.push_back(id); });
  return all;
}

inline std::vector<float> random_row(test_bits::splitmix& next, std::size_t size, double low = -8, double high = 8) {
  std::vector<float> row(size);
  for (float& z : row) z = static_cast<float>(next.between(low, high));
  return row;
}

/// Natural logarithms of probabilities.
inline std::vector<float> logs(std::initializer_list<double> probabilities) {
  std::vector<float> row;
  for (const double p : probabilities) row.push_back(static_cast<float>(std::log(p)));
  return row;
}

}  // namespace naive
