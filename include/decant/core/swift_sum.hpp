// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>

#include <decant/core/token.hpp>
#include <decant/math/exp2.hpp>
#include <decant/math/kernels.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/strict.hpp>

namespace decant::detail {

DECANT_STRICT_BEGIN

/// The sum of e^(scale z) over the values of a row, within 3e-6 of itself, taken along with the pass that finds their
/// peaks, when nobody knows yet which is the largest. Weights are floats told from a reference: the largest value of
/// the stretch that it was last set in, which is whenever a stretch has one more than eight doublings above it. Only
/// then a stretch is summed twice. What the sum is follows from the values alone, on every instruction set.
class swift_sum {
 public:
  /// So many values at a time, which stay in the nearest cache.
  static constexpr std::size_t stretch = 8192;
  /// The relative error: weights, sums of floats, and the rounded slope, which the mean exponent counts for, as for a
  /// quick sum.
  static constexpr double error = 1.8e-7 + 1.1e-6 + 26 * 4.2e-8;

  [[nodiscard]] static bool can_tell(double scale) noexcept {
    const double base2 = scale * math::per_doubling;
    return base2 >= 0x1p-20 && base2 <= 0x1p20;
  }

  /// `scale` is one that it can tell.
  explicit swift_sum(double scale) noexcept : scale_(scale) {}

  /// Adds n values, a multiple of 64 and no more than a stretch, and finds their peaks.
  math::row_summary add(const float* values, std::size_t n, float* peaks) noexcept {
    const auto& kernels = math::kernels();
    double mass = 0;
    math::row_summary seen;
    if (is_gone(reference_)) {
      seen = kernels.peaks_f32(values, n, peaks);
    } else {
      seen = kernels.peaks_and_swift_mass(values, n, peaks, parameters_, mass);
    }
    if (seen.content == math::row_content::suspicious) {
      told_ = false;
    } else if (!is_gone(seen.max)) {
      const double exponent = exponent_of(seen.max);
      told_ = told_ && exponent < math::swift_parameters::limit;
      // What lies far below everything that can be told weighs nothing beside it.
      if (!told_ || exponent < -math::swift_parameters::limit) return seen;
      if (is_gone(reference_) || math::rounded(exponent - exponent_of(reference_)) > most_above) {
        refer_to(seen.max);
        static_cast<void>(kernels.peaks_and_swift_mass(values, n, peaks, parameters_, mass));
      }
      sum_ = math::rounded(sum_ + mass);
    }
    return seen;
  }

  /// Whether the sum means something if the row is good and its largest value is `max`.
  [[nodiscard]] bool tells(float max) const noexcept {
    return told_ && !is_gone(max) && std::abs(exponent_of(max)) < math::swift_parameters::limit / 2;
  }

  /// If so: the sum of e^(scale (z - max)).
  [[nodiscard]] double mass(float max) const noexcept {
    const double exponent = math::product(static_cast<double>(max), static_cast<double>(parameters_.slope)) + shift();
    return math::product(sum_, math::exp(math::product(-exponent, 0.6931471805599453)));
  }

 private:
  static constexpr double most_above = 8;

  /// To base 2, of a value's e^(scale z).
  [[nodiscard]] double exponent_of(float z) const noexcept {
    return math::product(static_cast<double>(z), scale_ * math::per_doubling);
  }

  /// By how many doublings weights are larger than that: a whole number.
  [[nodiscard]] double shift() const noexcept {
    return static_cast<double>(parameters_.base) - static_cast<double>(math::swift_parameters::to_nearest);
  }

  void refer_to(float z) noexcept {
    const double before = shift();
    parameters_ = math::swift_parameters_of(math::weight_map(z, scale_).parameters());
    reference_ = z;
    sum_ = math::product(sum_, math::power_of_two(shift() - before));
  }

  double scale_;
  double sum_ = 0;
  float reference_ = gone;
  math::swift_parameters parameters_{};
  bool told_ = true;
};

DECANT_STRICT_END

}  // namespace decant::detail
