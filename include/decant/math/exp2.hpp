// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <decant/math/scalar.hpp>
#include <decant/math/strict.hpp>

namespace decant::math {

DECANT_STRICT_BEGIN

/// 2^y for y <= 0 in float: exactly 1 at 0, relative error below 1.8e-7, 0 below -126 (never a denormal).
///
/// This is the weight that draws and laws are made of, so its bits are part of what a seed means: the fused
/// multiply-adds are written out, and every faster form must give these very bits.
DECANT_STRICT inline float exp2_weight(float y) noexcept {
  if (!(y >= -126.0F)) return 0;
  constexpr float to_nearest = 12582912.0F;  // 1.5 * 2^23: adding it leaves no fraction bits
  const float n = (y + to_nearest) - to_nearest;
  const float f = y - n;  // exact, |f| <= 1/2
  // Minimax on [-1/2, 1/2] in relative error, with the constant term held at 1.
  float p = 0x1.5bba14p-10F;
  p = __builtin_fmaf(p, f, 0x1.3cea88p-7F);
  p = __builtin_fmaf(p, f, 0x1.c6b752p-5F);
  p = __builtin_fmaf(p, f, 0x1.ebf9bcp-3F);
  p = __builtin_fmaf(p, f, 0x1.62e42ap-1F);
  p = __builtin_fmaf(p, f, 1.0F);
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(p) + static_cast<std::int32_t>(n) * (1 << 23));
}

/// 1 / ln 2.
inline constexpr double per_doubling = 1.4426950408889634;

/// 2^f in double for |f| <= 1/2 within 1.9e-9 of itself, highest power first: minimax in relative error.
inline constexpr double near_exp2_coefficients[] = {0x1.41d3336e31c5bp-13, 0x1.5f456a8ac2c04p-10, 0x1.3b2dbbc0f839fp-7,
                                                    0x1.c6aed4b95100bp-5,  0x1.ebfbdadcb0c82p-3,  0x1.62e430c7e9236p-1,
                                                    0x1.00000002614ffp+0};

/// The bits of 2^y as a number, but for its fraction taken as it is: a float's exponent grows by 1 a doubling, and
/// between doublings its value grows by a straight line. So 2^y <= rough <= rough_excess 2^y.
inline constexpr double rough_excess = 1.0615;

/// The weights of a law in float, 2^(narrow (z - reference)): what kernels are told.
struct weight_parameters {
  float reference, narrow;
};

/// What quick sums are told: exponents y = slope * z + offset to base 2, by how much they are too large because the
/// offset was rounded, and two to the power of minus that.
struct quick_parameters {
  float slope, offset;
  double excess, factor;
};
[[nodiscard]] DECANT_STRICT inline quick_parameters quick_parameters_of(const weight_parameters& p) noexcept {
  const double exact = -product(static_cast<double>(p.reference), static_cast<double>(p.narrow));
  const auto offset = static_cast<float>(exact);
  const double excess = static_cast<double>(offset) - exact;
  return {p.narrow, offset, excess, exp(product(-excess, 0.6931471805599453))};
}

/// What a bend is told: a value z becomes (cube d - square) d^2 with d = scale (z - reference) <= 0. Neither power is
/// negative, so that order stays.
struct bend_parameters {
  float reference;
  double scale, square, cube;
};

/// What a raise is told: a value z becomes the float nearest to scale z + shift, and those chosen become `amount` more.
struct raise_parameters {
  double scale, shift, amount;

  [[nodiscard]] bool rescales() const noexcept { return !(scale == 1 && shift == 0); }
};

/// 2^f in float for 0 <= f < 1 within 1.3e-7 of itself, highest power first: minimax in relative error.
inline constexpr float quick_exp2_coefficients[] = {0x1.ec3209a2p-10F, 0x1.26900cdcp-7F, 0x1.c9544648p-5F,
                                                    0x1.ebd5a8dap-3F,  0x1.62e4f5aap-1F, 0x1.fffffep-1F};

/// 2^n for a whole number n below 1024; 0 where that would be denormal.
[[nodiscard]] inline double power_of_two(double n) noexcept {
  return n < -1022 ? 0 : std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(n) + 1023) << 52);
}

/// What swift sums are told of values z: exponents to base 2 are slope * z + shift, where the shift is a whole number,
/// kept with the 1.5 * 2^23 that leaves no fraction bits; and the value that lower ones count as.
struct swift_parameters {
  float slope, base, least;

  static constexpr float to_nearest = 12582912.0F;
  /// So far above the reference exponents may lie, and so far below it they are told from each other.
  static constexpr double above = 64, below = 124;
  /// And so far from 0 the reference's own.
  static constexpr double limit = 0x1p21;
};
/// With `reference` at about exponent 0, which is at most swift_parameters::limit away without a shift.
[[nodiscard]] DECANT_STRICT inline swift_parameters swift_parameters_of(const weight_parameters& p) noexcept {
  const double shift = -std::floor(product(static_cast<double>(p.reference), static_cast<double>(p.narrow)));
  return {p.narrow, static_cast<float>(static_cast<double>(swift_parameters::to_nearest) + shift),
          static_cast<float>(-(swift_parameters::below + shift) / static_cast<double>(p.narrow))};
}

/// 2^f in float for |f| <= 1/2 within 1.8e-7 of itself, highest power first: those of exp2_weight.
inline constexpr float swift_exp2_coefficients[] = {0x1.5bba14p-10F, 0x1.3cea88p-7F, 0x1.c6b752p-5F,
                                                    0x1.ebf9bcp-3F,  0x1.62e42ap-1F, 1.0F};

/// Maps stored logits z to weights e^(scale (z - reference)), which are at most 1.
class weight_map {
 public:
  /// `reference` is the largest z, `scale` > 0 is 1 / temperature.
  DECANT_STRICT weight_map(float reference, double scale) noexcept
      : reference_(reference), base2_(scale * per_doubling), narrow_(static_cast<float>(base2_)) {}

  /// Whether weights are computed in float from start to end, as kernels do it.
  [[nodiscard]] bool in_float() const noexcept { return base2_ <= 0x1p100 && base2_ >= 0x1p-100; }
  [[nodiscard]] weight_parameters parameters() const noexcept { return {reference_, narrow_}; }

  DECANT_STRICT float operator()(float z) const noexcept {
    // Beyond 2^100 either way a float product or difference could overflow, or a flushed one become visible.
    if (!in_float()) {
      const double y = product(static_cast<double>(z) - static_cast<double>(reference_), base2_);
      return y < -126.0 ? 0.0F : exp2_weight(static_cast<float>(y));
    }
    return exp2_weight(product(z - reference_, narrow_));
  }

 private:
  float reference_;
  double base2_;
  float narrow_;
};

DECANT_STRICT_END

}  // namespace decant::math
