// SPDX-License-Identifier: MIT
#pragma once

#include "golden/family.hpp"

namespace golden {

family validation_family();

}  // namespace golden
