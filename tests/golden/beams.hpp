// SPDX-License-Identifier: MIT
#pragma once

#include "golden/family.hpp"

namespace conformance {

/// Beam search over a table of rows, one for every last token: the sequences and their scores.
family beam_family();
/// The same in groups, as Hugging Face's group beam search did it.
family diverse_beam_family();
/// Whether a sequence holds all phrases.
family phrase_family();

}  // namespace conformance
