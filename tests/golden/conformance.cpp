// SPDX-License-Identifier: MIT
#include "golden/conformance.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <fstream>
#include <map>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "golden/compare.hpp"
#include "golden/family.hpp"

namespace conformance {

namespace {

constexpr std::string_view known_format = "decant-golden/1";

/// A case may name a table that the file holds for many cases.
void put_table_in(json& golden_case, const json& tables) {
  const json name = golden_case.is_object() ? golden_case.value("table", json()) : json();
  if (name.is_string() && tables.contains(name.get<std::string>())) {
    golden_case["table"] = tables.at(name.get<std::string>());
  }
}

json read_golden(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream || std::filesystem::is_directory(file)) throw std::runtime_error("cannot be read");
  const json content = json::parse(stream, nullptr, false);
  if (content.is_discarded()) throw std::runtime_error("is not JSON");
  if (!content.is_object()) throw std::runtime_error("is not a JSON object");
  const json format = content.value("format", json());
  if (format != known_format) {
    throw std::runtime_error("unknown format " + format.dump() + ", \"" + std::string(known_format) + "\" is known");
  }
  json cases = content.value("cases", json());
  if (!cases.is_array() || cases.empty()) throw std::runtime_error("holds no cases");
  const json tables = content.value("tables", json::object());
  for (json& one : cases) put_table_in(one, tables);
  return cases;
}

/// Takes the named fields out of `node`, at any depth, and puts them into `expectation` by their JSON pointers.
void take_expectation(json& node, const std::vector<std::string>& names, const json::json_pointer& where,
                      json& expectation) {
  if (!node.is_structured()) return;
  if (node.is_object()) {
    for (const std::string& name : names) {
      if (!node.contains(name)) continue;
      expectation[(where / name).to_string()] = node.at(name);
      node.erase(name);
    }
  }
  for (const auto& [key, value] : node.items()) {
    const json::json_pointer part = node.is_array() ? where / static_cast<std::size_t>(std::stoul(key)) : where / key;
    take_expectation(value, names, part, expectation);
  }
}

/// A case, with its answer already there when the expectation is first looked at.
struct examined {
  json expectation = json::object();
  answer answered{};
  bool any_order = false;
};

examined examine(const family& kind, json question) {
  examined result;
  const json tags = question.value("tags", json::array());
  result.any_order = std::find(tags.begin(), tags.end(), "tie_ambiguous") != tags.end();
  take_expectation(question, kind.expectations, json::json_pointer(), result.expectation);
  if (result.expectation.empty()) throw std::runtime_error("says nothing about what is expected");
  result.answered = kind.compute(question);
  return result;
}

std::optional<std::string> mismatch(const examined& one, const json& expectation) {
  for (const auto& [place, expected] : expectation.items()) {
    if (!one.answered.values.contains(place)) return place + ": not computed";
    const json& computed = one.answered.values.at(place);
    const auto found = one.any_order ? difference(without_order(expected), without_order(computed), place)
                                     : difference(expected, computed, place);
    if (found) return found;
  }
  return {};
}

/// The first single alteration of what is expected that would pass unseen.
std::optional<std::string> unseen_alteration(const examined& one) {
  std::optional<std::string> unseen;
  for (const auto& [place, expected] : one.expectation.items()) {
    each_alteration(json::array({expected}), [&, &field = place](const json& wrong, const std::string& where) {
      if (!unseen && !mismatch(one, {{field, wrong.at(0)}})) unseen = field + where.substr(2);
    });
  }
  return unseen;
}

enum class verdict : std::uint8_t { passed, failed, deliberate, not_applicable };

constexpr std::string_view word(verdict v) {
  constexpr std::string_view words[] = {"passed", "FAILED", "differs deliberately", "not applicable"};
  return words[static_cast<std::size_t>(v)];
}

struct ruling {
  verdict what;
  std::string why{};
};

ruling judge(const family& kind, const json& golden_case, const deliberate_difference* allowed, bool corrupt) {
  try {
    const examined one = examine(kind, golden_case);
    if (const std::string& why = one.answered.not_applicable; !why.empty()) {
      if (allowed) return {verdict::failed, "listed as a deliberate difference, but not applicable: " + why};
      return {verdict::not_applicable, why};
    }
    if (corrupt) {
      if (const auto unseen = unseen_alteration(one)) return {verdict::passed, "although altered at " + *unseen};
      return {verdict::failed, "as it should: its expectation was altered"};
    }
    const auto found = mismatch(one, one.expectation);
    if (allowed && found) return {verdict::deliberate, allowed->reason};
    if (allowed) return {verdict::failed, "listed as a deliberate difference, but it does not differ"};
    if (found) return {verdict::failed, *found};
    return {verdict::passed};
  } catch (const std::exception& error) {
    return {verdict::failed, std::string("cannot be computed: ") + error.what()};
  }
}

std::string name_of(const json& golden_case) {
  const json name = golden_case.is_object() ? golden_case.value("name", json()) : json();
  return name.is_string() ? name.get<std::string>() : std::string();
}

/// What a case of no supported kind calls itself.
std::string kind_of(const json& golden_case) {
  const json processor = golden_case.is_object() ? golden_case.value("processor", json()) : json();
  return processor.is_string() ? processor.get<std::string>() : "unknown";
}

}  // namespace

std::vector<deliberate_difference> read_deliberate(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream || std::filesystem::is_directory(file)) throw std::runtime_error("cannot be read");
  constexpr std::string_view separator = " -- ";
  std::vector<deliberate_difference> list;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line.front() == '#') continue;
    const auto middle = line.find(separator);
    if (middle == std::string::npos || middle == 0 || middle + separator.size() == line.size()) {
      throw std::runtime_error("not \"which -- reason\": " + line);
    }
    list.push_back({line.substr(0, middle), line.substr(middle + separator.size())});
    const auto twice = [&](const deliberate_difference& entry) { return entry.which == list.back().which; };
    if (std::count_if(list.begin(), list.end(), twice) > 1) {
      throw std::runtime_error("listed twice: " + list.back().which);
    }
  }
  if (list.size() > most_deliberate) {
    throw std::runtime_error("lists " + std::to_string(list.size()) + " differences, at most " +
                             std::to_string(most_deliberate) + " may be");
  }
  return list;
}

tally& tally::operator+=(const tally& other) {
  passed += other.passed;
  failed += other.failed;
  deliberate += other.deliberate;
  not_applicable += other.not_applicable;
  not_checked += other.not_checked;
  return *this;
}

std::string tally::text() const {
  std::string line = std::to_string(passed) + " passed, " + std::to_string(failed) + " failed, " +
                     std::to_string(deliberate) + " deliberate";
  if (not_applicable > 0) line += ", " + std::to_string(not_applicable) + " not applicable";
  if (not_checked > 0) line += ", " + std::to_string(not_checked) + " not checked";
  return line;
}

tally check_file(const std::filesystem::path& file, const settings& how, std::ostream& out) {
  const json cases = read_golden(file);
  const std::string file_name = file.filename().string();
  tally count;
  std::map<std::string, std::size_t> unsupported;

  for (std::size_t i = 0; i < cases.size(); ++i) {
    const json& golden_case = cases.at(i);
    const auto& all = families();
    const auto kind = std::find_if(all.begin(), all.end(), [&](const family& f) { return f.holds(golden_case); });
    if (kind == all.end() || kind->compute == nullptr) {
      ++unsupported[kind == all.end() ? kind_of(golden_case) : kind->name];
      ++count.not_checked;
      continue;
    }
    const std::string place = file_name + "#" + std::to_string(i), name = name_of(golden_case);
    const auto listed = std::find_if(how.deliberate.begin(), how.deliberate.end(), [&](const auto& entry) {
      return entry.which == place || (!name.empty() && entry.which == name);
    });
    const ruling found =
        judge(*kind, golden_case, how.corrupt || listed == how.deliberate.end() ? nullptr : &*listed, how.corrupt);
    count.passed += found.what == verdict::passed;
    count.failed += found.what == verdict::failed;
    count.deliberate += found.what == verdict::deliberate;
    count.not_applicable += found.what == verdict::not_applicable;
    if (how.verbose || (found.what == verdict::failed) != how.corrupt) {
      if (!how.verbose && found.what == verdict::not_applicable) continue;
      out << place << (name.empty() ? "" : " ") << name << ": " << word(found.what);
      if (!found.why.empty()) out << ": " << found.why;
      out << '\n';
    }
  }

  for (const auto& entry : how.deliberate) {
    if (how.corrupt || !entry.which.starts_with(file_name + "#")) continue;
    const std::string index = entry.which.substr(file_name.size() + 1);
    const bool is_number = !index.empty() && index.size() < 10 && index.find_first_not_of("0123456789") == index.npos;
    if (is_number && std::stoul(index) < cases.size()) continue;
    ++count.failed;
    out << entry.which << ": FAILED: listed as a deliberate difference, but there is no such case\n";
  }
  for (const auto& [kind, number] : unsupported) {
    out << file_name << ": unsupported kind: " << kind << " (" << number << (number == 1 ? " case" : " cases")
        << " not checked)\n";
  }
  out << file_name << ": " << count.text() << '\n';
  return count;
}

}  // namespace conformance
