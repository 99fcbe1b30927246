// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdio>

#include "mixed_flags.hpp"

int main() {
  const auto expected = plain::answers();
  const auto actual = fast::answers();
  if (expected == actual) return 0;
  std::size_t different = 0;
  for (std::size_t i = 0; i < expected.size() && i < actual.size(); ++i) {
    if (expected[i] != actual[i]) ++different;
  }
  std::printf("%zu of %zu answers depend on the flags (%zu answers from the other unit)\n", different, expected.size(),
              actual.size());
  return 1;
}
