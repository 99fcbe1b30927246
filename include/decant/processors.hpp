// SPDX-License-Identifier: MIT
#pragma once

#include <decant/processors/frequency_penalty.hpp>
#include <decant/processors/min_p.hpp>
#include <decant/processors/no_repeat_ngram.hpp>
#include <decant/processors/presence_penalty.hpp>
#include <decant/processors/repetition_penalty.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/token_counts.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/processors/top_p.hpp>
