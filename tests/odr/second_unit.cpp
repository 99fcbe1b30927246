// SPDX-License-Identifier: MIT
// A second unit with everything included. Whatever a header defines without `inline` is now defined twice.
#include <decant/decant.hpp>
