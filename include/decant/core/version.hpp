// SPDX-License-Identifier: MIT
#pragma once

// The one place that states decant's version; CMake reads it from here.
#define DECANT_VERSION_MAJOR 0
#define DECANT_VERSION_MINOR 2
#define DECANT_VERSION_PATCH 0

/// One comparable number: 10000 * major + 100 * minor + patch.
#define DECANT_VERSION (DECANT_VERSION_MAJOR * 10000 + DECANT_VERSION_MINOR * 100 + DECANT_VERSION_PATCH)
