// SPDX-License-Identifier: MIT
// Two candidates must not undo each other's edits: a row has one.
// expect: (use of deleted function|call to deleted constructor).*candidates
#include <decant/core/candidates.hpp>

void use(decant::candidates& row) {
#ifdef DECANT_CONTROL
  decant::candidates& other = row;
#else
  decant::candidates other = row;
#endif
  other.ban(0);
}
