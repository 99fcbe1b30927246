// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include <decant/math/isa.hpp>

// Inputs made of bit patterns and hashes of output bits: what two compilers, or two sets of flags, are compared by.

namespace test_bits {

/// The instruction sets that this machine has kernels for.
inline std::vector<decant::math::isa> forms() {
  using decant::math::isa;
  std::vector<isa> all{isa::portable};
  if (decant::math::best_isa() >= isa::avx2) all.push_back(isa::avx2);
  if (decant::math::best_isa() >= isa::avx512) all.push_back(isa::avx512);
  return all;
}

/// A generator of its own, so that the inputs do not depend on what is tested.
class splitmix {
 public:
  explicit splitmix(std::uint64_t seed) : state_(seed) {}

  std::uint64_t operator()() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  /// In [0, count).
  std::uint64_t below(std::uint64_t count) { return (*this)() % count; }
  /// In [0, 1), a multiple of 2^-53.
  double unit() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }
  /// In [low, high).
  double between(double low, double high) {
    // Through volatile: no compiler may fuse the product into the sum, or inputs would differ from build to build.
    volatile double offset = (high - low) * unit();
    return low + offset;
  }

 private:
  std::uint64_t state_;
};

class hash {
 public:
  void add(std::uint64_t bits) {
    for (int i = 0; i < 8; ++i) {
      value_ = (value_ ^ (bits & 0xFF)) * 0x100000001B3U;
      bits >>= 8;
    }
  }
  void add(double x) { add(std::bit_cast<std::uint64_t>(x)); }
  void add(float x) { add(std::uint64_t{std::bit_cast<std::uint32_t>(x)}); }

  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325U;
};

inline std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
inline std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }
inline float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline double double_of(std::uint64_t bits) { return std::bit_cast<double>(bits); }

/// NaN told by bits, so that the tests mean the same under -ffast-math.
inline bool nan_bits(double x) { return (bits_of(x) << 1) > 0xFFE0000000000000U; }
inline bool nan_bits(float x) { return (bits_of(x) << 1) > 0xFF000000U; }

}  // namespace test_bits
