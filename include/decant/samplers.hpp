// SPDX-License-Identifier: MIT
#pragma once

#include <decant/samplers/adaptive_p.hpp>
#include <decant/samplers/arithmetic_sampling.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/samplers/gumbel.hpp>
#include <decant/samplers/gumbel_watermark.hpp>
#include <decant/samplers/mirostat.hpp>
#include <decant/samplers/mirostat_v1.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/samplers/without_replacement.hpp>
