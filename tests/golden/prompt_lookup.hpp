// SPDX-License-Identifier: MIT
#pragma once

#include "golden/family.hpp"

namespace conformance {

/// What prompt lookup proposes after a text.
family prompt_lookup_family();

}  // namespace conformance
