// SPDX-License-Identifier: MIT
#pragma once

#include <decant/search/any_constraint.hpp>
#include <decant/search/beam.hpp>
#include <decant/search/beam_lanes.hpp>
#include <decant/search/beam_options.hpp>
#include <decant/search/beam_search.hpp>
#include <decant/search/beam_selection.hpp>
#include <decant/search/beam_stream.hpp>
#include <decant/search/best_first_search.hpp>
#include <decant/search/contrastive_search.hpp>
#include <decant/search/coverage.hpp>
#include <decant/search/cross_attention.hpp>
#include <decant/search/diversity.hpp>
#include <decant/search/finished_pool.hpp>
#include <decant/search/hypothesis_links.hpp>
#include <decant/search/length_penalty.hpp>
#include <decant/search/owned_sequence.hpp>
#include <decant/search/required_phrases.hpp>
#include <decant/search/sequences_without_replacement.hpp>
#include <decant/search/stochastic_beam_search.hpp>
