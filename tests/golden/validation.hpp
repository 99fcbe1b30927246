// SPDX-License-Identifier: MIT
#pragma once

#include "golden/family.hpp"

namespace conformance {

family validation_family();

}  // namespace conformance
