// SPDX-License-Identifier: MIT
#pragma once

#include "golden/family.hpp"

namespace conformance {

/// One round of drafted tokens with given uniform numbers: how many are accepted, and the law of the next.
family speculative_sampling_family();

/// The law of one token, drafted and verified.
family speculative_marginal_family();

/// One round of greedy verification, by the driver.
family assisted_greedy_family();

}  // namespace conformance
