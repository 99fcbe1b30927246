// SPDX-License-Identifier: MIT
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "golden/conformance.hpp"
#include "golden/family.hpp"

namespace {

constexpr int some_failed = 1, some_not_checked = 2;

constexpr const char* about =
    "Holds decant against golden files: computes the answer to every case, then compares it with what the file "
    "expects.\n"
    "Prints a line for every case that fails, then for every file how many passed, failed and differ deliberately, "
    "and\n"
    "the total. Numbers agree within 2e-5, absolute and relative; which tokens are gone must agree exactly.";

constexpr const char* exit_codes =
    "Exit codes: 0 all passed; 1 a case failed; 2 something could not be checked: a file that cannot be read, an "
    "unknown\n"
    "format, a kind of case that is not supported yet; above 100 wrong usage.";

void list_families() {
  for (const conformance::family& kind : conformance::families()) {
    std::cout << kind.name << ": " << (kind.compute ? "supported" : "not supported yet");
    const char* separator = "; ";
    for (const std::string& processor : kind.processors) {
      std::cout << separator << processor;
      separator = ", ";
    }
    std::cout << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(about, "decant_conformance");
  app.footer(exit_codes);
  std::vector<std::string> files;
  std::string deliberate = DECANT_SOURCE_DIR "/tests/golden/deliberate.txt";
  conformance::settings how;
  bool list = false;
  app.add_option("files", files, "Golden files, in the format decant-golden/1")->type_name("FILE");
  app.add_flag(
      "--corrupt", how.corrupt,
      "Check the check: alter every value that is expected, one at a time. Each case must then fail, whichever "
      "value was altered");
  app.add_option("--deliberate", deliberate,
                 "The cases that may differ, a line each: a case's name, or file#index counted from 0, then ' -- ' and "
                 "the reason. At most 25. One that does not differ is a failure")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_flag("--list", list, "List the kinds of cases, and which of them are supported, and end");
  app.add_flag("--verbose", how.verbose, "A line for every case, not only for those that fail");
  CLI11_PARSE(app, argc, argv);
  if (list) return list_families(), 0;
  if (files.empty()) return app.exit(CLI::RequiredError("FILE"));

  bool checked = true;
  try {
    how.deliberate = conformance::read_deliberate(deliberate);
  } catch (const std::exception& error) {
    std::cerr << deliberate << ": " << error.what() << '\n';
    return some_not_checked;
  }
  conformance::tally total;
  for (const std::string& file : files) {
    try {
      total += conformance::check_file(file, how, std::cout);
    } catch (const std::exception& error) {
      checked = false;
      std::cout << std::flush;
      std::cerr << file << ": " << error.what() << '\n';
    }
  }
  std::cout << "total: " << total.text() << '\n';
  if (!checked || total.not_checked > 0) return some_not_checked;
  return total.failed > 0 ? some_failed : 0;
}
