// SPDX-License-Identifier: MIT
#include <decant/speculative/eagle.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "toy_target.hpp"

namespace eagle_tests {

using decant::draft;
using decant::eagle;
using decant::feature_rows;
using decant::no_parent;
using decant::token_id;

/// A drafter of the toy's features that keeps books: its row tells what it was made from, and its rows are those of the
/// target if every pair fits.
class clerk {
 public:
  explicit clerk(const toy::target& of) : target_(&of) {}

  [[nodiscard]] std::size_t size() const { return pairs_.size(); }
  [[nodiscard]] std::size_t feature_size() const { return 2; }

  std::span<const float> extend(std::span<const token_id> tokens, std::span<const float> features) {
    REQUIRE(features.size() == 2 * tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      pairs_.push_back({tokens[i], features[2 * i], features[2 * i + 1]});
    }
    extended += tokens.size();
    nodes_.clear();
    return target_->row_after(text());
  }
  void truncate(std::size_t length) { pairs_.resize(length); }
  void grow(std::span<const token_id> tokens, std::span<const std::int32_t> parents) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      nodes_.push_back(parents[i] == no_parent ? text() : nodes_.at(static_cast<std::size_t>(parents[i])));
      nodes_.back().push_back(tokens[i]);
    }
  }
  [[nodiscard]] std::span<const float> row(std::size_t i) const { return target_->row_after(nodes_.at(i)); }

  /// The text that the pairs tell of: each feature is the size of the text before its token, and the last token there.
  [[nodiscard]] toy::tokens text() const {
    toy::tokens all;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      REQUIRE(static_cast<std::size_t>(pairs_[i].size) == first_size() + i);
      if (i > 0) REQUIRE(static_cast<token_id>(pairs_[i].last) == pairs_[i - 1].token);
      if (i == 0) all.push_back(static_cast<token_id>(pairs_[i].last));
      all.push_back(pairs_[i].token);
    }
    return all;
  }
  [[nodiscard]] std::size_t first_size() const { return static_cast<std::size_t>(pairs_.at(0).size); }

  std::size_t extended = 0;

 private:
  struct pair {
    token_id token;
    float size, last;
  };

  const toy::target* target_;
  std::vector<pair> pairs_;
  std::vector<toy::tokens> nodes_;
};

static_assert(decant::FeatureDrafter<clerk> && decant::TreeRows<feature_rows<clerk>> &&
              decant::DraftSource<eagle<clerk>>);

std::vector<std::size_t> all_rows(std::size_t count) {
  std::vector<std::size_t> rows(count);
  for (std::size_t i = 0; i < count; ++i) rows[i] = i;
  return rows;
}

std::vector<float> copy(std::span<const float> row) { return {row.begin(), row.end()}; }

TEST_CASE("eagle: with the target's own rows every draft is accepted to its depth", "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    toy::target model(4, seed);
    for (const std::size_t width : {1U, 3U}) {
      eagle drafter(clerk(model), {.width = width, .depth = 3, .nodes = 60});
      const auto done = toy::greedy_rounds(model, drafter, {0, 1, 3}, 41);
      CHECK(done.text == toy::greedy_text(model, {0, 1, 3}, 41));
      if (width == 1) CHECK(done.passes == 10);
    }
  }
}

TEST_CASE("eagle: a drafter that knows another model is slower and no worse", "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    toy::target model(4, seed);
    const toy::target other(4, seed + 1000);
    eagle drafter(clerk(other), {.width = 2, .depth = 3});
    CHECK(toy::greedy_rounds(model, drafter, {0, 1, 3}, 30).text == toy::greedy_text(model, {0, 1, 3}, 30));
  }
}

TEST_CASE("feature_rows: the tree begins with the row after the text; each pair is made once", "[speculative]") {
  toy::target model(4, 91);
  feature_rows rows{clerk(model)};
  model.score(toy::tokens{0, 1, 3});
  rows.observe(model, all_rows(3));
  CHECK(copy(rows.start(toy::tokens{0, 1, 3, 2})) == copy(model.row_after(toy::tokens{0, 1, 3, 2})));
  CHECK(rows.drafter().extended == 3);
  model.score(toy::tokens{2});
  rows.observe(model, all_rows(1));
  CHECK(copy(rows.start(toy::tokens{0, 1, 3, 2, 1})) == copy(model.row_after(toy::tokens{0, 1, 3, 2, 1})));
  CHECK(rows.drafter().extended == 4);
  // Asked again, and about another token that waits: the last pair alone is made anew.
  CHECK(copy(rows.start(toy::tokens{0, 1, 3, 2, 0})) == copy(model.row_after(toy::tokens{0, 1, 3, 2, 0})));
  CHECK(rows.drafter().extended == 5);
}

TEST_CASE("feature_rows: a text whose beginning it has not seen is seen from there on", "[speculative]") {
  toy::target model(4, 93);
  model.score(toy::tokens{0, 1, 3});
  feature_rows rows{clerk(model)};
  model.score(toy::tokens{2, 2});
  rows.observe(model, all_rows(2));
  CHECK_FALSE(rows.start(toy::tokens{0, 1, 3, 2, 2, 0}).empty());
  CHECK(rows.drafter().first_size() == 4);
  CHECK(rows.drafter().text() == toy::tokens{2, 2, 0});
}

TEST_CASE("feature_rows: the same tokens elsewhere are other pairs", "[speculative]") {
  toy::target model(4, 94);
  feature_rows rows{clerk(model)};
  model.score(toy::tokens{1, 1});
  rows.observe(model, all_rows(2));
  rows.start(toy::tokens{1, 1, 1});
  rows.start(toy::tokens{1, 1, 1, 1});
  CHECK(rows.drafter().extended == 4);
}

TEST_CASE("feature_rows: no row of what was not observed, nor after a reset", "[speculative]") {
  toy::target model(4, 95);
  feature_rows rows{clerk(model)};
  CHECK(rows.start(toy::tokens{0}).empty());
  model.score(toy::tokens{0, 1});
  rows.observe(model, all_rows(2));
  CHECK(rows.start(toy::tokens{0, 1}).empty());
  CHECK_FALSE(rows.start(toy::tokens{0, 1, 2}).empty());
  rows.reset();
  CHECK(rows.start(toy::tokens{0, 1, 2}).empty());
}

}  // namespace eagle_tests
