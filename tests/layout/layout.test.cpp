// SPDX-License-Identifier: MIT
#include "tree.hpp"

#include <initializer_list>
#include <utility>

#include "support/catch.hpp"

namespace layout_test {

namespace fs = std::filesystem;
using layout::complaints;

const fs::path real_tree = DECANT_SOURCE_DIR;

std::string text(const complaints& found) {
  std::string joined;
  for (const std::string& complaint : found) joined += complaint + '\n';
  return joined;
}

/// A small tree that keeps every rule, in a folder of its own that goes away with it.
class fixture {
 public:
  explicit fixture(const std::string& name)
      : root_(fs::temp_directory_path() / ("decant_layout_" + name + "_" + unique())) {
    header("math/scalar.hpp", "#include <cmath>\n");
    header("math/strict.hpp", "");
    header("core/version.hpp", "");
    header("core/row.hpp", "#include <decant/math/scalar.hpp>\n#include <span>\n");
    header("math.hpp", "#include <decant/math/scalar.hpp>\n#include <decant/math/strict.hpp>\n");
    header("core.hpp", "#include <decant/core/row.hpp>\n#include <decant/core/version.hpp>\n");
    header("decant.hpp", "#include <decant/core.hpp>\n#include <decant/math.hpp>\n");
    file("tests/math/scalar.test.cpp", "#include <decant/math/scalar.hpp>\n");
    file("tests/core/row.test.cpp", "#include <decant/core/row.hpp>\n");
  }
  fixture(const fixture&) = delete;
  fixture& operator=(const fixture&) = delete;
  ~fixture() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  [[nodiscard]] const fs::path& root() const { return root_; }

  /// A well-formed header with these lines in it.
  void header(const std::string& path, const std::string& body) {
    file("include/decant/" + path, "// SPDX-License-Identifier: MIT\n#pragma once\n\n" + body);
  }

  void file(const std::string& path, const std::string& body) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << body;
  }

 private:
  /// Tests of several builds may run at once.
  static std::string unique() {
    return std::to_string(std::hash<std::string>{}(
        fs::current_path().string() + std::to_string(fs::file_time_type::clock::now().time_since_epoch().count())));
  }

  fs::path root_;
};

TEST_CASE("every include goes to its own floor or a lower one") {
  const auto found = layout::check_includes(real_tree);
  INFO(text(found));
  CHECK(found.empty());
}

TEST_CASE("umbrellas include their room's headers and nothing else") {
  const auto found = layout::check_umbrellas(real_tree);
  INFO(text(found));
  CHECK(found.empty());
}

TEST_CASE("every public header has a test file that includes it first") {
  const auto found = layout::check_tests(real_tree);
  INFO(text(found));
  CHECK(found.empty());
}

TEST_CASE("every header begins with its licence and guards itself") {
  const auto found = layout::check_headers(real_tree);
  INFO(text(found));
  CHECK(found.empty());
}

TEST_CASE("the layout checks have nothing against a tree that keeps the rules") {
  const fixture tree("good");
  CHECK(text(layout::check_includes(tree.root())).empty());
  CHECK(text(layout::check_umbrellas(tree.root())).empty());
  CHECK(text(layout::check_tests(tree.root())).empty());
  CHECK(text(layout::check_headers(tree.root())).empty());
}

TEST_CASE("the layout checks report every forbidden include") {
  const std::initializer_list<std::pair<std::string, std::string>> forbidden = {
      {"math", "<decant/core/row.hpp>"},
      {"math", "<Eigen/Core>"},
      {"math", "<sys/mman.h>"},
      {"core", "<decant/processors/top_k.hpp>"},
      {"core", "<immintrin.h>"},
      {"core", "<decant/testing/toy.hpp>"},
      {"core", "<decant/math.hpp>"},
      {"core", "\"row.hpp\""},
      {"processors", "<decant/chain/chain.hpp>"},
      {"processors", "<functional>"},
      {"processors", "<Eigen/Core>"},
      {"samplers", "<random>"},
      {"text", "<decant/generate/generate.hpp>"},
      {"chain", "<decant/testing/toy.hpp>"},
      {"generate", "<decant/search/beam.hpp>"},
      {"search", "<decant/reference/transformer.hpp>"},
      {"reference", "<decant/chain/chain.hpp>"},
      {"attention", "<decant/generate/generate.hpp>"},
      {"speculative", "<decant/adapters/x.hpp>"},
      {"cellar", "<span>"},
  };
  for (const auto& [room, include] : forbidden) {
    fixture tree("include");
    tree.header(room + "/sinner.hpp", "#include " + include + "\n");
    const auto found = layout::check_includes(tree.root());
    INFO(room << " includes " << include << "\n" << text(found));
    REQUIRE(found.size() == 1);
    CHECK(found.front().starts_with("include/decant/" + room + "/sinner.hpp: "));
  }
}

TEST_CASE("the layout checks allow what the floors allow") {
  const std::initializer_list<std::pair<std::string, std::string>> allowed = {
      {"math", "<immintrin.h>"},
      {"samplers", "<decant/processors/top_k.hpp>"},
      {"text", "<functional>"},
      {"rerank", "<Eigen/Core>"},
      {"attention", "<decant/reference/transformer.hpp>"},
      {"testing", "<decant/chain/chain.hpp>"},
      {"adapters", "<decant/reference/transformer.hpp>"},
  };
  for (const auto& [room, include] : allowed) {
    fixture tree("allowed");
    tree.header(room + "/saint.hpp", "#  include " + include + "  // with a remark\n");
    CHECK(text(layout::check_includes(tree.root())).empty());
  }
}

TEST_CASE("the layout checks report umbrellas that hold too much or too little") {
  fixture tree("umbrella");
  tree.header("core.hpp", "#include <decant/core/row.hpp>\n#include <vector>\n");
  tree.header("testing/toy.hpp", "");
  tree.header("testing.hpp", "#include <decant/testing/toy.hpp>\n");
  tree.header("decant.hpp", "#include <decant/core.hpp>\n#include <decant/testing.hpp>\n");
  tree.header("text/words.hpp", "");
  tree.header("attic.hpp", "");
  const std::string found = text(layout::check_umbrellas(tree.root()));
  CHECK(found ==
        "include/decant/core.hpp: does not include <decant/core/version.hpp>\n"
        "include/decant/core.hpp: may not include <vector>\n"
        "include/decant/text.hpp is missing\n"
        "include/decant/attic.hpp: an umbrella without a room\n"
        "include/decant/decant.hpp: does not include <decant/math.hpp>\n"
        "include/decant/decant.hpp: does not include <decant/text.hpp>\n"
        "include/decant/decant.hpp: may not include <decant/testing.hpp>\n");
}

TEST_CASE("the layout checks report missing tests and headers that break the form") {
  fixture tree("form");
  tree.header("core/column.hpp", "");
  tree.file("tests/core/row.test.cpp", "#include <vector>\n#include <decant/core/row.hpp>\n");
  tree.file("include/decant/math/bare.hpp", "int bare();\n");
  CHECK(text(layout::check_tests(tree.root())) ==
        "tests/core/column.test.cpp is missing\n"
        "tests/core/row.test.cpp: does not include <decant/core/row.hpp> first\n"
        "tests/math/bare.test.cpp is missing\n");
  CHECK(text(layout::check_headers(tree.root())) ==
        "include/decant/math/bare.hpp: the first line is not the SPDX line\n"
        "include/decant/math/bare.hpp: no #pragma once\n");
}

}  // namespace layout_test
