// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

// How what was computed is held against what was expected, and how an expectation is altered to see that this bites.

namespace conformance {

using json = nlohmann::json;

/// Absolute and relative: what numbers in float32 allow for.
inline constexpr double tolerance = 2e-5;

/// Where two values differ first, and how; nothing if they agree. Numbers agree within `tolerance`, two whole numbers
/// only if equal; everything else must be the same, null (which stands for -inf) above all.
inline std::optional<std::string> difference(const json& expected, const json& actual, const std::string& where = {}) {
  const auto differ = [&] { return where + ": expected " + expected.dump() + ", computed " + actual.dump(); };
  if (expected.is_structured()) {
    if (expected.type() != actual.type() || expected.size() != actual.size()) return differ();
    for (const auto& [key, value] : expected.items()) {
      const json::json_pointer part("/" + key);
      if (!actual.contains(part)) return where + "/" + key + ": expected " + value.dump() + ", computed nothing";
      if (auto found = difference(value, actual.at(part), where + "/" + key)) return found;
    }
    return {};
  }
  const bool approximate =
      expected.is_number() && actual.is_number() && (expected.is_number_float() || actual.is_number_float());
  if (!approximate) return expected == actual ? std::optional<std::string>{} : differ();
  const double wanted = expected.get<double>(), got = actual.get<double>();
  if (std::abs(wanted - got) <= tolerance * (1 + std::abs(wanted))) return {};
  return differ();
}

/// A row without its order: numbers ascending, then the nulls. For rows in which ties make several results right.
inline json without_order(const json& row) {
  if (!row.is_array()) return row;
  std::vector<double> values;
  for (const json& z : row) {
    values.push_back(z.is_number() ? z.get<double>() : std::numeric_limits<double>::infinity());
  }
  std::sort(values.begin(), values.end());
  json sorted = json::array();
  for (const double value : values) sorted.push_back(std::isfinite(value) ? json(value) : json());
  return sorted;
}

/// One value that no comparison may take for another.
inline json altered(const json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>() + 1;
  if (value.is_number()) return value.get<double>() + 1e-3 * (1 + std::abs(value.get<double>()));
  if (value.is_null()) return 0.0;
  return nullptr;
}

/// Every wrong expectation that one alteration makes of `expectation`: of each value in it alone, and of each list that
/// is empty. Calls visit(altered expectation, what was altered).
template <class Visit>
void each_alteration(const json& expectation, Visit visit) {
  const json flat = expectation.flatten();
  for (const auto& [place, value] : flat.items()) {
    const json::json_pointer pointer(place);
    json wrong = expectation;
    // An empty list or object shows as null here.
    wrong[pointer] = expectation.at(pointer).is_structured() ? json::array({0}) : altered(value);
    visit(wrong, place);
  }
}

}  // namespace conformance
