// SPDX-License-Identifier: MIT
// A result must be asked before it is used: it does not turn into its value by itself.
// expect: (cannot convert|no viable conversion from) .*result<int>
#include <decant/core/errors.hpp>

int twice(decant::result<int> number) {
#ifdef DECANT_CONTROL
  const int value = *number;
#else
  const int value = number;
#endif
  return 2 * value;
}
