// SPDX-License-Identifier: MIT
#pragma once

// Put before everything else in every unit of a test program: misuse throws instead of aborting, so tests can see it.

#include <stdexcept>
#include <string>

/// What DECANT_ASSERT throws in tests: the message, then the condition that did not hold.
struct assertion_error : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] inline void throw_assertion_error(const char* condition, const char* message) {
  throw assertion_error(std::string(message) + " (" + condition + ")");
}

#define DECANT_ASSERT(condition, message) \
  ((condition) ? static_cast<void>(0) : ::throw_assertion_error(#condition, message))
