// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include <decant/core/candidates.hpp>
#include <decant/core/token.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// The biases that fall on one token, added up in double so that the logit is rounded to float once.
///
/// A bias of -inf bans, whatever else is added. A sum of 0 leaves the logit as it is, bit for bit.
class bias_sum {
 public:
  /// What a bias must be, for messages; and whether one is: finite, or -inf.
  static constexpr const char* rule = "must be a finite number, or -inf to ban";
  static constexpr bool valid(double bias) { return math::is_finite(bias) || bans(bias); }

  /// Whether a bias is -inf.
  static constexpr bool bans(double bias) { return std::bit_cast<std::uint64_t>(bias) == 0xFFF0000000000000U; }

  /// Beyond the largest float a bias says no more.
  void add(double bias) {
    constexpr double largest = std::numeric_limits<float>::max();
    if (bans(bias)) {
      banned_ = true;
    } else {
      sum_ = math::rounded(sum_ + std::clamp(bias, -largest, largest));
    }
  }

  [[nodiscard]] bool none() const { return !banned_ && sum_ == 0; }
  [[nodiscard]] bool banned() const { return banned_; }
  /// The sum of the finite ones.
  [[nodiscard]] float amount() const { return math::saturated(sum_); }

  /// Changes the token's logit.
  void apply(candidates& row, token_id id) const {
    if (banned_) {
      row.ban(id);
    } else if (sum_ != 0) {
      row.add(id, amount());
    }
  }

 private:
  double sum_ = 0;
  bool banned_ = false;
};

}  // namespace decant
