// SPDX-License-Identifier: MIT
#pragma once

#include <decant/speculative/draft.hpp>
