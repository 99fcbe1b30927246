// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

/// Where a file of the shared test data is (DECANT_SHARED_DIR); it need not exist.
inline std::filesystem::path shared_path(const std::string& name) {
  return std::filesystem::path(DECANT_SHARED_DIR) / name;
}

/// Ends the test case, and has ctest count it as skipped, where that file or folder is not on this machine.
/// (Catch2 2.13 has no SKIP; tests/CMakeLists.txt knows the line printed here.)
#define SKIP_WITHOUT_SHARED(name)                                          \
  do {                                                                     \
    if (!std::filesystem::exists(shared_path(name))) {                     \
      std::printf("SKIPPED: no %s\n", shared_path(name).string().c_str()); \
      std::fflush(stdout);                                                 \
      return;                                                              \
    }                                                                      \
  } while (false)
