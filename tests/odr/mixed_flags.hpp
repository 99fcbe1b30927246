// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

// The same computations, by the unit compiled with -O0 and by the one with -O2 -march=native -ffast-math.
namespace plain {
std::vector<std::uint64_t> answers();
}
namespace fast {
std::vector<std::uint64_t> answers();
}
