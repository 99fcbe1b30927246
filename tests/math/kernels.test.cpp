// SPDX-License-Identifier: MIT
#include <decant/math/kernels.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <decant/core/token.hpp>
#include <decant/math/exp2.hpp>
#include <decant/math/scalar.hpp>

#include "math/bits.hpp"
#include "support/catch.hpp"

// Every form of every kernel gives the bits of the portable one, and that one gives what its words say.

namespace kernels_test {

using namespace decant;
using namespace decant::math;
using test_bits::forms;

constexpr float infinite = std::numeric_limits<float>::infinity();

const kernel_table& plain = kernels_for(isa::portable);

/// Ordinary values, and among them ties, -inf, denormals and zeros of both signs.
std::vector<float> some_values(std::size_t size, std::uint64_t seed) {
  test_bits::splitmix next(seed);
  std::vector<float> values(size);
  for (float& z : values) {
    const auto kind = next.below(20);
    z = kind == 0   ? -infinite
        : kind == 1 ? test_bits::float_of(static_cast<std::uint32_t>(next.below(0x800000)))
        : kind == 2 ? test_bits::float_of(0x80000000U | static_cast<std::uint32_t>(next.below(0x800000)))
        : kind == 3 ? (next.below(2) == 0 ? 0.0F : -0.0F)
        : kind == 4 ? static_cast<float>(next.below(5))
                    : static_cast<float>(next.between(-12, 12));
  }
  return values;
}

std::uint64_t any_bits(test_bits::splitmix& next) { return next.below(1ULL << 32) << 32 | next.below(1ULL << 32); }

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }
bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return same_bits(x, y); });
}
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(
      a, b, {}, [](float x) { return std::bit_cast<std::uint32_t>(x); },
      [](float x) { return std::bit_cast<std::uint32_t>(x); });
}

TEST_CASE("the table in use is the machine's best, and can be pinned", "[math][kernels]") {
  const isa best = kernels().which;
  CHECK(best == best_isa());
  for (const isa which : forms()) {
    use_kernels(which);
    CHECK(kernels().which == which);
  }
  use_kernels(best);
  CHECK(std::string(to_string(isa::avx512)) == "avx512");
}

TEST_CASE("peaks are the largest value of every 64, at every length", "[math][kernels]") {
  for (const isa which : forms()) {
    INFO(to_string(which));
    for (std::size_t size = 1; size <= 2300; size += size < 200 ? 1 : 61) {
      const auto row = some_values(size, size);
      std::vector<float> got((size + 63) / 64), want(got.size(), -infinite);
      const row_summary summary = kernels_for(which).peaks_f32(row.data(), size, got.data());
      for (std::size_t i = 0; i < size; ++i) want[i / 64] = std::max(want[i / 64], flush_denormal(row[i]));
      CHECK(got == want);
      CHECK(summary.max == *std::ranges::max_element(want));
      const bool has_gone = std::ranges::any_of(row, [](const float& z) { return is_gone(z); });
      CHECK(summary.content == (has_gone ? row_content::some_gone : row_content::finite));
    }
  }
}

TEST_CASE("a NaN or +inf anywhere makes a row suspicious, whatever else is in it", "[math][kernels]") {
  for (const isa which : forms()) {
    for (const std::size_t size : {1U, 17U, 64U, 512U, 1024U, 1100U, 5000U}) {
      for (std::size_t place = 0; place < size; place += size > 100 ? 37 : 1) {
        for (const float bad : {infinite, test_bits::float_of(0x7FC00000U), test_bits::float_of(0xFFC00001U)}) {
          for (const float rest : {1.0F, -infinite}) {
            std::vector<float> row(size, rest), peaks((size + 63) / 64);
            row[place] = bad;
            REQUIRE(kernels_for(which).peaks_f32(row.data(), size, peaks.data()).content == row_content::suspicious);
          }
        }
      }
    }
    std::vector<float> huge(2000, 3e38F), peaks(32);  // a false alarm is allowed, a wrong peak is not
    CHECK(kernels_for(which).peaks_f32(huge.data(), huge.size(), peaks.data()).max == 3e38F);
  }
}

TEST_CASE("16-bit rows have the peaks of their floats", "[math][kernels]") {
  test_bits::splitmix next(4);
  for (const isa which : forms()) {
    for (const std::size_t size : {1U, 63U, 64U, 512U, 1024U, 3001U}) {
      std::vector<bfloat16> brain(size);
      std::vector<float16> half(size);
      std::vector<float> from_brain(size), from_half(size);
      for (std::size_t i = 0; i < size; ++i) {
        brain[i] = {static_cast<std::uint16_t>(next.below(2) * 0x8000 + next.below(0x7F80))};
        half[i] = {static_cast<std::uint16_t>(next.below(2) * 0x8000 + next.below(0x7C00))};
        from_brain[i] = to_float(brain[i]);
        from_half[i] = to_float(half[i]);
      }
      const std::size_t blocks = (size + 63) / 64;
      std::vector<float> got(blocks), want(blocks);
      static_cast<void>(plain.peaks_f32(from_brain.data(), size, want.data()));
      static_cast<void>(kernels_for(which).peaks_bf16(brain.data(), size, got.data()));
      CHECK(got == want);
      static_cast<void>(plain.peaks_f32(from_half.data(), size, want.data()));
      static_cast<void>(kernels_for(which).peaks_f16(half.data(), size, got.data()));
      CHECK(got == want);
      if (size < 64) continue;
      std::vector<float> wide(64);
      kernels_for(which).widen_bf16(brain.data(), wide.data());
      CHECK(same_bits(wide, {from_brain.begin(), from_brain.begin() + 64}));
      kernels_for(which).widen_f16(half.data(), wide.data());
      CHECK(same_bits(wide, {from_half.begin(), from_half.begin() + 64}));
    }
  }
}

TEST_CASE("16-bit rows say what they hold", "[math][kernels]") {
  const auto look = [](isa which, auto value, auto rest, std::size_t size, std::size_t place) {
    using half = decltype(value);
    std::vector<half> row(size, rest);
    row[place] = value;
    std::vector<float> peaks((size + 63) / 64);
    if constexpr (std::is_same_v<half, bfloat16>) {
      return kernels_for(which).peaks_bf16(row.data(), size, peaks.data());
    } else {
      return kernels_for(which).peaks_f16(row.data(), size, peaks.data());
    }
  };
  const auto check = [&]<class Half>(isa which, Half, std::uint16_t infinity) {
    const auto one = static_cast<std::uint16_t>(infinity / 2);
    for (const std::size_t size : {1U, 17U, 64U, 512U, 1024U, 1100U}) {
      for (std::size_t place = 0; place < size; place += size > 100 ? 37 : 1) {
        for (const std::uint16_t rest : {one, static_cast<std::uint16_t>(one | 0x8000)}) {
          for (const std::uint32_t bad : {infinity + 0U, infinity + 1U, infinity + 0x8001U, 0xFFFFU, 0x7FFFU}) {
            const auto seen = look(which, Half{static_cast<std::uint16_t>(bad)}, Half{rest}, size, place);
            REQUIRE(seen.content == row_content::suspicious);
          }
          const Half gone{static_cast<std::uint16_t>(infinity | 0x8000)};
          REQUIRE(look(which, gone, Half{rest}, size, place).content == row_content::some_gone);
          REQUIRE(look(which, gone, gone, size, place).max == -infinite);
          const auto plain_row = look(which, Half{7}, Half{rest}, size, place);
          REQUIRE(plain_row.content == row_content::finite);
          const float small = decant::math::flush_denormal(to_float(Half{7}));
          REQUIRE(plain_row.max == (size == 1 ? small : std::max(small, to_float(Half{rest}))));
        }
      }
    }
  };
  for (const isa which : forms()) {
    check(which, bfloat16{}, 0x7F80);
    check(which, float16{}, 0x7C00);
  }
}

TEST_CASE("set bits are listed, unless they are too many", "[math][kernels]") {
  test_bits::splitmix next(41);
  for (const isa which : forms()) {
    for (const std::size_t words : {0U, 1U, 7U, 8U, 9U, 130U, 1023U, 1024U, 1031U, 2004U}) {
      for (const std::size_t rarity : {1U, 3U, 40U, 5000U}) {
        std::vector<std::uint64_t> mask(words);
        std::vector<std::int32_t> wanted;
        for (std::size_t i = 0; i < 64 * words; ++i) {
          if (next.below(rarity) != 0) continue;
          mask[i / 64] |= std::uint64_t{1} << (i % 64);
          wanted.push_back(static_cast<std::int32_t>(i));
        }
        for (const std::size_t most : {wanted.size(), wanted.size() + 100, wanted.size() / 2, std::size_t{0}}) {
          std::vector<std::int32_t> got(most + 64, -7);
          const std::size_t count = kernels_for(which).set_bits(mask.data(), words, most, got.data());
          REQUIRE((count > most) == (wanted.size() > most));
          if (count > most) continue;
          REQUIRE(count == wanted.size());
          got.resize(count);
          REQUIRE(got == wanted);
        }
      }
    }
  }
}

TEST_CASE("values are counted and marked where they reach a threshold", "[math][kernels]") {
  for (const isa which : forms()) {
    for (const std::size_t size : {0U, 1U, 7U, 64U, 65U, 1000U}) {
      const auto row = some_values(std::max<std::size_t>(size, 64), size + 1);
      for (const float threshold : {-infinite, -3.4e38F, -1.0F, 0.0F, 2.0F, 3.0F, infinite}) {
        const auto end = row.begin() + static_cast<std::ptrdiff_t>(size);
        const auto count = std::count_if(row.begin(), end, [&](float z) { return z >= threshold; });
        CHECK(kernels_for(which).count_at_least(row.data(), size, threshold) == static_cast<std::size_t>(count));
        std::uint64_t mask = 0;
        for (std::size_t i = 0; i < 64; ++i) mask |= std::uint64_t{row[i] >= threshold} << i;
        CHECK(kernels_for(which).at_least(row.data(), threshold) == mask);
      }
    }
  }
}

TEST_CASE("weights are those of weight_map to the last bit, in every form", "[math][kernels]") {
  test_bits::splitmix next(9);
  for (int round = 0; round < 300; ++round) {
    const auto values = some_values(64, next.below(1U << 30));
    const weight_map weight(*std::ranges::max_element(values), next.between(0.01, 20));
    REQUIRE(weight.in_float());
    const std::uint64_t keep = round % 3 == 0 ? ~std::uint64_t{0} : any_bits(next);
    block_weights want;
    for (std::size_t i = 0; i < 64; ++i) want[i] = (keep >> i & 1) != 0 ? static_cast<double>(weight(values[i])) : 0;
    for (const isa which : forms()) {
      INFO(to_string(which));
      block_weights got;
      kernels_for(which).weights(values.data(), keep, weight.parameters(), got);
      CHECK(got == want);
      std::vector<float> floats(64);
      kernels_for(which).float_weights(values.data(), 64, weight.parameters(), floats.data());
      for (std::size_t i = 0; i < 64; ++i) CHECK(floats[i] == weight(values[i]));
    }
  }
}

TEST_CASE("exact masses and moments have the same bits in every form, and are what they say", "[math][kernels]") {
  test_bits::splitmix next(13);
  for (int round = 0; round < 60; ++round) {
    const std::size_t size = 64 * (1 + next.below(20));
    auto values = some_values(size, next.below(1U << 30));
    if (round % 7 == 0) values[size / 2] = -700.0F;
    if (round % 5 == 0) values[size / 3] = -3e38F;
    const float top = *std::ranges::max_element(values);
    const float high = top - static_cast<float>(next.between(0, 9));
    const double scale = round % 3 == 0 ? next.between(20, 90) : next.between(0.05, 4);
    const auto want = plain.exact_mass(values.data(), size, top, scale);
    const auto moments = plain.moments(values.data(), size, top);
    double mass = 0, weighted = 0, above = 0, sum = 0;
    std::vector<double> weights;
    for (const float z : values) {
      const double below = static_cast<double>(z) - static_cast<double>(top), w = math::exp(product(scale, below));
      weights.push_back(w);
      if (is_gone(z)) continue;
      mass += w;
      above += z >= high ? w : 0;
      weighted += w > 0 ? w * scale * below : 0;
      sum += below;
    }
    CHECK(want.mass == Approx(mass).epsilon(1e-13));
    CHECK(want.weighted == Approx(weighted).epsilon(1e-12).margin(1e-12));
    CHECK(moments.sum == Approx(sum).epsilon(1e-13));
    const quick_parameters parameters = quick_parameters_of(weight_map(top, scale).parameters());
    const auto quick_want = plain.quick_masses(values.data(), size, parameters);
    for (const isa which : forms()) {
      INFO(to_string(which));
      const auto got = kernels_for(which).exact_mass(values.data(), size, top, scale);
      CHECK(same_bits(got.mass, want.mass));
      CHECK(same_bits(got.weighted, want.weighted));
      const auto near = kernels_for(which).near_mass(values.data(), size, top, scale, high);
      CHECK(std::abs(near.mass - mass) <= portable::near_mass_error * mass);
      CHECK(std::abs(near.above - above) <= portable::near_mass_error * above);
      std::vector<double> each(size);
      kernels_for(which).exps(values.data(), size, top, scale, each.data());
      CHECK(same_bits(each, weights));
      CHECK(kernels_for(which).sum_at_least(values.data(), each.data(), size, high) == Approx(above).epsilon(1e-13));
      const auto moved = kernels_for(which).moments(values.data(), size, top);
      CHECK(same_bits(moved.sum, moments.sum));
      CHECK(same_bits(moved.squares, moments.squares));
      // The errors that candidates reckons with.
      const double quick = kernels_for(which).quick_mass(values.data(), size, parameters);
      CHECK(same_bits(quick, quick_want.mass));
      const double mean_exponent = -weighted / mass * per_doubling;
      CHECK(std::abs(quick / mass - 1) < 6e-7 + 8.4e-8 * mean_exponent + 1e-12);
      const auto both = kernels_for(which).quick_masses(values.data(), size, parameters);
      CHECK(same_bits(both.mass, quick));
      CHECK(same_bits(both.weighted, quick_want.weighted));
      CHECK(std::abs(both.weighted / quick + mean_exponent) < 6e-6 * (mean_exponent + 1));
    }
  }
}

TEST_CASE("values are bent to the last bit alike, in every form, and keep their order", "[math][kernels]") {
  test_bits::splitmix next(14);
  for (int round = 0; round < 60; ++round) {
    const std::size_t size = 64 * (1 + next.below(20));
    auto values = some_values(size, next.below(1U << 30));
    if (round % 4 == 0) values[size / 2] = -3e38F;
    if (round % 3 == 0) values[size / 3] = std::bit_cast<float>(0x80000123U);
    const float top = *std::ranges::max_element(values);
    const double factors[] = {0, 1e-300, 0.3, 40, 1e300}, scales[] = {1, 0.7, 1e-30, 1e100};
    const bend_parameters how{top, scales[round % 4], factors[next.below(5)], factors[next.below(5)]};
    std::vector<float> wanted;
    for (const float z : values) {
      const double d =
          std::max((static_cast<double>(flush_denormal(z)) - static_cast<double>(top)) * how.scale, -0x1p200);
      wanted.push_back(is_gone(z) ? z : flush_denormal(saturated(product(product(how.cube, d) - how.square, d * d))));
    }
    for (const isa which : forms()) {
      INFO(to_string(which) << ", scale " << how.scale << ", square " << how.square << ", cube " << how.cube);
      std::vector<float> bent(size);
      kernels_for(which).bend(values.data(), size, how, bent.data());
      CHECK(same_bits(bent, wanted));
      auto in_place = values;
      kernels_for(which).bend(in_place.data(), size, how, in_place.data());
      CHECK(same_bits(in_place, wanted));
      bool ordered = true;
      for (std::size_t i = 1; i < size; ++i) ordered = ordered && (values[i] < values[i - 1] || bent[i] >= bent[i - 1]);
      CHECK(ordered);
    }
  }
}

TEST_CASE("chosen values are raised to the last bit alike, in every form", "[math][kernels]") {
  test_bits::splitmix next(24);
  for (int round = 0; round < 200; ++round) {
    const std::size_t size = 64 * (1 + next.below(20));
    auto values = some_values(size, next.below(1U << 30));
    if (round % 4 == 0) values[size / 2] = -3e38F;
    if (round % 5 == 0) values[size / 2 + 1] = 3.4e38F;
    if (round % 3 == 0) values[size / 3] = std::bit_cast<float>(0x80000123U);
    std::vector<std::uint64_t> chosen;
    for (std::size_t b = 0; b < size / 64; ++b) chosen.push_back(next());
    const double amounts[] = {2, 0.1, 1e-30, -3.5, 0x1p-24 + 0x1p-60, 3.3e38, -1e300}, scales[] = {1, 0.7, 1e-40, 1e30};
    const double shifts[] = {0, 3.25, -1e9, 0x1p-140};
    const raise_parameters how{scales[round % 4], shifts[round / 4 % 4], amounts[round % 7]};
    std::vector<float> wanted;
    for (std::size_t i = 0; i < size; ++i) {
      float x = flush_denormal(values[i]);
      if (how.scale != 1 || how.shift != 0)
        x = flush_denormal(saturated(product(how.scale, static_cast<double>(x)) + how.shift));
      const bool up = (chosen[i / 64] >> (i % 64) & 1) != 0;
      if (up) x = flush_denormal(saturated(static_cast<double>(x) + how.amount));
      wanted.push_back(is_gone(values[i]) ? values[i] : x);
    }
    for (const isa which : forms()) {
      INFO(to_string(which) << ", scale " << how.scale << ", shift " << how.shift << ", amount " << how.amount);
      std::vector<float> raised(size);
      kernels_for(which).raise(values.data(), size, chosen.data(), how, raised.data());
      CHECK(same_bits(raised, wanted));
    }
  }
}

TEST_CASE("a raised value is rounded twice, by way of double, in every form", "[math][kernels]") {
  // (1 + 2^-12)^2 lies halfway between two floats; what is added is lost in double, and a float fused with it would
  // round up.
  const float z = 1 + 0x1p-12F;
  const std::vector<float> values(64, z);
  const std::vector<std::uint64_t> chosen{0x5555555555555555U};
  const raise_parameters how{1 + 0x1p-12, 0x1p-80, 1};
  for (const isa which : forms()) {
    INFO(to_string(which));
    std::vector<float> raised(64);
    kernels_for(which).raise(values.data(), 64, chosen.data(), how, raised.data());
    CHECK(raised[0] == 2 + 0x1p-11F);
    CHECK(raised[1] == 1 + 0x1p-11F);
    CHECK(std::fma(z, z, 0x1p-80F) == 1 + 0x1p-11F + 0x1p-23F);
  }
}

TEST_CASE("values between two are collected from rows, by the peaks of their blocks, and filtered in lists",
          "[math][kernels]") {
  test_bits::splitmix next(11);
  for (int round = 0; round < 200; ++round) {
    const std::size_t blocks = 1 + next.below(40), size = 64 * blocks;
    const auto values = some_values(size, next.below(1U << 30));
    std::vector<float> peaks(blocks);
    static_cast<void>(plain.peaks_f32(values.data(), size, peaks.data()));
    const float low = round % 4 == 0 ? -3.4e38F : static_cast<float>(next.between(-8, 11.9));
    const float high = round % 3 == 0 ? infinite : low + static_cast<float>(next.between(0, 6));
    const auto first = static_cast<std::int32_t>(64 * next.below(1000));
    std::vector<std::int32_t> want_ids;
    std::vector<float> want;
    for (std::size_t i = 0; i < size; ++i) {
      if (!(values[i] >= low && values[i] < high)) continue;
      want_ids.push_back(first + static_cast<std::int32_t>(i));
      want.push_back(flush_denormal(values[i]));
    }
    for (const isa which : forms()) {
      INFO(to_string(which));
      std::vector<std::int32_t> ids(size + 16);
      std::vector<float> got(size + 16);
      const auto count =
          kernels_for(which).collect(values.data(), peaks.data(), blocks, low, high, first, {ids.data(), got.data()});
      REQUIRE(count == want.size());
      ids.resize(count);
      got.resize(count);
      CHECK(ids == want_ids);
      CHECK(same_bits(got, want));
      // In place, to the upper half of what is left.
      while (got.size() % 16 != 0) {
        ids.push_back(-1);
        got.push_back(-infinite);
      }
      std::vector<std::int32_t> upper_ids;
      std::vector<float> upper;
      for (std::size_t i = 0; i < want.size(); ++i) {
        if (want[i] >= low + 1 && want[i] < high) {
          upper_ids.push_back(want_ids[i]);
          upper.push_back(want[i]);
        }
      }
      const std::size_t padded = got.size();
      ids.resize(padded + 16);
      got.resize(padded + 16);
      const auto left =
          kernels_for(which).filter(ids.data(), got.data(), padded, low + 1, high, {ids.data(), got.data()});
      REQUIRE(left == upper.size());
      ids.resize(left);
      got.resize(left);
      CHECK(ids == upper_ids);
      CHECK(same_bits(got, upper));
    }
  }
}

TEST_CASE("rough masses and moments taken along with the peaks are within their bounds", "[math][kernels]") {
  test_bits::splitmix next(16);
  for (int round = 0; round < 200; ++round) {
    const std::size_t size = 1 + next.below(3000);
    const auto values = some_values(size, next.below(1U << 30));
    const double base2 = next.between(0.05, 6), reference = next.between(-3, 12);
    const rough_parameters rough{static_cast<float>(base2 * 0x1p23),
                                 static_cast<float>((127 - base2 * reference) * 0x1p23)};
    double mass = 0;
    portable::moment_sums moments;
    for (std::size_t i = 0; i < size / 64 * 64; ++i) {
      if (is_gone(values[i])) continue;
      mass += std::exp2(base2 * (static_cast<double>(values[i]) - reference));
      const double d = static_cast<double>(values[i]) - reference;
      moments.sum += d;
      moments.squares += d * d;
    }
    for (const isa which : forms()) {
      INFO(to_string(which));
      std::vector<float> peaks((size + 63) / 64), want(peaks.size());
      double got = 0;
      const row_summary plainly = kernels_for(which).peaks_f32(values.data(), size, want.data());
      const row_summary summary = kernels_for(which).peaks_and_mass(values.data(), size, peaks.data(), rough, got);
      CHECK(summary.max == plainly.max);
      CHECK(summary.content == plainly.content);
      CHECK(same_bits(peaks, want));
      CHECK(got >= mass * (1 - 1e-4) - 1e-30);
      CHECK(got <= mass * rough_excess * (1 + 1e-4) + 1e-30);
      if (summary.content != row_content::finite) continue;
      portable::moment_sums sums;
      std::fill(peaks.begin(), peaks.end(), 0.0F);
      static_cast<void>(
          kernels_for(which).peaks_and_spread(values.data(), size, peaks.data(), static_cast<float>(reference), sums));
      CHECK(same_bits(peaks, want));
      CHECK(sums.sum == Approx(moments.sum).epsilon(1e-5).margin(1e-4 * static_cast<double>(size)));
      CHECK(sums.squares == Approx(moments.squares).epsilon(1e-5));
    }
  }
}

TEST_CASE("peaks and a swift mass are taken along, with the same bits in every form", "[math][kernels]") {
  test_bits::splitmix next(21);
  for (int round = 0; round < 60; ++round) {
    const std::size_t size = 64 * (1 + next.below(40));
    const double scale = std::exp(next.between(-3, 2));
    const float shift = static_cast<float>(next.between(-300, 300));
    auto values = some_values(size, next.below(1U << 30));
    if (round % 3 == 0) {
      for (float& z : values) z += shift;
    }
    if (round % 5 == 0) values[size / 2] = -3e38F;
    std::vector<float> want(size / 64);
    const row_summary summary = plain.peaks_f32(values.data(), size, want.data());
    if (summary.max == -infinite) continue;
    // From a reference that may be below the largest.
    const float reference = summary.max - static_cast<float>(next.between(0, 30 / (scale * per_doubling)));
    const auto parameters = swift_parameters_of(weight_map(reference, scale).parameters());
    double want_mass = 0, exact = 0, mean = 0;
    static_cast<void>(plain.peaks_and_swift_mass(values.data(), size, want.data(), parameters, want_mass));
    for (const float z : values) {
      const double below = scale * (static_cast<double>(z) - static_cast<double>(summary.max));
      exact += std::exp(below);
      if (z > -infinite) mean -= below * per_doubling * std::exp(below);
    }
    mean /= exact;
    const double top = static_cast<double>(summary.max) * static_cast<double>(parameters.slope) +
                       static_cast<double>(parameters.base) - static_cast<double>(swift_parameters::to_nearest);
    CHECK(std::abs(want_mass * std::exp2(-top) / exact - 1) < 1.28e-6 + 4.2e-8 * mean);
    for (const isa which : forms()) {
      INFO(to_string(which));
      std::vector<float> got(size / 64);
      double mass = 0;
      const row_summary seen =
          kernels_for(which).peaks_and_swift_mass(values.data(), size, got.data(), parameters, mass);
      CHECK(same_bits(got, want));
      CHECK(same_bits(mass, want_mass));
      CHECK(seen.max == summary.max);
      CHECK(seen.content == summary.content);
      auto bad = values;
      bad[next.below(size)] = test_bits::float_of(next.below(2) == 0 ? 0x7FC00000U : 0x7F800000U);
      CHECK(kernels_for(which).peaks_and_swift_mass(bad.data(), size, got.data(), parameters, mass).content ==
            row_content::suspicious);
    }
  }
}

TEST_CASE("two to a power is quick to within 3e-7 over all fractions", "[math][kernels]") {
  double worst = 0;
  for (std::uint32_t bits = 0; bits < 1U << 22; ++bits) {
    const float y = -static_cast<float>(bits) * 0x1p-22F * 3;
    worst =
        std::max(worst, std::abs(static_cast<double>(portable::quick_exp2(y)) / std::exp2(static_cast<double>(y)) - 1));
  }
  CHECK(worst < 3e-7);
}

TEST_CASE("the sum of a block has the same bits in every form", "[math][kernels]") {
  test_bits::splitmix next(15);
  for (int round = 0; round < 300; ++round) {
    block_weights w{};
    for (double& x : w) x = next.below(3) == 0 ? 0 : next.unit() * std::exp(next.between(-30, 0));
    for (const isa which : forms()) {
      CHECK(same_bits(kernels_for(which).block_sum(w.data()), plain.block_sum(w.data())));
    }
  }
}

TEST_CASE("exponentials agree in halfway and double-rounding cases", "[math][kernels]") {
  // Exponents whose fraction makes a product of 24 by 24 bits fall just beside a halfway point.
  std::vector<float> values;
  for (std::uint32_t n = 0; n < 125; ++n) {
    for (const float f : {0.0F, 0x1p-12F, 0x1.001p-12F, 0.5F, 0x1.fffffep-2F, 0x1.8p-24F, 0.25F + 0x1p-20F}) {
      values.push_back(-static_cast<float>(n) - f);
      values.push_back(-static_cast<float>(n) + f);
    }
  }
  while (values.size() % 64 != 0) values.push_back(-126);
  std::vector<float> want(values.size()), got(values.size());
  plain.float_weights(values.data(), values.size(), {0, 1}, want.data());
  for (const isa which : forms()) {
    kernels_for(which).float_weights(values.data(), values.size(), {0, 1}, got.data());
    CHECK(same_bits(got, want));
  }
}

TEST_CASE("all forms agree on 100 million inputs", "[math][kernels][long]") {
  test_bits::splitmix next(12);
  std::vector<float> values(1 << 16), want(values.size()), got(values.size());
  for (int round = 0; round < 1526; ++round) {
    for (float& z : values) {
      // Bits at random, so that every exponent comes, or numbers such as logits are.
      z = round % 2 == 0 ? test_bits::float_of(static_cast<std::uint32_t>(next.below(1ULL << 32)))
                         : static_cast<float>(next.between(-40, 0));
      if (!is_finite(z) || z > 0) z = -z;
      if (!is_finite(z)) z = -1;
    }
    const weight_parameters parameters{0, round % 4 < 2 ? 1.4426951F : static_cast<float>(next.between(0.01, 30))};
    plain.float_weights(values.data(), values.size(), parameters, want.data());
    for (const isa which : forms()) {
      kernels_for(which).float_weights(values.data(), values.size(), parameters, got.data());
      REQUIRE(same_bits(got, want));
    }
  }
}

}  // namespace kernels_test
