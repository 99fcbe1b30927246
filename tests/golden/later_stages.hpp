// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "golden/family.hpp"

namespace conformance {

/// Kinds that are told apart from nonsense, so that their files are refused by name and never pass unseen.
std::vector<family> later_families();

}  // namespace conformance
