// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <decant/chain/any.hpp>

#include "golden/family.hpp"

namespace conformance {

/// The processor that Hugging Face calls `name`, as it reads these parameters.
decant::any_processor make_processor(const std::string& name, const json& params);

/// Applies a processor to the row and the tokens of a case: what stands in "/expected".
answer processed(const json& question, decant::any_processor processor);

family processor_family();
family pipeline_family();

}  // namespace conformance
