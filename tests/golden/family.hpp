// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

// What a kind of golden case is to decant_conformance. A new kind is one source file with one function that returns a
// `family`, and one line in families.cpp.

namespace conformance {

using json = nlohmann::json;

/// What decant says to a case.
struct answer {
  json values = json::object();  ///< by the JSON pointer of the field that holds what is expected: "/expected"
  std::string not_applicable{};  ///< if not empty: why decant has no answer, because the question means nothing in C++
};

/// Cases of one kind. `compute` never sees what is expected: those fields are taken out of the case before.
struct family {
  std::string name;
  std::vector<std::string> fields;          ///< a case with all of these fields is of this kind ...
  std::vector<std::string> processors{};    ///< ... if its "processor" is one of these; with none named, in any case
  std::vector<std::string> expectations{};  ///< the fields, at any depth, that say what is expected
  answer (*compute)(const json& question) = nullptr;  ///< absent for a kind that is known and not supported yet

  [[nodiscard]] bool holds(const json& golden_case) const {
    if (!golden_case.is_object()) return false;
    const bool complete = std::all_of(fields.begin(), fields.end(),
                                      [&](const std::string& field) { return golden_case.contains(field); });
    if (!complete || processors.empty()) return complete;
    const json named = golden_case.value("processor", json());
    return named.is_string() &&
           std::find(processors.begin(), processors.end(), named.get<std::string>()) != processors.end();
  }
};

/// All that are known; the first that holds a case is its family.
const std::vector<family>& families();

}  // namespace conformance
