// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace decant {

/// What a truncation does with tokens that stand exactly level with the last one it has to keep.
enum class ties : std::uint8_t {
  lower_id,  ///< the lower ids stay, so that the number of tokens is the one asked for: decant's rule everywhere
  keep,      ///< all of them stay, as in Hugging Face transformers
};

}  // namespace decant
