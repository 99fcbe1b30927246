// SPDX-License-Identifier: MIT
#pragma once

#include "golden/family.hpp"

namespace conformance {

family green_list_family();
family synthid_family();

}  // namespace conformance
