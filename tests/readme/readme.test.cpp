// SPDX-License-Identifier: MIT
#include "policy_docs.hpp"

#include <cstdlib>
#include <set>

#include "support/catch.hpp"
#include "support/processor_helpers.hpp"

// The README's tables are made of the headers' docstrings, and its links lead somewhere.

namespace readme_test {

namespace fs = std::filesystem;

const fs::path root = DECANT_SOURCE_DIR;
const fs::path include = root / "include/decant";

TEST_CASE("the README's tables of policies are those that the headers give") {
  const std::string text = readme::read_text(root / "README.md");
  const std::size_t begin = text.find(readme::begin_marker), end = text.find(readme::end_marker);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  const std::size_t inside = begin + std::string(readme::begin_marker).size();
  const std::string wanted = readme::policy_tables(include);
  if (std::getenv("DECANT_UPDATE_README") != nullptr) {
    std::ofstream(root / "README.md", std::ios::binary) << text.substr(0, inside) << wanted << text.substr(end);
    WARN("README.md was written anew");
    return;
  }
  INFO("to write them anew, run this test with DECANT_UPDATE_README=1 in the environment");
  CHECK(text.substr(inside, end - inside) == wanted);
}

TEST_CASE("every policy stands in the README, with what it does and where it comes from") {
  std::set<std::pair<std::string, std::string>> listed;
  for (const readme::policy_group& group : readme::groups()) {
    for (const std::string& name : group.names) {
      INFO(name);
      CHECK(listed.insert({group.room.string(), name}).second);
      const readme::policy_doc doc = readme::policy_of(include / group.room / (name + ".hpp"));
      CHECK(!doc.effect.empty());
      CHECK(!doc.reference.empty());
    }
  }
  for (const char* room : {"processors", "samplers"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(include / room)) {
      const std::string name = entry.path().stem().string();
      INFO(room << "/" << name);
      const bool helper = std::ranges::find(processor_helpers, name) != processor_helpers.end();
      CHECK(helper != listed.contains({room, name}));
    }
  }
}

TEST_CASE("what a header says of itself is read as it stands") {
  const fs::path folder = fs::temp_directory_path() / ("decant_readme_" + std::to_string(std::rand()));
  fs::create_directories(folder);
  std::ofstream(folder / "sieve.hpp") << "/// Something else.\nstruct other {};\n\n"
                                         "/// Keeps what is at least 0.5 of the best. It never\n/// fails.\n///\n"
                                         "/// Off: x = 0.5, or nothing. Errors: none.\n"
                                         "/// Reference: Able, Baker, Charlie, \"Of sieves\", ACL 2023,\n"
                                         "/// arXiv 2301.00001. Much later work differs.\n"
                                         "class sieve : public base {\n"
                                         "  static constexpr bool argmax_invariant = true;\n"
                                         "  void f() { context.draws; context.tokens; }\n};\n";
  const readme::policy_doc doc = readme::policy_of(folder / "sieve.hpp");
  fs::remove_all(folder);
  CHECK(doc.effect == "Keeps what is at least 0.5 of the best");
  CHECK(doc.off == "x = 0.5, or nothing");
  CHECK(doc.reference == "Able et al. 2023, arXiv 2301.00001");
  CHECK(doc.argmax_invariant);
  CHECK(doc.needs == "text, draws");
}

TEST_CASE("every link of the README to a file leads somewhere") {
  const std::string text = readme::read_text(root / "README.md");
  const std::regex link("\\]\\(([^)#:]+)(#[^)]*)?\\)");
  std::size_t links = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at, ++links) {
    INFO((*at)[1].str());
    CHECK(fs::exists(root / (*at)[1].str()));
  }
  CHECK(links >= 8);
}

TEST_CASE("what to use when: every line names a chain and links to something that shows it") {
  const std::string text = readme::read_text(root / "README.md");
  const std::size_t begin = text.find("## What to use when");
  REQUIRE(begin != std::string::npos);
  std::istringstream lines(text.substr(begin, text.find("\n## ", begin + 3) - begin));
  std::size_t rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") || line.starts_with("| task")) continue;
    INFO(line);
    CHECK(std::regex_match(line,
                           std::regex("\\| [^|`]+ \\| `[^`]+`.*\\| \\[[^\\]]+\\]\\((examples|bench)/[^)]+\\) \\|")));
    ++rows;
  }
  CHECK(rows >= 8);
}

}  // namespace readme_test
