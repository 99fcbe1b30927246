// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

// Which vector instructions the kernels use. Everything else in decant is compiled for the machine that the user's
// flags name; the kernels carry several forms and choose once, when the program first needs them.
//
// DECANT_PIN_ISA, defined by those who compile for one machine, to 0 (portable), 1 (AVX2) or 2 (AVX-512), fixes the
// choice. NEON would be a third table beside these two: see kernels.hpp.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && !defined(DECANT_NO_SIMD)
#define DECANT_X86 1
#else
#define DECANT_X86 0
#endif

namespace decant::math {

/// An instruction set that kernels have been written for. All give the same bits.
enum class isa : std::uint8_t {
  portable,  ///< plain C++, which the compiler vectorises as far as its flags go: SSE2 on x86-64
  avx2,      ///< AVX2, FMA and F16C
  avx512,    ///< AVX-512 F, BW, DQ, VL
};

[[nodiscard]] constexpr const char* to_string(isa which) noexcept {
  return which == isa::avx512 ? "avx512" : which == isa::avx2 ? "avx2" : "portable";
}

/// The best that this machine has.
[[nodiscard]] inline isa best_isa() noexcept {
#if defined(DECANT_PIN_ISA)
  return static_cast<isa>(DECANT_PIN_ISA);
#elif DECANT_X86
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? isa::avx512 : avx2 ? isa::avx2 : isa::portable;
#else
  return isa::portable;
#endif
}

}  // namespace decant::math
