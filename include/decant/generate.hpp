// SPDX-License-Identifier: MIT
#pragma once

#include <decant/generate/batch.hpp>
#include <decant/generate/executor.hpp>
#include <decant/generate/generate.hpp>
#include <decant/generate/limits.hpp>
#include <decant/generate/options.hpp>
#include <decant/generate/output.hpp>
#include <decant/generate/repetition_detection.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/generate/stopping.hpp>
#include <decant/generate/thread_pool.hpp>
#include <decant/generate/token_stream.hpp>
