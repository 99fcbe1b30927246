// SPDX-License-Identifier: MIT
#pragma once

// One include for Catch2 2.13 (Debian) and 3.x.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
