// SPDX-License-Identifier: MIT
#pragma once

#include <decant/search/contrastive_search.hpp>
#include <decant/search/owned_sequence.hpp>
#include <decant/search/sequences_without_replacement.hpp>
#include <decant/search/stochastic_beam_search.hpp>
