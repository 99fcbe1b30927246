// SPDX-License-Identifier: MIT
#include <decant/speculative/relaxed_verification.hpp>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <decant/chain.hpp>
#include <decant/processors/suppress_tokens.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/speculative/blockwise_heads.hpp>
#include <decant/speculative/speculate.hpp>

#include "support/catch.hpp"
#include "toy_target.hpp"

namespace relaxed_verification_tests {

using decant::among_top;
using decant::draft;
using decant::law;
using decant::no_parent;
using decant::relaxed_verification;
using decant::token_id;
using decant::within_distance;
using path = std::vector<std::size_t>;

struct never_asked {};

/// Ids 10, 20, 30 ... with these weights.
law of(std::initializer_list<double> weights) {
  law out;
  for (const double w : weights) {
    out.ids.push_back(static_cast<token_id>(10 * (out.ids.size() + 1)));
    out.weights.push_back(w);
    out.total += w;
  }
  return out;
}

struct outcome {
  path accepted;
  law next;
};

/// Accepts with the same target law everywhere.
template <class Rule>
outcome judged(const Rule& rule, const draft& drafted, const law& p) {
  decant::verdict found;
  rule(drafted, [&](std::int32_t) -> const law& { return p; }, never_asked{}, found);
  return {found.path, *found.next};
}

template <class Rule>
bool passes(const Rule& rule, token_id token, const law& p) {
  draft drafted;
  drafted.add(token);
  return judged(rule, drafted, p).accepted.size() == 1;
}

TEST_CASE("among_top lets the k most probable pass, ties by lower id", "[speculative]") {
  const law p = of({0.1, 0.3, 0.1, 0.4, 0.1});  // 40, 20, 10, 30, 50
  const std::vector<token_id> order{40, 20, 10, 30, 50};
  for (int k = 1; k <= 6; ++k) {
    for (int place = 0; place < 5; ++place) {
      CHECK(passes(relaxed_verification(among_top(k)), order[static_cast<std::size_t>(place)], p) == (place < k));
    }
    CHECK(!passes(relaxed_verification(among_top(k)), 25, p));  // not in the law
  }
}

TEST_CASE("within_distance lets ids pass that are near the argmax", "[speculative]") {
  const law p = of({0.1, 0.3, 0.1, 0.3, 0.1, 0.1});  // the argmax is 20
  for (const int distance : {0, 9, 10, 19, 20, 1000}) {
    for (const token_id token : {10, 20, 30, 40, 50, 60}) {
      CHECK(passes(relaxed_verification(within_distance(distance)), token, p) == (std::abs(token - 20) <= distance));
    }
    CHECK(!passes(relaxed_verification(within_distance(distance)), 21, p));
  }
}

TEST_CASE("relaxed_verification: the next token is the target's argmax", "[speculative]") {
  const law p = of({0.1, 0.3, 0.2, 0.3, 0.1});
  draft drafted;
  const auto top = drafted.add(30, drafted.add(20));
  drafted.add(50, top);
  const outcome found = judged(relaxed_verification(among_top(3)), drafted, p);
  CHECK(found.accepted == path{0, 1});
  CHECK(found.next.ids == std::vector<token_id>{20});
  CHECK(judged(relaxed_verification(among_top(5)), drafted, p).next.ids == std::vector<token_id>{20});
  CHECK(judged(relaxed_verification(among_top(5)), draft{}, p).next.ids == std::vector<token_id>{20});
}

TEST_CASE("relaxed_verification goes down a tree to the first child that is near enough", "[speculative]") {
  const law p = of({0.1, 0.3, 0.2, 0.3, 0.1});
  draft drafted;
  drafted.add(10);
  const auto second = drafted.add(40), third = drafted.add(20);
  drafted.add(20, third);
  drafted.add(50, second);
  const auto last = drafted.add(30, second);
  CHECK(judged(relaxed_verification(among_top(3)), drafted, p).accepted ==
        path{static_cast<std::size_t>(second), static_cast<std::size_t>(last)});
}

TEST_CASE("relaxed_verification with a smallest block takes its first tokens unseen, but for what is banned",
          "[speculative]") {
  const law p = of({0.1, 0.3, 0.2, 0.3, 0.1});
  draft drafted;
  std::int32_t node = no_parent;
  for (const token_id token : {50, 50, 20, 50}) node = drafted.add(token, node);
  const auto accepted = [&](int min_block) {
    return judged(relaxed_verification(among_top(1), min_block), drafted, p).accepted.size();
  };
  CHECK(accepted(1) == 0);
  CHECK(accepted(2) == 1);
  CHECK(accepted(3) == 3);
  CHECK(accepted(4) == 3);
  CHECK(accepted(5) == 4);
  CHECK(accepted(100) == 4);
  draft banned;
  banned.add(55);
  CHECK(judged(relaxed_verification(among_top(1), 5), banned, p).accepted.empty());
}

TEST_CASE("relaxed_verification ends before a target row that cannot be decoded", "[speculative]") {
  draft drafted;
  drafted.add(10, drafted.add(10));
  const law good = of({1}), bad;
  decant::verdict found;
  relaxed_verification(among_top(2), 9)(
      drafted, [&](std::int32_t n) -> const law& { return n == no_parent ? good : bad; }, never_asked{}, found);
  CHECK(found.path == path{0});
  CHECK(found.next == &bad);
}

// ---- blockwise parallel decoding, from the heads to the text

template <class Rule, class D>
decant::speculation blocks_of(std::uint64_t seed, const Rule& rule, D decoder) {
  toy::target model(5, seed);
  decant::blockwise_heads drafter;
  return decant::speculate(model, toy::tokens{0, 1}, drafter, decoder, {.max_new_tokens = 40, .seed = 3},
                           {.length = decant::draft_length::fixed(3)}, rule);
}

auto drawing() { return decant::temperature(0.7) | decant::multinomial{}; }

/// How many tokens of the target are more probable than the one that the text goes on with, at the worst place.
std::size_t worst_rank(std::uint64_t seed, const toy::tokens& output) {
  const toy::target model(5, seed);
  toy::tokens text{0, 1};
  std::size_t worst = 0;
  for (const token_id token : output) {
    const auto row = model.row_after(text);
    const float z = row[static_cast<std::size_t>(token)];
    worst = std::max(worst, static_cast<std::size_t>(std::ranges::count_if(row, [&](float x) { return x > z; })));
    text.push_back(token);
  }
  return worst;
}

TEST_CASE("blockwise decoding with the exact criteria is plain greedy, whatever the chain would draw",
          "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    toy::target model(5, seed);
    const auto text = toy::greedy_text(model, {0, 1}, 40);
    const toy::tokens greedy(text.begin() + 2, text.end());
    CHECK(blocks_of(seed, relaxed_verification(among_top(1)), drawing()).tokens == greedy);
    CHECK(blocks_of(seed, relaxed_verification(within_distance(0)), drawing()).tokens == greedy);
    CHECK(blocks_of(seed, relaxed_verification(among_top(3)), decant::temperature(1) | decant::greedy{}).tokens ==
          greedy);
  }
}

TEST_CASE("blockwise decoding with relaxed criteria is another text in fewer passes: not lossless", "[speculative]") {
  std::size_t exact_passes = 0, top_passes = 0, blind_passes = 0;
  bool differs = false;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto exact = blocks_of(seed, relaxed_verification(among_top(1)), drawing());
    const auto top = blocks_of(seed, relaxed_verification(among_top(3)), drawing());
    const auto blind = blocks_of(seed, relaxed_verification(among_top(1), 4), drawing());
    CHECK(worst_rank(seed, exact.tokens) == 0);
    CHECK(worst_rank(seed, top.tokens) <= 2);
    CHECK(blind.statistics.tokens_per_pass() == 4);  // 3 heads and the target
    differs = differs || top.tokens != exact.tokens;
    exact_passes += exact.statistics.rounds;
    top_passes += top.statistics.rounds;
    blind_passes += blind.statistics.rounds;
  }
  CHECK(differs);
  CHECK(top_passes < exact_passes);
  CHECK(blind_passes == 100);
  CHECK(!relaxed_verification<among_top>::lossless);
}

TEST_CASE("what a chain bans is not written by relaxed criteria either", "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto chain = decant::suppress_tokens({2}) | decant::multinomial{};
    const auto run = blocks_of(seed, relaxed_verification(among_top(5), 4), chain);
    CHECK(std::ranges::find(run.tokens, 2) == run.tokens.end());
  }
}

TEST_CASE("relaxed_verification parameters", "[speculative]") {
  CHECK_THROWS_AS(among_top(0), decant::parameter_error);
  CHECK_THROWS_AS(within_distance(-1), decant::parameter_error);
  CHECK_THROWS_AS(relaxed_verification(among_top(1), 0), decant::parameter_error);
  CHECK(!among_top::make(0).has_value());
  CHECK(!within_distance::make(-1).has_value());
  CHECK(!relaxed_verification<among_top>::make(among_top(1), 0).has_value());
  CHECK(relaxed_verification<among_top>::make(among_top(2), 3)->describe() == "relaxed_verification(among_top(2), 3)");
  CHECK(relaxed_verification(within_distance(4)).describe() == "relaxed_verification(within_distance(4), 1)");
}

}  // namespace relaxed_verification_tests
