// SPDX-License-Identifier: MIT
#pragma once

#include <decant/search/contrastive_search.hpp>
#include <decant/search/owned_sequence.hpp>
