// SPDX-License-Identifier: MIT
#pragma once

// Arithmetic as written. Functions between DECANT_STRICT_BEGIN and DECANT_STRICT_END, each marked DECANT_STRICT, are
// compiled without contraction, reassociation or the assumption that NaN and infinity do not exist, whatever flags the
// user's build has: the same seed must give the same tokens under -ffast-math, -O0 and -march=native.
//
// g++ contracts across statements and obeys only the attribute; clang ignores the attribute and obeys the pragmas, with
// two exceptions under -ffast-math. Its back end fuses products and sums whatever they say: hence rounded() and
// product(), which hold anywhere. And no argument or result passed by value can be infinite or NaN: a logit that may be
// is passed by reference, and -inf returned as opaque_gone().
#if defined(__clang__)
#define DECANT_STRICT_BEGIN \
  _Pragma("float_control(push)") _Pragma("float_control(precise, on)") _Pragma("clang fp contract(off)")
#define DECANT_STRICT_END _Pragma("float_control(pop)")
#define DECANT_STRICT
#elif defined(__GNUC__)
#define DECANT_STRICT_BEGIN
#define DECANT_STRICT_END
#define DECANT_STRICT __attribute__((optimize("no-fast-math", "fp-contract=off")))
#else
#define DECANT_STRICT_BEGIN
#define DECANT_STRICT_END
#define DECANT_STRICT
#endif

namespace decant::math {

/// The value of an expression, opaque to the optimiser: what comes after is neither fused nor reassociated with it,
/// whatever the flags.
template <class Float>
inline Float rounded(Float value) noexcept {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__SSE2__))
  asm("" : "+x"(value));
#elif defined(__GNUC__) && defined(__aarch64__)
  asm("" : "+w"(value));
#else
  volatile Float stored = value;
  value = stored;
#endif
  return value;
}

/// a * b, so that no later sum is fused with it.
template <class Float>
inline Float product(Float a, Float b) noexcept {
  return rounded(a * b);
}

}  // namespace decant::math
