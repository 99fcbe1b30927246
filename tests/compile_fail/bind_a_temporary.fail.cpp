// SPDX-License-Identifier: MIT
// A temporary vector would be gone before the row is read.
// expect: (no matching function for call to .*bind|no matching member function for call to 'bind')
#include <decant/core/candidates.hpp>

#include <vector>

void use(decant::candidates& row) {
#ifdef DECANT_CONTROL
  std::vector<float> logits(3, 1.0F);
  row.bind(logits);
#else
  row.bind(std::vector<float>(3, 1.0F));
#endif
}
