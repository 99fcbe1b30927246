// SPDX-License-Identifier: MIT
#pragma once

#include <decant/text/detokenizer.hpp>
#include <decant/text/stop_matcher.hpp>
#include <decant/text/utf8_stream.hpp>
