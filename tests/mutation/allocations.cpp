// SPDX-License-Identifier: MIT
// The unit of a mutated test in which operator new counts. Nothing else is in it: it is compiled once, unchanged.
#define DECANT_TESTING_COUNT_ALLOCATIONS
#include <decant/testing/counting_allocator.hpp>
