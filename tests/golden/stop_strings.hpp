// SPDX-License-Identifier: MIT
#pragma once

#include "golden/family.hpp"

namespace golden {

family stop_string_family();

}  // namespace golden
