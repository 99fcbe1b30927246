// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <decant/core/candidates.hpp>
#include <decant/core/token.hpp>

// Rows and tokens as golden files write them: null is -inf, and two words stand for what JSON cannot say.

namespace conformance {

using json = nlohmann::json;

inline float to_logit(const json& value) {
  if (value.is_null()) return decant::gone;
  if (value == "NaN") return std::numeric_limits<float>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<float>::infinity();
  if (!value.is_number()) throw std::runtime_error("not a logit: " + value.dump());
  return value.get<float>();
}

inline std::vector<float> to_row(const json& values) {
  std::vector<float> row;
  for (const json& value : values) row.push_back(to_logit(value));
  return row;
}

inline json from_logit(float logit) {
  if (decant::is_gone(logit)) return nullptr;
  if (decant::math::is_nan(logit)) return "NaN";
  if (decant::math::is_plus_infinity(logit)) return "Infinity";
  return static_cast<double>(logit);
}

/// The logits as they stand, one for every id.
inline json from_row(const decant::candidates& row) {
  json values = json::array();
  for (std::size_t id = 0; id < row.vocabulary_size(); ++id) {
    values.push_back(from_logit(row.logit(static_cast<decant::token_id>(id))));
  }
  return values;
}

/// A list of ids, a single id, or null, which is none.
inline std::vector<decant::token_id> to_ids(const json& value) {
  if (value.is_null()) return {};
  if (value.is_array()) return value.get<std::vector<decant::token_id>>();
  return {value.get<decant::token_id>()};
}

}  // namespace conformance
