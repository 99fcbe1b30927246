// SPDX-License-Identifier: MIT
#pragma once

#include <decant/speculative/block_verification.hpp>
#include <decant/speculative/coupled_verification.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/k_seq_verification.hpp>
#include <decant/speculative/lenient_verification.hpp>
#include <decant/speculative/recursive_rejection.hpp>
#include <decant/speculative/residual.hpp>
#include <decant/speculative/speculative_cascade.hpp>
#include <decant/speculative/token_verification.hpp>
#include <decant/speculative/transport_verification.hpp>
#include <decant/speculative/traversal_verification.hpp>
#include <decant/speculative/typical_acceptance.hpp>
#include <decant/speculative/verdict.hpp>
