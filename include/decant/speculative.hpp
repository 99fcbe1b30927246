// SPDX-License-Identifier: MIT
#pragma once

#include <decant/speculative/block_verification.hpp>
#include <decant/speculative/coupled_verification.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/draft_length.hpp>
#include <decant/speculative/draft_model.hpp>
#include <decant/speculative/ensemble_verification.hpp>
#include <decant/speculative/k_seq_verification.hpp>
#include <decant/speculative/lenient_verification.hpp>
#include <decant/speculative/lossless_verification.hpp>
#include <decant/speculative/recursive_rejection.hpp>
#include <decant/speculative/residual.hpp>
#include <decant/speculative/speculate.hpp>
#include <decant/speculative/speculative_cascade.hpp>
#include <decant/speculative/speculative_stream.hpp>
#include <decant/speculative/statistics.hpp>
#include <decant/speculative/target_laws.hpp>
#include <decant/speculative/token_verification.hpp>
#include <decant/speculative/transport_verification.hpp>
#include <decant/speculative/traversal_verification.hpp>
#include <decant/speculative/typical_acceptance.hpp>
#include <decant/speculative/verdict.hpp>
