// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// The rules that the source tree keeps, as functions from a tree to the sentences that say where it breaks them. They
// take the tree's root, so that they can be tested on trees made for the purpose.

namespace layout {

namespace fs = std::filesystem;
using names = std::set<std::string>;
using complaints = std::vector<std::string>;

/// What a room may include: rooms on its own floor and below.
inline const std::map<std::string, int> floors = {
    {"math", 0},     {"core", 1},   {"processors", 2}, {"samplers", 2}, {"constrain", 2},
    {"text", 2},     {"chain", 3},  {"generate", 4},   {"search", 5},   {"speculative", 5},
    {"guidance", 5}, {"rerank", 5}, {"config", 6},     {"adapters", 6},
};

/// Rooms beside the floors: they stand on these rooms alone. `testing` stands on all, and nothing stands on it.
inline const std::map<std::string, names> annexes = {
    {"reference", {"math", "core"}},
    {"attention", {"math", "core", "reference"}},
};

/// Rooms that may build on the annexes, because they connect decant to something outside.
inline const names bridges = {"adapters"};

/// Rooms whose headers are compiled into everything: heavy standard headers would be paid by every user.
inline const names light_rooms = {"math", "core", "processors", "samplers"};
inline const names heavy_headers = {"random", "iostream", "regex", "functional"};

inline const names eigen_rooms = {"reference", "attention", "search",   "speculative",
                                  "guidance",  "rerank",    "adapters", "testing"};

/// Rooms that <decant/decant.hpp> may leave out: they need Eigen or another library, and come behind their own include.
inline const names optional_rooms = {"reference", "attention", "config", "adapters"};

/// Headers without a test file of their own, and why.
inline const std::map<std::string, std::string> untested_headers = {
    {"core/version.hpp", "three numbers, checked by the package tests"},
    {"math/strict.hpp", "only macros, checked by odr.mixed_flags"},
};

/// A source file: its path from the tree's root, and its lines.
struct source {
  std::string path;
  std::vector<std::string> lines;

  /// What it includes, in order, with the brackets or quotes: "<span>".
  [[nodiscard]] std::vector<std::string> includes() const {
    std::vector<std::string> found;
    for (const std::string& line : lines) {
      const auto hash = line.find_first_not_of(" \t");
      if (hash == std::string::npos || line[hash] != '#') continue;
      const auto word = line.find_first_not_of(" \t", hash + 1);
      if (word == std::string::npos || line.compare(word, 7, "include") != 0) continue;
      const auto begin = line.find_first_of("<\"", word);
      if (begin == std::string::npos) continue;
      const auto end = line.find_first_of(">\"", begin + 1);
      if (end != std::string::npos) found.push_back(line.substr(begin, end + 1 - begin));
    }
    return found;
  }
};

inline source read(const fs::path& root, const fs::path& file) {
  source result{fs::relative(file, root).generic_string(), {}};
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) result.lines.push_back(line);
  return result;
}

inline std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  if (fs::is_directory(folder)) std::copy(fs::directory_iterator(folder), {}, std::back_inserter(found));
  std::sort(found.begin(), found.end());
  return found;
}

/// Every header under include/decant, in path order.
inline std::vector<source> headers(const fs::path& root) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root / "include/decant")) {
    if (entry.path().extension() == ".hpp") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<source> result;
  for (const fs::path& file : files) result.push_back(read(root, file));
  return result;
}

/// "math" for include/decant/math/philox.hpp and for decant/math/philox.hpp; empty for an umbrella.
inline std::string room_of(std::string_view path) {
  const auto begin = path.find("decant/") + 7;
  const auto slash = path.find('/', begin);
  return std::string(slash == std::string_view::npos ? "" : path.substr(begin, slash - begin));
}

/// The rooms that hold headers. What lies in folders inside a room is internal to it.
inline std::map<std::string, names> rooms(const fs::path& root) {
  std::map<std::string, names> found;
  for (const fs::path& folder : entries(root / "include/decant")) {
    for (const fs::path& file : entries(folder)) {
      if (file.extension() == ".hpp") found[folder.filename().string()].insert(file.filename().string());
    }
  }
  return found;
}

inline bool may_include(const std::string& room, const std::string& other) {
  if (room == other || room == "testing") return true;
  if (other == "testing") return false;
  if (const auto annex = annexes.find(room); annex != annexes.end()) return annex->second.contains(other);
  if (annexes.contains(other)) return bridges.contains(room);
  const auto from = floors.find(room), to = floors.find(other);
  return from != floors.end() && to != floors.end() && to->second <= from->second;
}

inline bool is_eigen(const std::string& name) {
  return name.starts_with("Eigen/") || name.starts_with("unsupported/Eigen/");
}

inline bool is_intrinsic(const std::string& name) { return name.ends_with("intrin.h") || name == "arm_neon.h"; }

/// Floors, and what each room may take from outside.
inline complaints check_includes(const fs::path& root) {
  complaints found;
  for (const source& header : headers(root)) {
    const std::string room = room_of(header.path);
    if (room.empty()) continue;  // an umbrella: see check_umbrellas
    if (!floors.contains(room) && !annexes.contains(room) && room != "testing") {
      found.push_back(header.path + ": the room " + room + " is not known to this test");
    }
    for (const std::string& include : header.includes()) {
      const std::string name = include.substr(1, include.size() - 2);
      const auto complain = [&](const std::string& why) { found.push_back(header.path + ": " + include + ": " + why); };
      if (include.front() == '"') complain("headers include each other as <decant/...>");
      if (name.starts_with("decant/")) {
        const std::string other = room_of(name);
        if (other.empty()) {
          complain("headers include headers, not umbrellas");
        } else if (!may_include(room, other)) {
          complain(room + " may not stand on " + other);
        }
        continue;
      }
      if (heavy_headers.contains(name) && light_rooms.contains(room)) complain("too heavy for " + room);
      if (is_eigen(name)) {
        if (!eigen_rooms.contains(room)) complain("no Eigen in " + room);
      } else if (is_intrinsic(name)) {
        if (room != "math") complain("intrinsics live in math alone");
      } else if (room == "math" && name.find_first_of("/.") != std::string::npos) {
        complain("math stands on the standard library alone");
      }
    }
  }
  return found;
}

inline names as_names(const std::vector<std::string>& includes) { return {includes.begin(), includes.end()}; }

inline void compare(const source& umbrella, const names& wanted, const names& allowed, complaints& found) {
  const names actual = as_names(umbrella.includes());
  for (const std::string& include : wanted) {
    if (!actual.contains(include)) found.push_back(umbrella.path + ": does not include " + include);
  }
  for (const std::string& include : actual) {
    if (!wanted.contains(include) && !allowed.contains(include)) {
      found.push_back(umbrella.path + ": may not include " + include);
    }
  }
}

/// decant.hpp includes the rooms' umbrellas, and each of them that room's headers; nothing else.
inline complaints check_umbrellas(const fs::path& root) {
  complaints found;
  const auto all = rooms(root);
  names wanted, allowed;
  for (const auto& [room, files] : all) {
    if (room != "testing") (optional_rooms.contains(room) ? allowed : wanted).insert("<decant/" + room + ".hpp>");
    const fs::path umbrella = root / "include/decant" / (room + ".hpp");
    if (!fs::exists(umbrella)) {
      // Each bridge stands behind its own include, so adapters may do without.
      if (room != "adapters") found.push_back("include/decant/" + room + ".hpp is missing");
      continue;
    }
    names contents;
    for (const std::string& file : files) contents.insert("<decant/" + room + "/" + file + ">");
    compare(read(root, umbrella), contents, {}, found);
  }
  for (const fs::path& file : entries(root / "include/decant")) {
    if (file.extension() != ".hpp" || file.stem() == "decant" || all.contains(file.stem().string())) continue;
    found.push_back(fs::relative(file, root).generic_string() + ": an umbrella without a room");
  }
  const fs::path top = root / "include/decant/decant.hpp";
  if (fs::exists(top)) {
    compare(read(root, top), wanted, allowed, found);
  } else {
    found.emplace_back("include/decant/decant.hpp is missing");
  }
  return found;
}

/// Each header has its test file, which includes it before anything else.
inline complaints check_tests(const fs::path& root) {
  complaints found;
  for (const auto& [room, files] : rooms(root)) {
    for (const std::string& file : files) {
      const std::string header = room + "/" + file;
      if (untested_headers.contains(header)) continue;
      const std::string test = "tests/" + room + "/" + fs::path(file).stem().string() + ".test.cpp";
      if (!fs::exists(root / test)) {
        found.push_back(test + " is missing");
        continue;
      }
      const auto includes = read(root, root / test).includes();
      if (includes.empty() || includes.front() != "<decant/" + header + ">") {
        found.push_back(test + ": does not include <decant/" + header + "> first");
      }
    }
  }
  for (const auto& [header, reason] : untested_headers) {
    if (!fs::exists(root / "include/decant" / header))
      found.push_back(header + " is excused from tests, but is not there");
  }
  return found;
}

/// Each header begins with its licence and guards itself.
inline complaints check_headers(const fs::path& root) {
  complaints found;
  for (const source& header : headers(root)) {
    if (header.lines.empty() || header.lines.front() != "// SPDX-License-Identifier: MIT") {
      found.push_back(header.path + ": the first line is not the SPDX line");
    }
    if (std::find(header.lines.begin(), header.lines.end(), "#pragma once") == header.lines.end()) {
      found.push_back(header.path + ": no #pragma once");
    }
  }
  return found;
}

}  // namespace layout
