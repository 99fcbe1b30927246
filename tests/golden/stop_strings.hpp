// SPDX-License-Identifier: MIT
#pragma once

#include "golden/family.hpp"

namespace conformance {

family stop_string_family();

}  // namespace conformance
