// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace test_support {

/// A natural number of any size: what fractions need.
class natural {
 public:
  natural() = default;
  natural(std::uint64_t value) {
    for (; value > 0; value >>= 32) limbs_.push_back(static_cast<std::uint32_t>(value));
  }

  [[nodiscard]] bool zero() const { return limbs_.empty(); }
  [[nodiscard]] bool one() const { return limbs_.size() == 1 && limbs_[0] == 1; }
  [[nodiscard]] bool odd() const { return !zero() && (limbs_[0] & 1) != 0; }

  friend bool operator==(const natural&, const natural&) = default;
  friend bool operator<(const natural& a, const natural& b) {
    if (a.limbs_.size() != b.limbs_.size()) return a.limbs_.size() < b.limbs_.size();
    return std::lexicographical_compare(a.limbs_.rbegin(), a.limbs_.rend(), b.limbs_.rbegin(), b.limbs_.rend());
  }

  friend natural operator+(const natural& a, const natural& b) {
    natural out;
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < std::max(a.limbs_.size(), b.limbs_.size()) || carry > 0; ++i) {
      carry += std::uint64_t{a.limb(i)} + b.limb(i);
      out.limbs_.push_back(static_cast<std::uint32_t>(carry));
      carry >>= 32;
    }
    return out;
  }

  /// a - b for b <= a.
  friend natural operator-(const natural& a, const natural& b) {
    natural out = a;
    out.take(b);
    return out;
  }

  friend natural operator*(const natural& a, const natural& b) {
    natural out;
    out.limbs_.assign(a.limbs_.size() + b.limbs_.size(), 0);
    for (std::size_t i = 0; i < a.limbs_.size(); ++i) {
      std::uint64_t carry = 0;
      for (std::size_t j = 0; j < b.limbs_.size() || carry > 0; ++j) {
        carry += out.limbs_[i + j] + std::uint64_t{a.limbs_[i]} * b.limb(j);
        out.limbs_[i + j] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
    }
    return out.trim();
  }

  /// Quotient and remainder for a divisor below 2^32.
  static std::pair<natural, std::uint32_t> divide(const natural& a, std::uint32_t b) {
    natural quotient = a;
    std::uint64_t rest = 0;
    for (std::size_t i = quotient.limbs_.size(); i-- > 0;) {
      rest = rest << 32 | quotient.limbs_[i];
      quotient.limbs_[i] = static_cast<std::uint32_t>(rest / b);
      rest %= b;
    }
    return {quotient.trim(), static_cast<std::uint32_t>(rest)};
  }

  /// The quotient by long division: each digit is guessed from the two leading ones, and put right.
  static natural quotient(const natural& a, const natural& b) {
    if (b.limbs_.size() == 1) return divide(a, b.limbs_[0]).first;
    if (a < b) return {};
    const auto shift = static_cast<std::size_t>(std::countl_zero(b.limbs_.back()));
    const std::vector<std::uint32_t> v = b.shifted_up(shift);
    std::vector<std::uint32_t> u = a.shifted_up(shift);
    u.push_back(0);
    const std::size_t n = b.limbs_.size();
    natural out;
    out.limbs_.assign(a.limbs_.size() - n + 1, 0);
    for (std::size_t j = out.limbs_.size(); j-- > 0;) {
      const std::uint64_t leading = std::uint64_t{u[j + n]} << 32 | u[j + n - 1];
      std::uint64_t digit = leading / v[n - 1], rest = leading % v[n - 1];
      while (digit >> 32 != 0 || digit * v[n - 2] > (rest << 32 | u[j + n - 2])) {
        --digit;
        rest += v[n - 1];
        if (rest >> 32 != 0) break;
      }
      if (subtract_product(u, j, v, n, digit)) {
        --digit;
        std::uint64_t carry = 0;
        for (std::size_t i = 0; i <= n; ++i) {
          carry += std::uint64_t{u[i + j]} + (i < n ? v[i] : 0);
          u[i + j] = static_cast<std::uint32_t>(carry);
          carry >>= 32;
        }
      }
      out.limbs_[j] = static_cast<std::uint32_t>(digit);
    }
    return out.trim();
  }

  /// The greatest common divisor, by halving and subtracting.
  static natural gcd(natural a, natural b) {
    if (a.zero()) return b;
    if (b.zero()) return a;
    std::size_t twos = 0;
    const std::size_t of_a = a.make_odd(), of_b = b.make_odd();
    twos = std::min(of_a, of_b);
    while (!(a == b)) {
      if (a.small() && b.small()) {
        std::uint64_t x = a.value(), y = b.value();
        while (x != 0) y = std::exchange(x, y % x);
        a = natural(y);
        break;
      }
      if (a < b) std::swap(a, b);
      a.take(b);
      a.make_odd();
    }
    for (; twos > 0; --twos) a = a + a;
    return a;
  }

  /// The leading digits, and how many bits they stand above the end: for ratios of numbers that no double can hold.
  [[nodiscard]] std::pair<double, int> scaled() const {
    double value = 0;
    const std::size_t top = limbs_.size();
    for (std::size_t i = top; i-- > (top > 3 ? top - 3 : 0);) value = value * 0x1p32 + limbs_[i];
    return {value, static_cast<int>(top > 3 ? 32 * (top - 3) : 0)};
  }

  [[nodiscard]] std::string text() const {
    std::string digits;
    natural rest = *this;
    while (!rest.zero()) {
      const auto [tens, digit] = divide(rest, 10);
      digits += static_cast<char>('0' + static_cast<char>(digit));
      rest = tens;
    }
    std::reverse(digits.begin(), digits.end());
    return digits.empty() ? "0" : digits;
  }

 private:
  [[nodiscard]] std::uint32_t limb(std::size_t i) const { return i < limbs_.size() ? limbs_[i] : 0; }
  [[nodiscard]] bool small() const { return limbs_.size() <= 2; }
  [[nodiscard]] std::uint64_t value() const { return limb(0) | std::uint64_t{limb(1)} << 32; }

  void take(const natural& b) {
    std::uint64_t borrow = 0;
    for (std::size_t i = 0; i < limbs_.size(); ++i) {
      const std::uint64_t taken = b.limb(i) + borrow;
      borrow = limbs_[i] < taken ? 1 : 0;
      limbs_[i] = static_cast<std::uint32_t>(limbs_[i] - taken);
    }
    trim();
  }

  [[nodiscard]] std::vector<std::uint32_t> shifted_up(std::size_t bits) const {
    std::vector<std::uint32_t> out;
    std::uint64_t carry = 0;
    for (const std::uint32_t limb : limbs_) {
      carry |= std::uint64_t{limb} << bits;
      out.push_back(static_cast<std::uint32_t>(carry));
      carry >>= 32;
    }
    out.push_back(static_cast<std::uint32_t>(carry));
    return out;
  }

  /// u -= v * digit at place j; whether that went below zero.
  static bool subtract_product(std::vector<std::uint32_t>& u, std::size_t j, const std::vector<std::uint32_t>& v,
                               std::size_t n, std::uint64_t digit) {
    std::uint64_t carry = 0, borrow = 0;
    for (std::size_t i = 0; i <= n; ++i) {
      carry += i < n ? digit * v[i] : 0;
      const std::uint64_t taken = (carry & 0xFFFFFFFFU) + borrow;
      borrow = u[i + j] < taken ? 1 : 0;
      u[i + j] = static_cast<std::uint32_t>(u[i + j] - taken);
      carry >>= 32;
    }
    return borrow != 0;
  }

  natural& trim() {
    while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
    return *this;
  }

  /// Divides by two as often as it goes; how often.
  std::size_t make_odd() {
    std::size_t zeros = 0;
    while (limbs_[zeros / 32] == 0) zeros += 32;
    zeros += static_cast<std::size_t>(std::countr_zero(limbs_[zeros / 32]));
    const std::size_t whole = zeros / 32, bits = zeros % 32;
    const std::size_t kept = limbs_.size() - whole;
    for (std::size_t i = 0; i < kept; ++i) {
      const std::uint64_t both = limb(i + whole) | std::uint64_t{limb(i + whole + 1)} << 32;
      limbs_[i] = static_cast<std::uint32_t>(both >> bits);
    }
    limbs_.resize(kept);
    trim();
    return zeros;
  }

  std::vector<std::uint32_t> limbs_;  // the lowest first, the highest not 0
};

/// An exact fraction in lowest terms. What is proven with it is equal, not nearly.
class rational {
 public:
  rational(int value = 0)
      : negative_(value < 0),
        numerator_(static_cast<std::uint64_t>(value < 0 ? -static_cast<long long>(value) : value)) {}
  rational(int numerator, int denominator) : rational(rational(numerator) / rational(denominator)) {}

  /// Exactly what a double holds.
  explicit rational(double value) {
    int exponent = 0;
    const double mantissa = std::frexp(std::abs(value), &exponent);
    rational out;
    out.numerator_ = natural(static_cast<std::uint64_t>(std::ldexp(mantissa, 53)));
    for (exponent -= 53; exponent > 0; --exponent) out.numerator_ = out.numerator_ + out.numerator_;
    for (; exponent < 0; ++exponent) out.denominator_ = out.denominator_ + out.denominator_;
    out.negative_ = value < 0;
    *this = out.reduced();
  }

  friend bool operator==(const rational&, const rational&) = default;
  friend bool operator<(const rational& a, const rational& b) {
    if (a.negative_ != b.negative_) return a.negative_;
    const natural x = a.numerator_ * b.denominator_, y = b.numerator_ * a.denominator_;
    return a.negative_ ? y < x : x < y;
  }
  friend bool operator>(const rational& a, const rational& b) { return b < a; }
  friend bool operator<=(const rational& a, const rational& b) { return !(b < a); }
  friend bool operator>=(const rational& a, const rational& b) { return !(a < b); }

  rational operator-() const {
    rational out = *this;
    out.negative_ = !negative_ && !numerator_.zero();
    return out;
  }
  friend rational operator+(const rational& a, const rational& b) {
    const natural x = a.numerator_ * b.denominator_, y = b.numerator_ * a.denominator_;
    rational out;
    out.denominator_ = a.denominator_ * b.denominator_;
    if (a.negative_ == b.negative_) {
      out.numerator_ = x + y;
      out.negative_ = a.negative_;
    } else {
      out.numerator_ = x < y ? y - x : x - y;
      out.negative_ = x < y ? b.negative_ : a.negative_;
    }
    return out.reduced();
  }
  friend rational operator-(const rational& a, const rational& b) { return a + -b; }
  friend rational operator*(const rational& a, const rational& b) {
    rational out;
    out.numerator_ = a.numerator_ * b.numerator_;
    out.denominator_ = a.denominator_ * b.denominator_;
    out.negative_ = a.negative_ != b.negative_;
    return out.reduced();
  }
  friend rational operator/(const rational& a, const rational& b) {
    rational inverse;
    inverse.numerator_ = b.denominator_;
    inverse.denominator_ = b.numerator_;
    inverse.negative_ = b.negative_;
    return a * inverse;
  }
  rational& operator+=(const rational& other) { return *this = *this + other; }

  explicit operator double() const {
    const auto [n, up] = numerator_.scaled();
    const auto [d, down] = denominator_.scaled();
    return (negative_ ? -1 : 1) * std::ldexp(n / d, up - down);
  }

  [[nodiscard]] std::string text() const {
    return (negative_ ? "-" : "") + numerator_.text() + (denominator_.one() ? "" : "/" + denominator_.text());
  }

 private:
  rational reduced() {
    if (numerator_.zero()) return {};
    const natural divisor = natural::gcd(numerator_, denominator_);
    if (!divisor.one()) {
      numerator_ = natural::quotient(numerator_, divisor);
      denominator_ = natural::quotient(denominator_, divisor);
    }
    return *this;
  }

  bool negative_ = false;
  natural numerator_, denominator_ = natural(1);
};

}  // namespace test_support
