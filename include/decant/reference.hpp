// SPDX-License-Identifier: MIT
#pragma once

#include <decant/reference/byte_source.hpp>
#include <decant/reference/checkpoint.hpp>
#include <decant/reference/dense_attention.hpp>
#include <decant/reference/early_exit_transformer.hpp>
#include <decant/reference/eigen_rows.hpp>
#include <decant/reference/feature_drafter.hpp>
#include <decant/reference/headed_transformer.hpp>
#include <decant/reference/kv_cache.hpp>
#include <decant/reference/kv_pages.hpp>
#include <decant/reference/token_heads.hpp>
#include <decant/reference/tokenizer.hpp>
#include <decant/reference/transformer.hpp>
#include <decant/reference/transformer_batch.hpp>
#include <decant/reference/transformer_pass.hpp>
#include <decant/reference/weight_file.hpp>
