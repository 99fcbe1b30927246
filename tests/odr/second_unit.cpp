// SPDX-License-Identifier: MIT
// A second unit with everything included. Whatever a header defines without `inline` is now defined twice.
#include <decant/decant.hpp>

// In every test program this unit, and no other, makes operator new count.
#define DECANT_TESTING_COUNT_ALLOCATIONS
#include <decant/testing.hpp>
