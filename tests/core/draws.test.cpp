// SPDX-License-Identifier: MIT
#include <decant/core/draws.hpp>

#include "core/statistics.hpp"
#include "math/bits.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <type_traits>
#include <vector>

namespace draws_test {

using namespace test_bits;
using decant::draw_key;
using decant::draw_stream;
using decant::purpose;

static_assert(std::is_trivially_copyable_v<draw_stream>);
static_assert(static_cast<std::uint32_t>(purpose::user) == 0x1000);

// Computed with a Philox of their own in another language: these define the format (ChampSim#585, vsearch#639).
TEST_CASE("golden numbers of a stream", "[core][draws][golden]") {
  const draw_stream draws(42, 7);
  CHECK(draws.key(purpose::sample).stream == 0x1E9F00A43A08A5A4U);
  CHECK(draw_stream().key(purpose::sample).stream == 0x2FCA19A5E8AD7581U);
  CHECK(draws.uniform(purpose::sample) == 0x1.ae04829258363p-1);
  CHECK(draws.at(1).uniform(purpose::sample) == 0x1.d7acddd49b458p-4);
  CHECK(draws.uniform(purpose::draft) == 0x1.ef7fc7c3d9a3ep-2);
  CHECK(draws.uniform(purpose::sample, 1) == 0x1.d194b3e78b4bep-2);
  CHECK(draws.uniform(purpose::sample, 0, 1) == 0x1.77c74c7b6760cp-3);
  CHECK(draws.at(1000000).uniform(purpose::user, 77, 3) == 0x1.5203213dd4477p-1);
  const draw_stream child = draws.child(0x123456789ABCDEF0U);
  CHECK(child.key(purpose::sample).stream == 0x56EB70DF8BEE07CDU);
  CHECK(child.at(5).uniform(purpose::accept) == 0x1.d42b5ce05cff8p-4);
  CHECK(draws.at(3).gumbel(purpose::noise, 12345) == Approx(-0x1.94bb7986ae1a2p-5).epsilon(1e-14));
}

TEST_CASE("the purposes keep their numbers", "[core][draws][golden]") {
  const purpose all[] = {purpose::sample, purpose::draft, purpose::accept, purpose::residual,
                         purpose::coin,   purpose::noise, purpose::code};
  for (std::uint32_t i = 0; i < 7; ++i) CHECK(static_cast<std::uint32_t>(all[i]) == i);
}

TEST_CASE("a stream is a pure function: asking again, in another order, or of a copy changes nothing",
          "[core][draws]") {
  const draw_stream draws = draw_stream(1, 2).at(3);
  std::vector<double> forward, backward;
  for (std::uint32_t i = 0; i < 100; ++i) forward.push_back(draws.uniform(purpose::coin, i));
  draw_stream copy = draws;
  for (std::uint32_t i = 100; i-- > 0;) backward.push_back(copy.uniform(purpose::coin, i));
  for (std::size_t i = 0; i < 100; ++i) CHECK(forward[i] == backward[99 - i]);
  CHECK(draws.at(9).at(3).uniform(purpose::sample) == draws.uniform(purpose::sample));
}

TEST_CASE("step t alone replays, and steps differ (TensorRT-Edge-LLM #211)", "[core][draws]") {
  const std::vector<double> flat(16, 1.0);
  std::set<double> numbers;
  std::vector<double> counts(16, 0);
  for (std::size_t step = 0; step < 1600; ++step) {
    const auto drawn = draw_stream(77).at(step).choose(flat, 16, purpose::sample);
    CHECK(drawn == draw_stream(77).at(step).choose(flat, 16, purpose::sample));
    ++counts[drawn];
    numbers.insert(draw_stream(77).at(step).uniform(purpose::sample));
  }
  CHECK(numbers.size() == 1600);
  CHECK(statistics::plausible(counts, std::vector<double>(16, 100.0)));
}

TEST_CASE("seed, sequence, position, purpose, index and lane each change the number", "[core][draws]") {
  std::set<double> seen;
  std::size_t asked = 0;
  for (std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
    for (std::uint64_t sequence : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
      for (std::size_t position : {0U, 1U, 2U, 1U << 20}) {
        for (purpose why : {purpose::sample, purpose::coin, purpose::user}) {
          for (std::uint32_t index : {0U, 1U, 99U}) {
            for (std::uint32_t lane : {0U, 1U}) {
              seen.insert(draw_stream(seed, sequence).at(position).uniform(why, index, lane));
              ++asked;
            }
          }
        }
      }
    }
  }
  CHECK(seen.size() == asked);
  CHECK(draw_stream(1, 2).key(purpose::sample) != draw_stream(2, 1).key(purpose::sample));
}

TEST_CASE("children are streams of their own, at the same position", "[core][draws]") {
  const draw_stream parent = draw_stream(5).at(8);
  CHECK(parent.child(1).position() == 8);
  CHECK(parent.child(1).uniform(purpose::sample) == parent.child(1).uniform(purpose::sample));
  CHECK(parent.child(1).at(3).key(purpose::sample).stream == parent.at(3).child(1).key(purpose::sample).stream);
  std::set<std::uint64_t> streams{parent.key(purpose::sample).stream};
  for (std::uint64_t tag = 0; tag < 1000; ++tag) streams.insert(parent.child(tag).key(purpose::sample).stream);
  streams.insert(parent.child(1).child(2).key(purpose::sample).stream);
  streams.insert(parent.child(2).child(1).key(purpose::sample).stream);
  streams.insert(draw_stream(5, 1).key(purpose::sample).stream);
  CHECK(streams.size() == 1004);
  // Uncorrelated with the parent.
  double sum = 0;
  for (std::size_t i = 0; i < 20000; ++i) {
    const double mine = draw_stream(5).at(i).uniform(purpose::sample) - 0.5;
    const double its = draw_stream(5).at(i).child(0).uniform(purpose::sample) - 0.5;
    sum += mine * its;
  }
  CHECK(std::abs(sum / 20000) < 5.0 / 12 / std::sqrt(20000.0));
}

TEST_CASE("uniform numbers are odd multiples of 2^-53, strictly inside (0, 1)", "[core][draws]") {
  for (std::size_t i = 0; i < 100000; ++i) {
    const double u = draw_stream(9).at(i).uniform(purpose::sample);
    const double scaled = u * 0x1p53;
    if (!(u > 0 && u < 1) || scaled != std::floor(scaled) || std::fmod(scaled, 2.0) != 1) FAIL("u = " << u);
  }
  // The map from bits to numbers at its ends (SGLang PR #25133: all ones gave 1 there, and infinite noise).
  const auto map = [](std::uint64_t bits) { return static_cast<double>((bits >> 11) | 1) * 0x1p-53; };
  CHECK(map(0) == 0x1p-53);
  CHECK(map(~std::uint64_t{0}) == 1 - 0x1p-53);
  CHECK(map(~std::uint64_t{0}) < 1);
}

TEST_CASE("uniform numbers are spread evenly", "[core][draws]") {
  std::vector<double> counts(64, 0);
  double sum = 0, squares = 0, successive = 0, before = 0;
  constexpr int n = 200000;
  for (int i = 0; i < n; ++i) {
    const double u = draw_stream(10).at(static_cast<std::size_t>(i)).uniform(purpose::sample);
    ++counts[static_cast<std::size_t>(u * 64)];
    sum += u;
    squares += u * u;
    if (i > 0) successive += (u - 0.5) * (before - 0.5);
    before = u;
  }
  CHECK(statistics::plausible(counts, std::vector<double>(64, n / 64.0)));
  CHECK(sum / n == Approx(0.5).margin(0.004));
  CHECK(squares / n == Approx(1.0 / 3).margin(0.004));
  CHECK(std::abs(successive / n) < 0.002);
}

TEST_CASE("chance is never for 0 and NaN, always for 1, and otherwise as often as it says", "[core][draws]") {
  int hits = 0;
  for (std::size_t i = 0; i < 20000; ++i) {
    const draw_stream draws = draw_stream(11).at(i);
    if (draws.chance(0, purpose::coin) || draws.chance(-0.5, purpose::coin) ||
        draws.chance(double_of(0x7FF8000000000000U), purpose::coin)) {
      FAIL("happened");
    }
    if (!draws.chance(1, purpose::coin) || !draws.chance(1.5, purpose::coin)) FAIL("did not happen");
    if (draws.chance(0.3, purpose::coin) != (draws.uniform(purpose::coin) < 0.3)) FAIL("not the coin of its key");
    hits += draws.chance(0.3, purpose::coin);
  }
  CHECK(std::abs(hits / 20000.0 - 0.3) < 0.02);
}

TEST_CASE("choose is the inverse of the cumulative sum, in index order", "[core][draws]") {
  const std::vector<double> weights{0, 0.5, 0, 2, 1, 0, 0.25, 0};
  double total = 0;
  for (const double w : weights) total += w;
  for (std::size_t i = 0; i < 20000; ++i) {
    const draw_stream draws = draw_stream(12).at(i);
    const double target = draws.uniform(purpose::sample) * total;
    double cumulative = 0;
    std::size_t expected = 0;
    for (std::size_t j = 0; j < weights.size(); ++j) {
      cumulative += weights[j];
      if (target < cumulative) {
        expected = j;
        break;
      }
    }
    if (draws.choose(weights, total, purpose::sample) != expected) FAIL("step " << i);
  }
}

TEST_CASE("choose never gives an index of weight 0, also where the weights fall short of their total",
          "[core][draws]") {
  const std::vector<double> short_of_one{0, 0.25, 0, 0.25, 0, 0};
  std::vector<double> counts(6, 0);
  for (std::size_t i = 0; i < 4000; ++i) ++counts[draw_stream(13).at(i).choose(short_of_one, 1, purpose::sample)];
  CHECK(counts[0] + counts[2] + counts[4] + counts[5] == 0);
  // What is missing goes to the last that has weight.
  CHECK(statistics::plausible({counts[1], counts[3]}, {1000, 3000}));
  const std::vector<double> only_last{0, 0, 1e-300};
  for (std::size_t i = 0; i < 100; ++i) CHECK(draw_stream(13).at(i).choose(only_last, 1e-300, purpose::sample) == 2);
  // One-hot weights give their token for every u (FlashInfer #384).
  const std::vector<double> one_hot{0, 1, 0, 0};
  for (std::size_t i = 0; i < 1000; ++i) CHECK(draw_stream(14).at(i).choose(one_hot, 1, purpose::sample) == 1);
}

TEST_CASE("all bits 0 and all bits 1 give numbers inside (0, 1) (SGLang#25133, FlashInfer#384)", "[core][draws]") {
  const double lowest = draw_stream::unit_interval(0), highest = draw_stream::unit_interval(~std::uint64_t{0});
  CHECK(lowest == 0x1p-53);
  CHECK(highest == 1 - 0x1p-53);
  CHECK(highest < 1);
  // Noise from either end is finite, and a token at -10,000 loses to one at 0 even when the dice favour it most.
  const auto noise = [](double u) { return -decant::math::log(-decant::math::log(u)); };
  CHECK(-1e4 + noise(highest) < 0 + noise(lowest));
  // A cumulative sum meets every such number before its end: u * total < total.
  for (const double total : {1.0, 0.1, 3.7, 1e-30}) CHECK(highest * total < total);
}

TEST_CASE("choose needs a positive total", "[core][draws]") {
  const std::vector<double> none{0, 0};
  CHECK_THROWS_AS(draw_stream(1).choose(none, 0, purpose::sample), assertion_error);
  CHECK_THROWS_AS(draw_stream(1).choose(none, double_of(0x7FF8000000000000U), purpose::sample), assertion_error);
}

TEST_CASE("Gumbel noise is finite, inside its bounds and has the right law", "[core][draws]") {
  double sum = 0;
  std::vector<double> counts(10, 0);
  constexpr int n = 50000;
  for (int i = 0; i < n; ++i) {
    const double g = draw_stream(15).at(static_cast<std::size_t>(i)).gumbel(purpose::noise, i % 1000);
    if (!(g > -3.7 && g < 36.8)) FAIL("g = " << g);
    sum += g;
    ++counts[std::min<std::size_t>(9, static_cast<std::size_t>(std::exp(-std::exp(-g)) * 10))];
  }
  CHECK(sum / n == Approx(0.5772156649).margin(0.03));
  CHECK(statistics::plausible(counts, std::vector<double>(10, n / 10.0)));
  // At the ends of u.
  const auto noise = [](double u) { return -decant::math::log(-decant::math::log(u)); };
  CHECK(noise(0x1p-53) > -3.7);
  CHECK(noise(1 - 0x1p-53) < 36.8);
  // A token's noise is its own: it depends on its id, not on who asked before.
  CHECK(draw_stream(15).gumbel(purpose::noise, 3) != draw_stream(15).gumbel(purpose::noise, 4));
}

struct recorder : decant::decision_hook {
  std::size_t choose(const draw_key& key, std::span<const double> weights, double total) override {
    keys.push_back(key);
    seen.assign(weights.begin(), weights.end());
    seen_total = total;
    return answer;
  }
  std::size_t answer = 0;
  std::vector<draw_key> keys;
  std::vector<double> seen;
  double seen_total = 0;
};

TEST_CASE("a hook makes the discrete decisions, and is not asked what is certain", "[core][draws]") {
  recorder hook;
  const draw_stream draws = draw_stream(3, 4).at(5).with_hook(&hook);
  CHECK(draws.hook() == &hook);
  CHECK(draws.at(6).hook() == &hook);
  CHECK(draws.child(1).hook() == &hook);
  CHECK(draws.chance(1, purpose::coin));
  CHECK_FALSE(draws.chance(0, purpose::coin));
  CHECK(hook.keys.empty());
  hook.answer = 0;
  CHECK(draws.chance(0.25, purpose::coin, 9));
  CHECK(hook.seen == std::vector<double>{0.25, 0.75});
  CHECK(hook.seen_total == 1);
  CHECK(hook.keys.back() == draws.key(purpose::coin, 9));
  hook.answer = 1;
  CHECK_FALSE(draws.chance(0.25, purpose::coin, 9));
  const std::vector<double> weights{1, 2, 3};
  hook.answer = 2;
  CHECK(draws.choose(weights, 6, purpose::accept, 1) == 2);
  CHECK(hook.keys.back() == draw_key{draws.key(purpose::sample).stream, 5, purpose::accept, 1});
  CHECK_THROWS_AS(draws.uniform(purpose::sample), assertion_error);
  CHECK_THROWS_AS(draws.gumbel(purpose::noise, 1), assertion_error);
  CHECK_NOTHROW(draws.with_hook(nullptr).uniform(purpose::sample));
}

TEST_CASE("streams of two seeds are unlike (TensorRT-LLM #19487)", "[core][draws]") {
  const std::vector<double> flat(50, 1);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    int alike = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      alike += draw_stream(seed).at(i).choose(flat, 50, purpose::sample) ==
               draw_stream(seed + 1).at(i).choose(flat, 50, purpose::sample);
    }
    CHECK(alike < 12);
  }
}

TEST_CASE("one stream over many positions tosses a fair coin (ctransformers)", "[core][draws]") {
  const std::vector<double> even{.5, .5};
  int heads = 0;
  for (std::size_t i = 0; i < 1000; ++i) heads += draw_stream(16).at(i).choose(even, 1, purpose::sample) == 0;
  CHECK(std::abs(heads - 500) < 80);
}

}  // namespace draws_test
