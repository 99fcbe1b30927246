// SPDX-License-Identifier: MIT
#pragma once

#include <decant/speculative/blockwise_heads.hpp>
#include <decant/speculative/chain_drafter.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/draft_and_verify.hpp>
#include <decant/speculative/dynamic_tree.hpp>
#include <decant/speculative/eagle.hpp>
#include <decant/speculative/exit_threshold.hpp>
#include <decant/speculative/head_rows.hpp>
#include <decant/speculative/layer_skip.hpp>
#include <decant/speculative/medusa.hpp>
#include <decant/speculative/multi_token_prediction.hpp>
#include <decant/speculative/skip_search.hpp>
#include <decant/speculative/swift.hpp>
#include <decant/speculative/tree_shape.hpp>
