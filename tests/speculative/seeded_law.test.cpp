// SPDX-License-Identifier: MIT
#include <decant/speculative/speculate.hpp>

#include <cmath>
#include <cstddef>
#include <map>

#include <decant/chain.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/speculative/draft_model.hpp>
#include <decant/speculative/k_seq_verification.hpp>
#include <decant/speculative/recursive_rejection.hpp>
#include <decant/speculative/token_verification.hpp>
#include <decant/speculative/transport_verification.hpp>
#include <decant/testing/chi_square.hpp>

#include "speculative/drivers.hpp"
#include "support/catch.hpp"

// The same proof with real numbers: seeds instead of branches. And the control: a driver that leaves the base out of
// its keys must fail it.

namespace seeded_law_tests {

using namespace drivers;
using decant::any_sampler;
using decant::draw_stream;
using decant::dynamic_chain;

const ids prompt{0, 1};
constexpr std::size_t length = 3;

run_time_decoder plain_chain() { return dynamic_chain{} | any_sampler(decant::multinomial{}); }
markov target_table() { return decant::testing::random_markov_model(3, 1, 41); }
markov draft_table() { return decant::testing::random_markov_model(3, 1, 42); }

/// The p-value of a chi-square test of `seeds` outputs against the law of plain decoding.
template <class Run>
double p_value(std::size_t seeds, Run run) {
  markov model = target_table();
  const auto expected = decant::testing::sequence_law(model, prompt, plain_chain(), length);
  std::map<ids, std::size_t> seen;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) ++seen[run(seed)];
  std::vector<std::size_t> counts;
  std::vector<double> probabilities;
  for (const auto& [tokens, chance] : expected) {
    counts.push_back(seen[tokens]);
    probabilities.push_back(chance);
  }
  return decant::testing::chi_square(counts, probabilities).p_value;
}

template <class Rule>
double p_value_of(const Rule& rule, std::size_t seeds, const std::vector<std::size_t>& children, proposal mode) {
  function_model model = tree_model(target_table());
  tree_drafter drafter(draft_table(), plain_chain(), children, mode);
  return p_value(seeds, [&](std::uint64_t seed) {
    return speculated(model, prompt, drafter, plain_chain(), {.max_new_tokens = length, .seed = seed},
                      {.length = draft_length::fixed(children.size()), .max_nodes = 20}, rule)
        .tokens;
  });
}

constexpr auto with = proposal::with_replacement, without = proposal::without_replacement;
constexpr std::size_t few = 20'000, many = 400'000;

double by_token(std::size_t seeds) { return p_value_of(decant::token_verification{}, seeds, {1, 1}, with); }
double by_block(std::size_t seeds) { return p_value_of(decant::lossless_verification{}, seeds, {1, 1}, with); }
double by_leaf(std::size_t seeds) { return p_value_of(decant::lossless_verification{}, seeds, {2, 2}, with); }
double by_leaf_without(std::size_t seeds) {
  return p_value_of(decant::lossless_verification{}, seeds, {2, 1}, without);
}
double in_turn(std::size_t seeds) { return p_value_of(decant::recursive_rejection{}, seeds, {2, 2}, with); }
double in_turn_without(std::size_t seeds) { return p_value_of(decant::recursive_rejection{}, seeds, {2, 1}, without); }
double by_k_seq(std::size_t seeds) { return p_value_of(decant::k_seq_verification{}, seeds, {2, 1}, with); }
double at_once(std::size_t seeds) { return p_value_of(decant::transport_verification{8}, seeds, {2, 1}, with); }
double coupled(std::size_t seeds) { return p_value_of(decant::coupled_verification{}, seeds, {1, 1}, with); }
double deterministic(std::size_t seeds) {
  return p_value_of(decant::lossless_verification{}, seeds, {2, 1}, proposal::deterministic);
}

TEST_CASE("token verification over 20,000 seeds", "[speculative]") { CHECK(by_token(few) > 1e-4); }
TEST_CASE("block verification over 20,000 seeds", "[speculative]") { CHECK(by_block(few) > 1e-4); }
TEST_CASE("traversal verification over 20,000 seeds", "[speculative]") { CHECK(by_leaf(few) > 1e-4); }
TEST_CASE("traversal without replacement over 20,000 seeds", "[speculative]") { CHECK(by_leaf_without(few) > 1e-4); }
TEST_CASE("recursive rejection over 20,000 seeds", "[speculative]") { CHECK(in_turn(few) > 1e-4); }
TEST_CASE("rejection without replacement over 20,000 seeds", "[speculative]") { CHECK(in_turn_without(few) > 1e-4); }
TEST_CASE("k-SEQ over 20,000 seeds", "[speculative]") { CHECK(by_k_seq(few) > 1e-4); }
TEST_CASE("several draws at once over 20,000 seeds", "[speculative]") { CHECK(at_once(few) > 1e-4); }
TEST_CASE("coupled verification over 20,000 seeds", "[speculative]") { CHECK(coupled(few) > 1e-4); }
TEST_CASE("deterministic drafts over 20,000 seeds", "[speculative]") { CHECK(deterministic(few) > 1e-4); }

TEST_CASE("every lossless rule has the law of plain decoding over 400,000 seeds", "[speculative][long]") {
  for (const auto& rule : {by_token, by_block, by_leaf, by_leaf_without, in_turn, in_turn_without, by_k_seq, at_once,
                           coupled, deterministic}) {
    CHECK(rule(many) > 1e-4);
  }
}

/// A small driver of its own: block verification of two drafted tokens a round. `with_base` says whether the keys of
/// drafts and decisions hold the base of the round, or are those of position and purpose alone.
ids with_keys(std::uint64_t seed, bool with_base) {
  static const markov target = target_table(), small = draft_table();
  auto decoder = plain_chain();
  struct by_position {
    draw_stream draws;
    std::size_t base;
    [[nodiscard]] bool chance(double n, double d, std::int32_t node) const {
      const auto position = base + static_cast<std::size_t>(node) + 1;
      return draws.at(position).uniform(decant::purpose::accept) * d < n;
    }
  };
  ids text = prompt;
  const draw_stream request(seed);
  while (text.size() < prompt.size() + length) {
    const std::size_t base = text.size();
    const draw_stream round = with_base ? request.child(base) : request;
    draft drafted;
    drafted.clear(proposal::with_replacement);
    ids longer = text;
    for (std::int32_t node = no_parent; node < 1; ++node) {
      const auto context = decant::context_after(longer, prompt.size(), round);
      decoder.law_of(small.row_after(longer), context, drafted.children_law(node));
      longer.push_back(decant::draw(drafted.children_law(node), round.at(longer.size()), decant::purpose::draft));
      drafted.add(longer.back(), node);
    }
    std::vector<decant::law> laws(3);
    for (std::size_t i = 0; i < 3; ++i) {
      const ids before(longer.begin(), longer.begin() + static_cast<std::ptrdiff_t>(base + i));
      decoder.law_of(target.row_after(before), decant::context_after(before, prompt.size(), round), laws[i]);
    }
    decant::verdict found;
    decant::block_verification{}(
        drafted, [&](std::int32_t node) -> const decant::law& { return laws[static_cast<std::size_t>(node + 1)]; },
        by_position{round, base}, found);
    for (const std::size_t node : found.path) text.push_back(drafted.token(static_cast<std::int32_t>(node)));
    text.push_back(decant::draw(*found.next, round.at(text.size()), decant::purpose::residual));
  }
  text.resize(prompt.size() + length);
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end()};
}

TEST_CASE("block verification with the base left out of the key has another law", "[speculative]") {
  constexpr std::size_t seeds = few;
  CHECK(p_value(seeds, [](std::uint64_t seed) { return with_keys(seed, true); }) > 1e-4);
  CHECK(p_value(seeds, [](std::uint64_t seed) { return with_keys(seed, false); }) < 1e-9);
}

// ---- tokens a pass, where laws do not depend on the text

struct accepted_per_round {
  double rounds = 0, sum = 0, squares = 0;
  [[nodiscard]] double mean() const { return sum / rounds; }
  [[nodiscard]] double z(double expected) const {
    const double variance = squares / rounds - mean() * mean();
    return variance > 0 ? (mean() - expected) / std::sqrt(variance / rounds) : 0;
  }
};

template <class Rule>
accepted_per_round accepted_with(const Rule& rule, const markov& target, const markov& small, std::size_t depth,
                                 std::size_t tokens) {
  function_model model = tree_model(target);
  markov drafting = small;
  decant::draft_model drafter(drafting, plain_chain());
  accepted_per_round out;
  const decant::speculation_options how{.length = draft_length::fixed(depth),
                                        .on_round = [&](const decant::round_outcome& outcome) {
                                          if (outcome.proposed < depth) return;  // at the end of the output
                                          const auto n = static_cast<double>(outcome.accepted() + 1);
                                          out.rounds += 1;
                                          out.sum += n;
                                          out.squares += n * n;
                                        }};
  (void)speculated(model, ids{0}, drafter, plain_chain(), {.max_new_tokens = tokens, .seed = 7}, how, rule);
  return out;
}

TEST_CASE("tokens a pass are (1 - a^(k+1)) / (1 - a), and by block no fewer", "[speculative]") {
  for (std::uint64_t pair = 1; pair <= 4; ++pair) {
    const markov target = decant::testing::random_markov_model(4, 0, pair),
                 small = decant::testing::random_markov_model(4, 0, pair + 30);
    auto decoder = plain_chain();
    const auto context = decant::context_after(prompt, 2, draw_stream(1));
    const decant::law p = decoder.law_of(target.row_after({}), context),
                      q = decoder.law_of(small.row_after({}), context);
    const double a = 1 - decant::excess(p, 1.0, q);
    for (const std::size_t depth : {1U, 3U}) {
      const auto by_token = accepted_with(decant::token_verification{}, target, small, depth, 3000);
      CHECK(std::abs(by_token.z(decant::expected_tokens(a, depth))) < 4);
      const auto by_block = accepted_with(decant::lossless_verification{}, target, small, depth, 3000);
      CHECK(by_block.z(decant::expected_tokens(a, depth)) > -4);
    }
  }
  // The paper's pair: 20/9 for 19/9.
  const float l = std::log(2.0F);
  const markov target(2, 0, {0, l}), small(2, 0, {l, 0});
  CHECK(std::abs(accepted_with(decant::token_verification{}, target, small, 2, 8000).z(19.0 / 9)) < 4);
  CHECK(std::abs(accepted_with(decant::lossless_verification{}, target, small, 2, 8000).z(20.0 / 9)) < 4);
}

TEST_CASE("a draft that is called deterministic and was drawn is accepted less often, with the right law (vLLM#40149)",
          "[speculative]") {
  const markov target = target_table(), small = draft_table();
  struct one_hot {
    decant::draft_model<markov, run_time_decoder> inner;
    void propose(const draft_request& request, draft& out) {
      inner.propose(request, out);
      out.set_mode(proposal::deterministic);
    }
  };
  markov drafting = small;
  one_hot drafter{{drafting, plain_chain()}};
  function_model model = tree_model(target);
  CHECK(p_value(20'000, [&](std::uint64_t seed) {
          return speculated(model, prompt, drafter, plain_chain(), {.max_new_tokens = length, .seed = seed},
                            {.length = draft_length::fixed(2)})
              .tokens;
        }) > 1e-4);
  const markov p_table = decant::testing::random_markov_model(4, 0, 3),
               q_table = decant::testing::random_markov_model(4, 0, 9);
  auto decoder = plain_chain();
  const auto context = decant::context_after(prompt, 2, draw_stream(1));
  const decant::law p = decoder.law_of(p_table.row_after({}), context),
                    q = decoder.law_of(q_table.row_after({}), context);
  double match = 0;  // sum of p q
  for (std::size_t i = 0; i < q.size(); ++i) match += p.probability(q.ids[i]) * q.weights[i] / q.total;
  markov again = q_table;
  one_hot drawn{{again, plain_chain()}};
  function_model free = tree_model(p_table);
  const auto seen = speculated(free, ids{0}, drawn, plain_chain(), {.max_new_tokens = 8000, .seed = 7},
                               {.length = draft_length::fixed(1)})
                        .statistics;
  CHECK(std::abs(decant::testing::z_score(seen.accepted[0], seen.tried[0], match)) < 4);
  CHECK(match < 1 - decant::excess(p, 1.0, q));
}

}  // namespace seeded_law_tests
