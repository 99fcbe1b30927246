// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include <decant/math/exp2.hpp>
#include <decant/math/half.hpp>
#include <decant/math/hash_kernels.hpp>
#include <decant/math/isa.hpp>
#include <decant/math/kernels_avx2.hpp>
#include <decant/math/kernels_avx512.hpp>
#include <decant/math/kernels_portable.hpp>

namespace decant::math {

#if DECANT_X86
namespace avx512 {
// A machine with AVX-512 has AVX2, and little is bent or raised.
using avx2::bend;
using avx2::raise;
}  // namespace avx512
#endif

/// The few loops over whole rows and whole blocks of 64, in the form that suits the machine. What each does is said in
/// kernels_portable.hpp and hash_kernels.hpp; all forms give the same bits, so that a seed means the same tokens
/// everywhere. A new instruction set is a new table.
struct kernel_table {
  isa which;
  row_summary (*peaks_f32)(const float*, std::size_t, float*) noexcept;
  row_summary (*peaks_bf16)(const bfloat16*, std::size_t, float*) noexcept;
  row_summary (*peaks_f16)(const float16*, std::size_t, float*) noexcept;
  row_summary (*peaks_and_mass)(const float*, std::size_t, float*, const rough_parameters&, double&) noexcept;
  row_summary (*peaks_and_spread)(const float*, std::size_t, float*, float, portable::moment_sums&) noexcept;
  std::size_t (*count_at_least)(const float*, std::size_t, float) noexcept;
  std::uint64_t (*at_least)(const float*, float) noexcept;
  void (*widen_bf16)(const bfloat16*, float*) noexcept;
  void (*widen_f16)(const float16*, float*) noexcept;
  void (*weights)(const float*, std::uint64_t, const weight_parameters&, block_weights&) noexcept;
  void (*float_weights)(const float*, std::size_t, const weight_parameters&, float*) noexcept;
  double (*block_sum)(const double*) noexcept;
  void (*exps)(const float*, std::size_t, float, double, double*) noexcept;
  portable::mass_sums (*exact_mass)(const float*, std::size_t, float, double) noexcept;
  portable::split_mass (*near_mass)(const float*, std::size_t, float, double, float) noexcept;
  double (*sum_at_least)(const float*, const double*, std::size_t, float) noexcept;
  double (*quick_mass)(const float*, std::size_t, const quick_parameters&) noexcept;
  portable::mass_sums (*quick_masses)(const float*, std::size_t, const quick_parameters&) noexcept;
  row_summary (*peaks_and_swift_mass)(const float*, std::size_t, float*, const swift_parameters&, double&) noexcept;
  portable::moment_sums (*moments)(const float*, std::size_t, float) noexcept;
  void (*bend)(const float*, std::size_t, const bend_parameters&, float*) noexcept;
  void (*raise)(const float*, std::size_t, const std::uint64_t*, const raise_parameters&, float*) noexcept;
  std::size_t (*collect)(const float*, const float*, std::size_t, float, float, std::int32_t,
                         portable::listed_values) noexcept;
  std::size_t (*set_bits)(const std::uint64_t*, std::size_t, std::size_t, std::int32_t*) noexcept;
  std::size_t (*filter)(const std::int32_t*, const float*, std::size_t, float, float, portable::listed_values) noexcept;
  std::uint64_t (*philox_at_least)(const philox_sequence&, std::uint32_t, std::uint32_t) noexcept;
  void (*philox_word1)(const philox_sequence&, std::uint32_t, std::uint32_t*) noexcept;
  std::uint64_t (*splitmix_at_least)(std::uint64_t, std::uint64_t, std::uint32_t) noexcept;
};

#define DECANT_KERNELS(name)   \
  {isa::name,                  \
   name::peaks,                \
   name::peaks,                \
   name::peaks,                \
   name::peaks_and_mass,       \
   name::peaks_and_spread,     \
   name::count_at_least,       \
   name::at_least,             \
   name::widen<bfloat16>,      \
   name::widen<float16>,       \
   name::weights,              \
   name::float_weights,        \
   name::block_sum,            \
   name::exps,                 \
   name::exact_mass,           \
   name::near_mass,            \
   name::sum_at_least,         \
   name::quick_mass,           \
   name::quick_masses,         \
   name::peaks_and_swift_mass, \
   name::moments,              \
   name::bend,                 \
   name::raise,                \
   name::collect,              \
   name::set_bits,             \
   name::filter,               \
   name::philox_at_least,      \
   name::philox_word1,         \
   name::splitmix_at_least}

/// The table for an instruction set, or the best one below it that this build has.
[[nodiscard]] inline const kernel_table& kernels_for(isa which) noexcept {
  static constexpr kernel_table plain = DECANT_KERNELS(portable);
#if DECANT_X86
  static constexpr kernel_table narrow = DECANT_KERNELS(avx2), wide = DECANT_KERNELS(avx512);
  if (which == isa::avx512) return wide;
  if (which == isa::avx2) return narrow;
#else
  static_cast<void>(which);
#endif
  return plain;
}

#undef DECANT_KERNELS

namespace detail {

inline const kernel_table*& chosen_kernels() noexcept {
  static const kernel_table* chosen = &kernels_for(best_isa());
  return chosen;
}

}  // namespace detail

/// The kernels in use: the best that the machine has, chosen at the first call.
[[nodiscard]] inline const kernel_table& kernels() noexcept { return *detail::chosen_kernels(); }

/// For tests and benchmarks: uses these kernels from here on, in all threads; the machine must have them.
inline void use_kernels(isa which) noexcept { detail::chosen_kernels() = &kernels_for(which); }

}  // namespace decant::math
