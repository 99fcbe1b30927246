// SPDX-License-Identifier: MIT
#pragma once

#include <decant/chain.hpp>
#include <decant/core.hpp>
#include <decant/generate.hpp>
#include <decant/math.hpp>
#include <decant/processors.hpp>
#include <decant/reference.hpp>
#include <decant/samplers.hpp>
#include <decant/search.hpp>
#include <decant/speculative.hpp>
#include <decant/text.hpp>
