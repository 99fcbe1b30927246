// SPDX-License-Identifier: MIT
#pragma once

#include <decant/chain/any.hpp>
#include <decant/chain/chain.hpp>
#include <decant/chain/compose.hpp>
#include <decant/chain/decoder.hpp>
#include <decant/chain/explain.hpp>
#include <decant/chain/hf_validate.hpp>
#include <decant/chain/llama_cpp_order.hpp>
#include <decant/chain/log_probs.hpp>
#include <decant/chain/preset.hpp>
#include <decant/chain/preset_hf.hpp>
#include <decant/chain/preset_llama_cpp.hpp>
#include <decant/chain/preset_paper.hpp>
#include <decant/chain/preset_trtllm.hpp>
#include <decant/chain/preset_vllm.hpp>
#include <decant/chain/sampling_params.hpp>
#include <decant/chain/steps.hpp>
