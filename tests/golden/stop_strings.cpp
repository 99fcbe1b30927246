// SPDX-License-Identifier: MIT
#include "golden/stop_strings.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <decant/text/stop_matcher.hpp>

namespace conformance {

namespace {

/// Where the first match that begins at `begin` or later ends; npos if there is none.
std::size_t end_of_match(const std::string& stop, std::string_view text, std::size_t begin) {
  decant::stop_matcher matcher({stop});
  for (std::size_t end = begin; end < text.size(); ++end) {
    if (matcher.push(text.substr(end, 1)).matched) return end + 1;
  }
  return std::string_view::npos;
}

/// Hugging Face looks at the whole text again after every token and stops where some match ends inside the last one. A
/// stop_matcher remembers and stops at the first match of all, so a fresh one looks for each string from each place.
bool stops(const std::vector<std::string>& stop_strings, std::string_view text, std::size_t last_token) {
  for (const std::string& stop : stop_strings) {
    for (std::size_t begin = 0; begin < text.size(); ++begin) {
      const std::size_t end = end_of_match(stop, text, begin);
      if (end != std::string_view::npos && end > last_token) return true;
    }
  }
  return false;
}

answer compute_stop(const json& question) {
  std::string text;
  std::size_t last_token = 0;
  for (const json& id : question.at("input_ids")) {
    last_token = text.size();
    text += question.at("pieces").at(id.get<std::size_t>()).get<std::string>();
  }
  return {.values = {{"/stop", stops(question.at("stop_strings").get<std::vector<std::string>>(), text, last_token)}}};
}

}  // namespace

family stop_string_family() {
  return {.name = "stop strings",
          .fields = {"pieces", "stop_strings", "input_ids"},
          .expectations = {"stop"},
          .compute = compute_stop};
}

}  // namespace conformance
