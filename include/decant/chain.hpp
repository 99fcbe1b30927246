// SPDX-License-Identifier: MIT
#pragma once

#include <decant/chain/any.hpp>
#include <decant/chain/chain.hpp>
#include <decant/chain/compose.hpp>
#include <decant/chain/decoder.hpp>
#include <decant/chain/explain.hpp>
#include <decant/chain/hf_validate.hpp>
#include <decant/chain/log_probs.hpp>
#include <decant/chain/steps.hpp>
