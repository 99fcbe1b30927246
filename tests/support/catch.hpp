// SPDX-License-Identifier: MIT
#pragma once

// One include for Catch2 2.13 (Debian) and 3.x.

// Without a try block of its own around every check, which took a tenth of the time to compile: an expression that
// throws then ends its test case, which fails as before.
#define CATCH_CONFIG_FAST_COMPILE
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
