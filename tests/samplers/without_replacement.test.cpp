// SPDX-License-Identifier: MIT
#include <decant/samplers/without_replacement.hpp>

#include "processors/policies.hpp"
#include "samplers/noisy_rows.hpp"

#include <map>
#include <set>

#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/gumbel.hpp>
#include <decant/testing/chi_square.hpp>

namespace without_replacement_tests {

using namespace policies;
using decant::exponential_race;
using decant::perturbed_token;
using decant::sample_without_replacement;
using decant::testing::chi_square;

const auto nothing = [](candidates&, const step_context&) {};

template <class P>
std::vector<perturbed_token> sampled(P policy, const row& logits, std::size_t k, std::uint64_t seed) {
  candidates c;
  c.bind(std::span<const float>(logits));
  const step_context context = context_after({}, 0, draw_stream(seed));
  policy(c, context);
  std::vector<perturbed_token> out(3);  // what stood there does not matter
  sample_without_replacement(c, context, k, out);
  return out;
}

tokens ids_of(const std::vector<perturbed_token>& drawn) {
  tokens out;
  for (const perturbed_token& token : drawn) out.push_back(token.id);
  return out;
}

/// Chi-square of ordered k-tuples against Plackett-Luce: p1 * p2 / (1 - p1) * ...
template <class P>
double tuple_p_value(P policy, const row& logits, const law& p, std::size_t k, std::uint64_t draws) {
  std::map<tokens, std::size_t> counted;
  for (std::uint64_t seed = 0; seed < draws; ++seed) ++counted[ids_of(sampled(policy, logits, k, seed))];
  std::vector<std::size_t> counts;
  law expected;
  double sum = 0;
  const auto extend = [&](auto& self, tokens prefix, double probability, double left) -> void {
    if (prefix.size() == k) {
      counts.push_back(counted[prefix]);
      expected.push_back(probability);
      sum += probability;
      return;
    }
    for (std::size_t i = 0; i < p.size(); ++i) {
      const auto id = static_cast<token_id>(i);
      if (!(p[i] > 0) || std::find(prefix.begin(), prefix.end(), id) != prefix.end()) continue;
      tokens longer = prefix;
      longer.push_back(id);
      self(self, longer, probability * p[i] / left, left - p[i]);
    }
  };
  extend(extend, {}, 1, 1);
  CHECK(sum == Approx(1).epsilon(1e-9));
  std::size_t total = 0;
  for (const std::size_t count : counts) total += count;
  CHECK(total == draws);
  return chi_square(counts, expected).p_value;
}

TEST_CASE("ordered tuples follow Plackett-Luce, over seeds", "[samplers]") {
  const law p = reference::exact_law(golden);
  for (const std::size_t k : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    CHECK(tuple_p_value(nothing, golden, p, k, 20'000) > 1e-4);
  }
  const row tied{1, 1, gone, 1, 0};
  CHECK(tuple_p_value(nothing, tied, reference::exact_law(tied), 4, 20'000) > 1e-4);
}

TEST_CASE("ordered tuples follow Plackett-Luce, over many more seeds", "[samplers][long]") {
  const law p = reference::exact_law(golden);
  for (const std::size_t k : {std::size_t{2}, std::size_t{3}, std::size_t{6}}) {
    CHECK(tuple_p_value(nothing, golden, p, k, 400'000) > 1e-4);
  }
}

TEST_CASE("what a chain has left is what is drawn from", "[samplers]") {
  const auto z = reference::widened(golden);
  CHECK(tuple_p_value(decant::temperature(2), golden, reference::exact_law(reference::temperature(z, 2)), 2, 20'000) >
        1e-4);
  CHECK(tuple_p_value(decant::top_k(3), golden, reference::exact_law(reference::top_k(z, 3)), 2, 20'000) > 1e-4);
}

TEST_CASE("the values are log-probability plus noise, in descending order, of different tokens", "[samplers]") {
  const row logits = random_row(300, 2);
  const law p = reference::exact_law(logits);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto drawn = sampled(nothing, logits, 40, seed);
    const exponential_race race(draw_stream(seed).numbers(decant::purpose::noise));
    REQUIRE(drawn.size() == 40);
    std::set<token_id> distinct;
    double before = infinity;
    for (const perturbed_token& token : drawn) {
      distinct.insert(token.id);
      const double log_p = std::log(p[static_cast<std::size_t>(token.id)]);
      CHECK(token.log_probability == Approx(log_p).margin(1e-10));
      CHECK(token.perturbed == Approx(log_p + race.noise(token.id)).margin(1e-10));
      CHECK(token.perturbed <= before);
      before = token.perturbed;
    }
    CHECK(distinct.size() == 40);
    for (token_id id = 0; id < 300; ++id) {
      if (distinct.contains(id)) continue;
      CHECK(std::log(p[static_cast<std::size_t>(id)]) + race.noise(id) <= before + 1e-10);
    }
  }
}

TEST_CASE("the first token is the one that gumbel draws", "[samplers]") {
  for (const std::size_t size : {std::size_t{2}, std::size_t{60}, std::size_t{9000}}) {
    const row logits = random_row(size, size);
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      candidates c;
      c.bind(std::span<const float>(logits));
      const token_id alone = decant::gumbel{}(c, context_after({}, 0, draw_stream(seed)));
      CHECK(ids_of(sampled(nothing, logits, 1, seed)) == tokens{alone});
      CHECK(sampled(nothing, logits, 5, seed)[0].id == alone);
    }
  }
}

TEST_CASE("a larger k adds tokens after the same ones", "[samplers]") {
  const row logits = random_row(50, 9);
  const auto all = sampled(nothing, logits, 50, 4);
  for (std::size_t k = 0; k <= 50; ++k) {
    const auto some = sampled(nothing, logits, k, 4);
    CHECK(some == std::vector<perturbed_token>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(k)));
  }
}

TEST_CASE("fewer tokens than k gives all of them", "[samplers]") {
  auto ids = ids_of(sampled(nothing, golden, 100, 1));
  std::sort(ids.begin(), ids.end());
  CHECK(ids == tokens{0, 1, 2, 3, 4, 5});
  ids = ids_of(sampled(nothing, {gone, 1, gone, -4, gone}, static_cast<std::size_t>(-1), 1));
  std::sort(ids.begin(), ids.end());
  CHECK(ids == tokens{1, 3});
  const auto one = sampled(nothing, {gone, -7, gone}, 3, 1);
  REQUIRE(one.size() == 1);
  CHECK(one[0].id == 1);
  CHECK(one[0].log_probability == 0);
}

TEST_CASE("equal values go to the lower id", "[samplers]") {
  // So far below the largest logit that their noise is rounded away.
  const row logits{0, -1e30F, -1e30F, -2e30F, -1e30F, -2e30F};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (std::size_t k = 1; k <= 6; ++k) {
      const tokens order{0, 1, 2, 4, 3, 5};
      CHECK(ids_of(sampled(nothing, logits, k, seed)) ==
            tokens(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k)));
    }
  }
}

TEST_CASE("a token far below comes after those near the top", "[samplers]") {
  for (std::uint64_t seed = 0; seed < 5000; ++seed) CHECK(sampled(nothing, {0, -1e4F, -3}, 3, seed)[2].id == 1);
}

TEST_CASE("importance weights from the next value estimate sums without bias", "[samplers]") {
  const law p = reference::exact_law(golden);
  constexpr std::size_t k = 2, draws = 20'000;
  double sum = 0, squares = 0, exact = 0;
  for (std::size_t i = 0; i < 6; ++i) exact += p[i] * static_cast<double>(i * i);
  for (std::uint64_t seed = 0; seed < draws; ++seed) {
    const auto drawn = sampled(nothing, golden, k + 1, seed);
    double estimate = 0;
    for (std::size_t i = 0; i < k; ++i) {
      const double included = -std::expm1(-std::exp(drawn[i].log_probability - drawn[k].perturbed));
      estimate += std::exp(drawn[i].log_probability) / included * static_cast<double>(drawn[i].id * drawn[i].id);
    }
    sum += estimate;
    squares += estimate * estimate;
  }
  const double mean = sum / draws, error = std::sqrt((squares / draws - mean * mean) / draws);
  CHECK(std::abs(mean - exact) < 4 * error);
}

TEST_CASE("nothing comes from a bad row, or for k = 0", "[samplers]") {
  CHECK(sampled(nothing, golden, 0, 1).empty());
  CHECK(sampled(nothing, row(5, gone), 3, 1).empty());
  for (std::size_t place = 0; place < 5; ++place) {
    for (const float bad : {nan_float, infinite_float}) {
      row logits{1, 2, 3, 4, 5};
      logits[place] = bad;
      CHECK(sampled(nothing, logits, 3, place).empty());
    }
  }
}

TEST_CASE("the row is only read, and nothing allocates once the output has grown", "[samplers]") {
  row logits = random_row(5000, 6);
  const row copy = logits;
  candidates c;
  std::vector<perturbed_token> out;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const std::size_t before = decant::testing::allocations();
    c.bind(std::span<float>(logits));
    sample_without_replacement(c, context_after({}, 0, draw_stream(seed)), 64, out);
    CHECK(c.size() == 5000);
    c.release();
    if (seed > 1) CHECK(decant::testing::allocations() == before);
  }
  CHECK(same_bits(logits, copy));
}

TEST_CASE("equal keys draw the same, other positions and streams do not", "[samplers]") {
  const row flat(100, 0.0F);
  CHECK(sampled(nothing, flat, 10, 5) == sampled(nothing, flat, 10, 5));
  CHECK(ids_of(sampled(nothing, flat, 10, 5)) != ids_of(sampled(nothing, flat, 10, 6)));
  candidates c;
  c.bind(std::span<const float>(flat));
  std::vector<perturbed_token> here, there;
  sample_without_replacement(c, {{}, 0, draw_stream(5).at(1)}, 10, here);
  sample_without_replacement(c, {{}, 0, draw_stream(5).at(2)}, 10, there);
  CHECK(ids_of(here) != ids_of(there));
}

TEST_CASE("those drawn are the k largest sums, without looking at most of them", "[samplers]") {
  noisy_rows::each([](candidates& row, std::uint64_t seed) {
    const step_context context = context_after({}, 0, draw_stream(seed));
    const exponential_race race(context.draws.numbers(decant::purpose::noise));
    std::vector<std::pair<double, token_id>> all;
    row.visit_below_max([&](token_id id, double below) { all.emplace_back(-(below + race.noise(id)), id); });
    std::ranges::sort(all);
    for (const std::size_t k : {1U, 4U, 50U}) {
      std::vector<decant::perturbed_token> drawn;
      decant::sample_without_replacement(row, context, k, drawn);
      REQUIRE(drawn.size() == std::min(k, all.size()));
      for (std::size_t i = 0; i < drawn.size(); ++i) REQUIRE(drawn[i].id == all[i].second);
    }
  });
}

TEST_CASE("all sizes of vocabulary give k different tokens", "[samplers]") {
  std::vector<std::size_t> sizes{32'001, 151'937};
  for (std::size_t size = 1; size <= 70; ++size) sizes.push_back(size);
  for (const std::size_t size : sizes) {
    const auto ids = ids_of(sampled(nothing, random_row(size, size), 9, size));
    CHECK(ids.size() == std::min<std::size_t>(size, 9));
    CHECK(std::set<token_id>(ids.begin(), ids.end()).size() == ids.size());
    for (const token_id id : ids) CHECK((id >= 0 && static_cast<std::size_t>(id) < size));
  }
}

}  // namespace without_replacement_tests
