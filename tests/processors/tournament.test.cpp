// SPDX-License-Identifier: MIT
#include <decant/processors/tournament.hpp>

#include "processors/policies.hpp"

namespace tournament_tests {

using namespace policies;
using decant::tournament_layer;

using bits = std::vector<std::uint64_t>;

const law some_law{0.4, 0.05, 0.25, 0.1, 0.2};

law after(law weights, const bits& g, std::size_t layers, std::size_t leaves = 2) {
  for (std::size_t layer = 0; layer < layers; ++layer) tournament_layer(weights, g, layer, leaves);
  return weights;
}

/// The tournament as it is told: every draw of `leaves` tokens, and a lot among those with the greatest bit.
law played(const law& p, const bits& g, std::size_t layer, std::size_t leaves) {
  law out(p.size());
  std::vector<std::size_t> drawn(leaves, 0);
  for (bool more = true; more;) {
    double chance = 1, best = 0, ties = 0;
    for (const std::size_t token : drawn) {
      chance *= p[token];
      best = std::max(best, static_cast<double>(g[token] >> layer & 1));
    }
    for (const std::size_t token : drawn) ties += static_cast<double>(g[token] >> layer & 1) == best;
    for (const std::size_t token : drawn) {
      if (static_cast<double>(g[token] >> layer & 1) == best) out[token] += chance / ties;
    }
    more = false;
    for (std::size_t& token : drawn) {
      if (++token < p.size()) {
        more = true;
        break;
      }
      token = 0;
    }
  }
  return out;
}

double sum_of(const law& weights) {
  double sum = 0;
  for (const double w : weights) sum += w;
  return sum;
}

/// Numbers that look random, one a token.
bits some_bits(std::size_t size, std::uint64_t seed) {
  bits out;
  for (std::size_t i = 0; i < size; ++i) {
    out.push_back(static_cast<std::uint64_t>(draw_stream(seed).at(i).uniform(decant::purpose::user) * 0x1p53));
  }
  return out;
}

TEST_CASE("one layer has the golden law of methods.md N", "[processors]") {
  const law expected{0.734868578, 0.064001883, 0.163971344, 0.023544977, 0.008661713, 0.004951506};
  CHECK(difference(after(reference::exact_law(golden), {1, 0, 1, 0, 0, 1}, 1), expected) < 1e-9);
}

TEST_CASE("the closed form is the tournament played out, for two leaves and more", "[processors]") {
  for (std::size_t leaves = 1; leaves <= 5; ++leaves) {
    for (std::uint64_t g = 0; g < 32; ++g) {
      const bits table{g & 1, g >> 1 & 1, g >> 2 & 1, g >> 3 & 1, g >> 4 & 1};
      CAPTURE(leaves, g);
      CHECK(difference(after(some_law, table, 1, leaves), played(some_law, table, 0, leaves)) < 1e-13);
    }
  }
}

TEST_CASE("several layers are tournaments among the winners", "[processors]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const bits g = some_bits(some_law.size(), seed);
    for (const std::size_t leaves : {std::size_t{2}, std::size_t{3}}) {
      law expected = some_law;
      for (std::size_t layer = 0; layer < 4; ++layer) expected = played(expected, g, layer, leaves);
      CHECK(difference(after(some_law, g, 4, leaves), expected) < 1e-13);
    }
  }
}

TEST_CASE("two leaves are p (1 + g - sum g p)", "[processors]") {
  const bits g{1, 0, 0, 1, 1};
  const double mass = 0.4 + 0.1 + 0.2;
  law expected = some_law;
  for (std::size_t i = 0; i < 5; ++i) expected[i] *= 1 + static_cast<double>(g[i]) - mass;
  CHECK(difference(after(some_law, g, 1), expected) < 1e-15);
}

TEST_CASE("averaged over all tables of bits, two leaves leave the law as it is, for any number of layers",
          "[processors]") {
  const law p{0.6, 0.3, 0.1};
  for (std::size_t layers = 1; layers <= 4; ++layers) {
    law mean(3), mean_of_three(3);
    const std::uint64_t tables = std::uint64_t{1} << (3 * layers), word = (std::uint64_t{1} << layers) - 1;
    for (std::uint64_t table = 0; table < tables; ++table) {
      const bits g{table & word, table >> layers & word, table >> 2 * layers & word};
      const law two = after(p, g, layers), three = after(p, g, layers, 3);
      for (std::size_t i = 0; i < 3; ++i) {
        mean[i] += two[i] / static_cast<double>(tables);
        mean_of_three[i] += three[i] / static_cast<double>(tables);
      }
    }
    CAPTURE(layers);
    CHECK(difference(mean, p) < 1e-12);
    CHECK(difference(mean_of_three, p) > 1e-3);  // and more leaves do not
  }
}

TEST_CASE("bits that are all alike, and one leaf, change nothing", "[processors]") {
  for (const std::size_t leaves : {std::size_t{2}, std::size_t{7}, std::size_t{1024}}) {
    CHECK(after(some_law, bits(5, 0), 3, leaves) == some_law);
    CHECK(after(some_law, bits(5, 7), 3, leaves) == some_law);
  }
  CHECK(after(some_law, some_bits(5, 1), 8, 1) == some_law);
}

TEST_CASE("the sum of the weights stays over many layers, whatever it is", "[processors]") {
  for (const double scale : {1.0, 1e-3, 1e10}) {
    for (const std::size_t leaves : {std::size_t{2}, std::size_t{5}}) {
      law weights = reference::exact_law(random_row(300, 4));
      for (double& w : weights) w *= scale;
      CHECK(sum_of(after(weights, some_bits(300, 5), 50, leaves)) == Approx(scale).epsilon(1e-12));
    }
  }
}

TEST_CASE("a tiny share of losers keeps its precision", "[processors]") {
  const law out = after({1, 1e-30}, {1, 0}, 1);
  CHECK(out[0] == 1);
  CHECK(out[1] == Approx(1e-60).epsilon(1e-12));
  CHECK(after({1e-30, 1}, {1, 0}, 1)[0] == Approx(2e-30).epsilon(1e-12));
}

TEST_CASE("a tournament refuses what makes no sense", "[processors]") {
  law weights{1, 2};
  CHECK_THROWS_AS(tournament_layer(weights, bits{1}, 0), assertion_error);
  CHECK_THROWS_AS(tournament_layer(weights, bits{1, 0}, 64), assertion_error);
  CHECK_THROWS_AS(tournament_layer(weights, bits{1, 0}, 0, 0), assertion_error);
}

}  // namespace tournament_tests
