// SPDX-License-Identifier: MIT
#include <decant/search/diversity.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <decant/search/beam_search.hpp>

#include "search/models.hpp"
#include "search/naive_beam.hpp"

namespace diversity_test {

using namespace search_test;
using decant::beam_candidate;
using decant::beam_options;
using decant::beam_result;
using decant::beam_search;
using decant::diversity_options;
using decant::token_dissimilarity;

std::map<token_id, double> hamming(const ids& chosen) {
  std::vector<token_dissimilarity> out;
  decant::hamming_dissimilarity({.group = 1, .chosen = chosen}, out);
  std::map<token_id, double> amounts;
  for (const auto& [token, amount] : out) CHECK(amounts.emplace(token, amount).second);
  return amounts;
}

TEST_CASE("Hamming dissimilarity counts who chose a token", "[search][diversity]") {
  CHECK(hamming({}).empty());
  CHECK(hamming({4, 2, 4, 4}) == std::map<token_id, double>{{2, -1}, {4, -3}});
}

TEST_CASE("groups must divide the width, and the strength must be a number", "[search][diversity]") {
  CHECK_FALSE(diversity_options{}.validate(5).has_value());
  CHECK_FALSE((diversity_options{.groups = 3, .strength = 0.5}.validate(6).has_value()));
  const auto text = [](const diversity_options& options) { return options.validate(4)->text(); };
  CHECK(text({.groups = 3}) == "diverse_beam_search: groups = 3 must divide the width");
  CHECK(text({.groups = 0}) == "diverse_beam_search: groups = 0 must divide the width");
  CHECK(text({.groups = 2, .strength = -1}) == "diverse_beam_search: strength = -1 must be a finite number >= 0");
  CHECK(diversity_options{.strength = std::nan("")}.validate(4).has_value());
  CHECK(diversity_options{.strength = std::numeric_limits<double>::infinity()}.validate(4).has_value());
}

beam_options with(std::size_t width, diversity_options diversity) {
  return {.width = width,
          .n_best = width,
          .max_new_tokens = 6,
          .end_tokens = {0},
          .length_penalty = decant::length_penalty::mean(),
          .early_stopping = decant::early_stopping::first_n,
          .diversity = std::move(diversity)};
}

std::vector<ids> of_group(const beam_result& found, std::size_t group) {
  std::vector<ids> all;
  for (const decant::hypothesis& one : found.hypotheses) {
    if (one.group == group) all.push_back(one.tokens);
  }
  return all;
}

TEST_CASE("one group is beam search, and without strength every group is one of its width", "[search][diversity]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    any_model model(random_rows(6, seed));
    const ids prompt{2, 3};
    const auto plain = beam_search(model, prompt, with(4, {}));
    CHECK(of_group(beam_search(model, prompt, with(4, {.groups = 1, .strength = 3})), 0) == of_group(plain, 0));
    const auto narrow = beam_search(model, prompt, with(2, {}));
    const auto copies = beam_search(model, prompt, with(6, {.groups = 3, .strength = 0}));
    for (std::size_t group = 0; group < 3; ++group) CHECK(of_group(copies, group) == of_group(narrow, 0));
    // The first group is never penalised.
    const auto strong = beam_search(model, prompt, with(6, {.groups = 3, .strength = 2}));
    CHECK(of_group(strong, 0) == of_group(narrow, 0));
    CHECK(of_group(strong, 1) != of_group(narrow, 0));
  }
}

TEST_CASE("with a large strength groups of one never choose alike", "[search][diversity]") {
  any_model model(random_rows(7, 5, 0));
  beam_options options = with(5, {.groups = 5, .strength = 1e6});
  options.end_tokens = {};
  std::map<std::size_t, std::vector<token_id>> chosen;
  options.on_candidate = [&](const beam_candidate& candidate) {
    if (candidate.fate == decant::candidate_fate::live) chosen[candidate.step].push_back(candidate.token);
  };
  (void)beam_search(model, ids{1}, options);
  REQUIRE(chosen.size() == 5);  // at the sixth step all end
  for (const auto& [step, tokens] : chosen) CHECK(std::set<token_id>(tokens.begin(), tokens.end()).size() == 5);
}

TEST_CASE("groups of one are greedy searches in which earlier choices cost", "[search][diversity]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const naive_search naive{random_rows(6, seed, 0), {1}, {}, 5};
    any_model model(naive.rows);
    beam_options options = with(3, {.groups = 3, .strength = 0.7});
    options.end_tokens = {};
    const auto found = beam_search(model, naive.prompt, options);
    std::vector<naive_hypothesis> groups(3);
    for (std::size_t t = 0; t < 6; ++t) {
      std::map<token_id, int> count;
      for (naive_hypothesis& group : groups) {
        auto law = naive.log_law(group.tokens), ranked = law;
        for (const auto& [token, times] : count) ranked[static_cast<std::size_t>(token)] -= 0.7 * times;
        const auto best = std::ranges::max_element(ranked) - ranked.begin();
        group.log_prob += law[static_cast<std::size_t>(best)];
        group.tokens.push_back(static_cast<token_id>(best));
        ++count[static_cast<token_id>(best)];
      }
    }
    for (std::size_t group = 0; group < 3; ++group) {
      CAPTURE(seed, group);
      CHECK(of_group(found, group) == std::vector<ids>{groups[group].tokens});
      const auto one = std::ranges::find(found.hypotheses, group, &decant::hypothesis::group);
      CHECK(one->log_prob == Approx(groups[group].log_prob));
      CHECK(one->score == Approx(groups[group].log_prob / 6));  // no penalty in it
    }
  }
}

TEST_CASE("what dissimilarity takes is reported, and in the score if it is to be", "[search][diversity]") {
  any_model model(random_rows(4, 1, 0));
  beam_options options = with(2, {.groups = 2, .strength = 0.25});
  options.end_tokens = {};
  bool any = false;
  for (const auto counts : {decant::penalty::ranks_only, decant::penalty::in_score}) {
    options.diversity.counts = counts;
    for (const decant::hypothesis& one : beam_search(model, ids{1}, options).hypotheses) {
      CHECK(one.diversity <= 0);
      CHECK(std::fmod(one.diversity, 0.25) == 0);
      if (one.group == 0) CHECK(one.diversity == 0);
      any = any || one.diversity < 0;
      const double counted = counts == decant::penalty::in_score ? one.diversity : 0;
      CHECK(one.score == Approx((one.log_prob + counted) / 6));
    }
  }
  CHECK(any);
}

TEST_CASE("what a step took off does not count in the ranks of the next", "[search][diversity]") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    any_model model(random_rows(6, seed, 0));
    beam_options options = with(4, {.groups = 2, .strength = 1.5});
    std::map<decant::hypothesis_link, double> taken{{decant::root_link, 0}};
    std::vector<std::pair<std::size_t, double>> ranks;
    options.on_candidate = [&](const beam_candidate& one) {
      if (one.node != decant::no_link) taken[one.node] = one.diversity;
      const double here = one.log_prob + one.diversity - taken.at(one.parent);
      if (one.rank > 0) CHECK(here <= ranks.back().second + 1e-12);
      ranks.emplace_back(one.rank, here);
    };
    (void)beam_search(model, ids{1}, options);
  }
}

TEST_CASE("a measure of one's own may raise tokens from anywhere in the row", "[search][diversity]") {
  // Token 9 is the least probable of ten.
  any_model model([](std::span<const token_id>) { return std::vector<float>{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}; });
  beam_options options = with(2, {.groups = 2, .strength = 2});
  options.end_tokens = {};
  options.max_new_tokens = 2;
  std::vector<ids> seen, texts;
  options.diversity.measure = [&](const decant::diversity_step& step, std::vector<token_dissimilarity>& out) {
    CHECK(step.group == 1);
    seen.emplace_back(step.chosen.begin(), step.chosen.end());
    texts.emplace_back(step.context.tokens.begin(), step.context.tokens.end());
    out.push_back({9, 100});
    out.push_back({0, -1});
  };
  const auto found = beam_search(model, ids{3}, options);
  CHECK(of_group(found, 0) == std::vector<ids>{{0, 0}});
  CHECK(of_group(found, 1) == std::vector<ids>{{9, 9}});
  CHECK(seen == std::vector<ids>{{0}, {0}});
  CHECK(texts == std::vector<ids>{{3}, {3, 9}});
}

TEST_CASE("a group that has ended chooses nothing, or what it is said to", "[search][diversity]") {
  // The end is all but certain for whoever is not kept from it: the first group ends at once.
  any_model model([](std::span<const token_id>) { return std::vector<float>{4, 1.5F, 1, 0}; });
  beam_options options = with(2, {.groups = 2, .strength = 1});
  options.min_new_tokens = 0;
  options.max_new_tokens = 3;
  std::vector<ids> seen;
  options.diversity.measure = [&](const decant::diversity_step& step, std::vector<token_dissimilarity>& out) {
    seen.emplace_back(step.chosen.begin(), step.chosen.end());
    out.push_back({0, -100});  // the second group goes on
  };
  (void)beam_search(model, ids{3}, options);
  CHECK(seen == std::vector<ids>{{1}, {}, {}});
  seen.clear();
  options.diversity.ended_choice = 2;
  (void)beam_search(model, ids{3}, options);
  CHECK(seen == std::vector<ids>{{1}, {2}, {2}});
}

}  // namespace diversity_test
