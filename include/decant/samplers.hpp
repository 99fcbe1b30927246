// SPDX-License-Identifier: MIT
#pragma once

#include <decant/samplers/greedy.hpp>
#include <decant/samplers/gumbel.hpp>
#include <decant/samplers/multinomial.hpp>
