// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>

namespace decant {

/// Sixteen bits as engines store them; decant reads them in place and computes in float.
struct bfloat16 {
  std::uint16_t bits = 0;
};

/// IEEE 754 binary16.
struct float16 {
  std::uint16_t bits = 0;
};

namespace math {

/// Exact.
[[nodiscard]] constexpr float to_float(float x) noexcept { return x; }

/// Exact.
[[nodiscard]] constexpr float to_float(bfloat16 x) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

/// Exact, denormal halves included.
[[nodiscard]] constexpr float to_float(float16 x) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (x.bits >> 10) & 0x1FU, mantissa = x.bits & 0x3FFU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | mantissa << 13);
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

}  // namespace math

}  // namespace decant
