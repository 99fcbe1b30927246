// SPDX-License-Identifier: MIT
// The trained heads and the feature drafter against the numbers that the script which trained them printed.

#include <decant/reference/feature_drafter.hpp>
#include <decant/reference/headed_transformer.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <decant/core/candidates.hpp>

using namespace decant;

namespace shipped_speculators_tests {

const std::filesystem::path root = DECANT_SOURCE_DIR;
const std::filesystem::path models = root / "examples" / "models";

struct choice {
  token_id token;
  double logit;
};

/// The file's lines: a word, then numbers.
struct expectation {
  std::vector<token_id> tokens;
  token_id first = no_token;
  std::vector<std::vector<choice>> heads, drafts;

  static expectation read() {
    expectation all;
    std::ifstream file(root / "tests" / "reference" / "speculators.expected");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string kind;
      words >> kind;
      if (kind == "tokens") {
        for (token_id token; words >> token;) all.tokens.push_back(token);
      } else if (kind == "first") {
        words >> all.first;
      } else {
        auto& rows = kind == "head" ? all.heads : all.drafts;
        rows.emplace_back();
        for (choice c; words >> c.token >> c.logit;) rows.back().push_back(c);
      }
    }
    return all;
  }
};

void check_top(std::span<const float> row, const std::vector<choice>& expected) {
  candidates ranked;
  ranked.bind(row);
  const auto top = ranked.descending(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(top[i].id == expected[i].token);
    CHECK(static_cast<double>(top[i].logit) == Approx(expected[i].logit).margin(2e-4));
  }
}

TEST_CASE("shipped heads: the rows that training printed", "[reference][token_heads]") {
  const expectation expected = expectation::read();
  REQUIRE(expected.heads.size() == 4);
  auto target = transformer::load(models / "target.bin");
  auto heads = token_heads::load(models / "heads.bin");
  REQUIRE(target);
  REQUIRE(heads);
  headed_transformer model(*std::move(target), *std::move(heads));
  REQUIRE(model.head_count() == 4);
  model.evaluate(expected.tokens);
  for (std::size_t k = 1; k <= 4; ++k) check_top(model.head_row(k, expected.tokens.size() - 1), expected.heads[k - 1]);
  // The shares that the file carries fall from head to head, and from pick to pick.
  const auto& shares = model.heads().shares();
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(shares[k].size() == 10);
    CHECK((shares[k][0] > 0.1 && shares[k][0] < 0.5));
    CHECK(shares[k][0] > shares[k][1]);
    if (k > 0) CHECK(shares[k][0] < shares[k - 1][0]);
  }
}

TEST_CASE("shipped feature drafter: the chain that training printed", "[reference][feature_drafter]") {
  const expectation expected = expectation::read();
  REQUIRE(expected.drafts.size() == 4);
  const auto target = read_checkpoint(models / "target.bin");
  REQUIRE(target);
  auto drafter = feature_drafter::load(models / "features.bin", *target);
  REQUIRE(drafter);
  transformer model(*target);
  model.score(expected.tokens);
  std::vector<float> features;
  for (std::size_t i = 0; i < expected.tokens.size(); ++i) {
    features.insert(features.end(), model.hidden(i).begin(), model.hidden(i).end());
  }
  candidates row;
  row.bind(model.row(expected.tokens.size() - 1));
  CHECK(row.argmax() == expected.first);

  std::vector<token_id> paired(expected.tokens.begin() + 1, expected.tokens.end());
  paired.push_back(expected.first);
  check_top(drafter->extend(paired, features), expected.drafts[0]);
  for (std::int32_t node = 0; node < 3; ++node) {
    const token_id token = expected.drafts[static_cast<std::size_t>(node)][0].token;
    const std::int32_t parent = node - 1;
    drafter->grow(std::span(&token, 1), std::span(&parent, 1));
    check_top(drafter->row(static_cast<std::size_t>(node)), expected.drafts[static_cast<std::size_t>(node) + 1]);
  }
}

}  // namespace shipped_speculators_tests
