// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

// The run over golden files: takes cases apart, asks, compares, counts.

namespace conformance {

using json = nlohmann::json;

/// A case that may differ from what is expected, and why.
struct deliberate_difference {
  std::string which;  ///< a case's name, or file#index, counted from 0
  std::string reason;
};

inline constexpr std::size_t most_deliberate = 25;

/// Reads the list: a line each, "which -- reason"; empty lines and those that begin with # are skipped. Throws
/// std::runtime_error for a file that is missing, too long, or has a line without a reason or one entry twice.
std::vector<deliberate_difference> read_deliberate(const std::filesystem::path& file);

struct tally {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t deliberate = 0;
  std::size_t not_applicable = 0;
  std::size_t not_checked = 0;  ///< of a kind that is not supported

  tally& operator+=(const tally& other);
  [[nodiscard]] std::string text() const;
};

struct settings {
  bool corrupt = false;  ///< every expectation altered: then every case must fail, the listed ones too
  bool verbose = false;  ///< a line for every case
  std::vector<deliberate_difference> deliberate{};
};

/// Checks one file and prints its line, preceded by what differs. Throws std::runtime_error for a file that cannot be
/// read as golden cases.
tally check_file(const std::filesystem::path& file, const settings& how, std::ostream& out);

}  // namespace conformance
