// SPDX-License-Identifier: MIT
#pragma once

#include <decant/testing/check.hpp>
#include <decant/testing/chi_square.hpp>
#include <decant/testing/counting_allocator.hpp>
#include <decant/testing/eager_row.hpp>
#include <decant/testing/encoder_decoder_toy.hpp>
#include <decant/testing/enumerate.hpp>
#include <decant/testing/hidden_state_model.hpp>
#include <decant/testing/markov_model.hpp>
#include <decant/testing/reference_law.hpp>
