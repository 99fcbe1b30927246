// SPDX-License-Identifier: MIT
#include <decant/speculative/skip_search.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <vector>

#include <decant/reference/transformer.hpp>

#include "reference/fixtures.hpp"
#include "toy_target.hpp"

namespace skip_search_tests {

using decant::matchness;
using decant::skip_search;
using decant::skip_search_options;
using flags = std::vector<bool>;

std::size_t skipped(const flags& set) { return static_cast<std::size_t>(std::ranges::count(set, true)); }

std::size_t differences(const flags& a, const flags& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
  return count;
}

TEST_CASE("skip_search: sets of the right size, of no first and no last layer", "[speculative]") {
  skip_search search(16, {.ratio = 0.45, .patience = 1000});  // eight layers: floor(2 * 6 * 0.45) = 5
  std::set<flags> seen;
  for (int i = 0; i < 200; ++i) {
    const flags set = search.propose();
    CHECK(set.size() == 16);
    CHECK(skipped(set) == 5);
    CHECK_FALSE((set[0] || set[1] || set[14] || set[15]));
    CHECK(search.propose() == set);
    seen.insert(set);
    search.report(0.1);
  }
  CHECK(seen.size() > 100);
}

TEST_CASE("skip_search: before the first report the best is spread evenly", "[speculative]") {
  const skip_search search(16, {.ratio = 0.5});
  CHECK(search.best() == flags{false, false, true, false, true, false, true, false, true, false, true, false, true,
                               false, false, false});
  CHECK(search.score() == 0);
}

TEST_CASE("skip_search: the best stays, and is what was tried when it scored", "[speculative]") {
  skip_search search(16, {.seed = 4});
  const double scores[] = {0.2, 0.5, 0.5, 0.3, 0.7, 0.6};
  flags expected;
  double best = -1;
  for (const double score : scores) {
    const flags set = search.propose();
    if (score > best) {
      best = score;
      expected = set;
    }
    search.report(score);
    CHECK(search.best() == expected);
    CHECK(search.score() == best);
  }
  CHECK(search.trials() == 6);
}

TEST_CASE("skip_search: every so often a neighbour of the best", "[speculative]") {
  skip_search search(16, {.mutate_every = 3, .seed = 9});
  for (std::size_t trial = 0; trial < 60; ++trial) {
    const flags set = search.propose();
    if (trial % 3 == 2) CHECK(differences(set, search.best()) == 2);
    search.report(1 / (2.0 + static_cast<double>(trial)));
  }
}

TEST_CASE("skip_search: a neighbourhood finds what random sets need not", "[speculative]") {
  // The score counts the flags that a hidden set has too: hill climbing by exchanges reaches it.
  flags hidden(16, false);
  for (const std::size_t i : {2U, 5U, 6U, 11U, 13U}) hidden[i] = true;
  skip_search search(16, {.max_trials = 2000, .patience = 2000, .enough = 0.99, .mutate_every = 1});
  while (!search.done()) {
    const flags set = search.propose();
    search.report(1 - static_cast<double>(differences(set, hidden)) / 10);
  }
  CHECK(search.best() == hidden);
  CHECK(search.score() == 1);
  CHECK(search.propose() == hidden);
}

TEST_CASE("skip_search: when it ends", "[speculative]") {
  skip_search enough(16, {.enough = 0.9});
  enough.report(0.9);
  CHECK_FALSE(enough.done());
  enough.report(0.91);
  CHECK(enough.done());
  const flags best = enough.best();
  enough.report(1);  // of no set: not counted
  CHECK(enough.best() == best);
  CHECK(enough.trials() == 2);

  skip_search impatient(16, {.patience = 3});
  for (int i = 0; i < 4; ++i) impatient.report(0.5);
  CHECK_FALSE(impatient.done());
  impatient.report(0.5);
  CHECK(impatient.done());

  skip_search short_of_trials(16, {.max_trials = 2});
  short_of_trials.report(0.1);
  CHECK_FALSE(short_of_trials.done());
  short_of_trials.report(0.2);
  CHECK(short_of_trials.done());
}

TEST_CASE("skip_search: nothing to choose from", "[speculative]") {
  for (const std::size_t sub_layers : {0U, 2U, 4U}) {
    skip_search search(sub_layers);
    CHECK(search.done());
    CHECK(search.propose() == flags(sub_layers, false));
  }
  CHECK(skip_search(16, {.ratio = 0}).done());
  const skip_search all(6, {.ratio = 1});
  CHECK(all.done());
  CHECK(all.best() == flags{false, false, true, true, false, false});
}

TEST_CASE("skip_search: ratios outside [0, 1]", "[speculative]") {
  for (const double bad : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_FALSE(skip_search::make(std::size_t{8}, skip_search_options{.ratio = bad}));
    CHECK_THROWS_AS(skip_search(8, {.ratio = bad}), decant::parameter_error);
  }
}

TEST_CASE("matchness: a greedy text and nothing skipped give 1", "[speculative]") {
  decant::transformer model(reference_tests::random_checkpoint(reference_tests::small_config(), 71));
  const auto text = toy::greedy_text(model, {3, 17}, 30);
  CHECK(model.size() + 1 == text.size());
  CHECK(matchness(model, text, 30, flags(8, false)) == 1);
  CHECK(matchness(model, text, 1, flags(8, false)) == 1);
  CHECK(model.size() + 1 == text.size());
  flags most(8, true);
  CHECK(matchness(model, text, 30, most) < 1);
}

TEST_CASE("matchness: counted by hand", "[speculative]") {
  toy::target model(4, 72);
  flags two(8, false);
  two[2] = two[3] = true;  // the toy's exit after layer 2
  const auto text = toy::greedy_text(model, {0, 1}, 40);
  for (const std::size_t window : {1U, 7U, 40U}) {
    std::size_t same = 0;
    for (std::size_t i = text.size() - window; i < text.size(); ++i) {
      same += toy::argmax(model.exit(2).row_after(std::span(text).first(i))) == text[i];
    }
    CHECK(matchness(model, text, window, two) == static_cast<double>(same) / static_cast<double>(window));
  }
  CHECK_THROWS_AS(matchness(model, text, 0, two), assertion_error);
  CHECK_THROWS_AS(matchness(model, text, text.size(), two), assertion_error);
  model.truncate(20);
  CHECK_THROWS_AS(matchness(model, text, 5, two), assertion_error);
}

}  // namespace skip_search_tests
