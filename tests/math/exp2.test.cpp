// SPDX-License-Identifier: MIT
#include <decant/math/exp2.hpp>

#include "math/bits.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace exp2_test {

using namespace test_bits;
using decant::math::exp2_weight;
using decant::math::weight_map;

double relative_error(float got, long double exact) {
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) / exact);
}

TEST_CASE("exp2_weight is exactly 1 at 0 and exact at whole numbers", "[math][exp2]") {
  CHECK(bits_of(exp2_weight(0.0F)) == bits_of(1.0F));
  CHECK(bits_of(exp2_weight(-0.0F)) == bits_of(1.0F));
  for (int n = 0; n >= -126; --n) {
    CAPTURE(n);
    CHECK(bits_of(exp2_weight(static_cast<float>(n))) == static_cast<std::uint32_t>(127 + n) << 23);
  }
}

TEST_CASE("exp2_weight is 0 below -126, for NaN and for -inf", "[math][exp2]") {
  CHECK(bits_of(exp2_weight(float_of(bits_of(-126.0F) + 1))) == 0);
  for (const float y : {-126.5F, -127.0F, -149.0F, -1e4F, -3e38F}) CHECK(bits_of(exp2_weight(y)) == 0);
  CHECK(bits_of(exp2_weight(float_of(0xFF800000U))) == 0);
  CHECK(bits_of(exp2_weight(float_of(0x7FC00000U))) == 0);
  CHECK(bits_of(exp2_weight(float_of(0xFFC00000U))) == 0);
}

TEST_CASE("exp2_weight is near enough, at most 1 and never denormal", "[math][exp2]") {
  // Negative floats in order of size: from -0 to -126, every 499th of about 1.1e9.
  double worst = 0;
  float largest = 0;
  bool denormal = false;
  const auto look = [&](float y) {
    const float w = exp2_weight(y);
    largest = std::max(largest, w);
    denormal = denormal || bits_of(w) < 0x00800000U;
    worst = std::max(worst, relative_error(w, std::exp2(static_cast<long double>(y))));
  };
  for (std::uint32_t bits = 0x80000000U; bits <= 0xC2FC0000U; bits += 499) look(float_of(bits));
  look(-126.0F);
  INFO("worst relative error " << worst);
  CHECK(worst < 1.8e-7);
  CHECK(bits_of(largest) == bits_of(1.0F));
  CHECK_FALSE(denormal);
}

TEST_CASE("exp2_weight over every float between -2 and -0.5", "[math][exp2][long]") {
  double worst = 0;
  for (std::uint32_t bits = bits_of(-0.5F); bits <= bits_of(-2.0F); ++bits) {
    worst = std::max(worst,
                     relative_error(exp2_weight(float_of(bits)), std::exp2(static_cast<long double>(float_of(bits)))));
  }
  CHECK(worst < 1.8e-7);
}

TEST_CASE("exp2_weight hardly ever falls where its argument rises", "[math][exp2]") {
  // Block bounds leave 2^-20 for this: a weight above that of the largest logit must be within it.
  double worst = 0;
  float before = exp2_weight(-126.0F);
  for (std::uint32_t bits = 0xC2FC0000U; bits >= 0x80000000U; bits -= 251) {
    const float w = exp2_weight(float_of(bits));
    worst = std::max(worst, static_cast<double>(before) / static_cast<double>(w) - 1);
    before = w;
  }
  CHECK(worst < 0x1p-22);
}

TEST_CASE("weight_map gives 1 at the reference for every scale", "[math][exp2]") {
  for (double scale = 1e-300; scale < 2e300; scale *= 10) {
    for (const float z : {0.0F, 1.0F, -1e38F, 3e38F, 1.2e-38F, -7.25F}) {
      CAPTURE(scale, z);
      CHECK(bits_of(weight_map(z, scale)(z)) == bits_of(1.0F));
    }
  }
}

TEST_CASE("weight_map is right for every scale at which a weight lies between 0 and 1", "[math][exp2]") {
  splitmix next(5);
  for (double scale = 1e-38; scale < 2e37; scale *= 10) {
    CAPTURE(scale);
    for (int i = 0; i < 200; ++i) {
      // Both logits are of the size at which this scale tells them apart.
      const auto reference = static_cast<float>(next.between(-20, 20) / scale);
      const auto z = static_cast<float>(static_cast<double>(reference) - next.between(0, 60) / scale);
      if (std::abs(z) > 3e38F || std::abs(reference) > 3e38F || (z != 0 && std::abs(z) < 1.2e-38F) ||
          (reference != 0 && std::abs(reference) < 1.2e-38F)) {
        continue;
      }
      const auto exact = std::exp((static_cast<long double>(z) - static_cast<long double>(reference)) *
                                  static_cast<long double>(scale));
      CAPTURE(z, reference);
      // The difference of two floats is rounded once, and so is its product with the scale.
      CHECK(relative_error(weight_map(reference, scale)(z), exact) < 1.8e-7 + 90 * 0x1p-22);
    }
  }
}

TEST_CASE("weight_map tells tiny logits apart when the scale is huge", "[math][exp2]") {
  const float a = 1.5e-38F, b = 1.2e-38F;
  const double difference = static_cast<double>(a) - static_cast<double>(b);
  for (const double y : {0.5, 1.0, 3.0, 20.0}) {
    const double scale = y / difference;  // about 1e38
    CAPTURE(scale);
    CHECK(relative_error(weight_map(a, scale)(b),
                         std::exp(-static_cast<long double>(difference) * static_cast<long double>(scale))) < 1e-6);
  }
  CHECK(bits_of(weight_map(a, 1e60)(b)) == 0);
  CHECK(bits_of(weight_map(a, 1e300)(b)) == 0);
  CHECK(bits_of(weight_map(float_of(bits_of(b) + 1), 1e47)(b)) == 0);
}

TEST_CASE("weight_map at the ends of what a float can hold", "[math][exp2]") {
  CHECK(bits_of(weight_map(3e38F, 1.0)(-3e38F)) == 0);
  CHECK(bits_of(weight_map(3e38F, 1e300)(-3e38F)) == 0);
  CHECK(bits_of(weight_map(3e38F, 1.0)(2e38F)) == 0);
  // A scale at which even these two are all but equal: the weight is 1, though their difference is no float.
  CHECK(weight_map(3e38F, 1e-60)(-3e38F) == 1.0F);
  CHECK(weight_map(3e38F, 1e-300)(-3e38F) == 1.0F);
  CHECK(weight_map(1e38F, 1e-60)(-1e38F) == 1.0F);
  CHECK(relative_error(weight_map(3e38F, 1e-39)(-3e38F), std::exp(-2 * static_cast<long double>(3e38F) * 1e-39L)) <
        1e-5);
  CHECK(relative_error(weight_map(1e38F, 1e-38)(-1e38F), std::exp(-2.0L)) < 1e-5);
}

TEST_CASE("weights have the same bits everywhere", "[math][exp2][golden]") {
  splitmix next(13);
  hash all;
  for (int i = 0; i < 400000; ++i)
    all.add(exp2_weight(float_of(0x80000000U | static_cast<std::uint32_t>(next() % 0x43000000U))));
  for (int i = 0; i < 100000; ++i) {
    const double scale = next.between(0.01, 3);
    all.add(weight_map(30.0F, scale)(static_cast<float>(next.between(-100, 30))));
  }
  for (int i = 0; i < 100000; ++i) {
    const double scale = double_of((next() % 0x7FE0000000000000U) | 1);
    if (scale < 1e-30) continue;
    all.add(weight_map(1.0F, scale)(1.0F - static_cast<float>(next.between(0, 2))));
  }
  CHECK(all.value() == 0x3D795C213B1A34DFU);
}

}  // namespace exp2_test
