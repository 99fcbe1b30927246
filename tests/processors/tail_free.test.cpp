// SPDX-License-Identifier: MIT
#include <decant/processors/tail_free.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace tail_free_tests {

using namespace policies;
using decant::chain;
using decant::tail_free;

/// The definition, from probabilities in double: for rows without equal logits.
tokens reference_survivors(const row& logits, double z) {
  const law full = reference::exact_law(logits);
  const auto order = reference::descending(reference::widened(logits));
  law bends;
  for (std::size_t i = 0; i + 2 < order.size(); ++i) {
    bends.push_back(std::abs(full[order[i]] - 2 * full[order[i + 1]] + full[order[i + 2]]));
  }
  double total = 0, sum = 0;
  for (const double b : bends) total += b;
  tokens kept{static_cast<token_id>(order[0])};
  for (std::size_t i = 0; i < bends.size(); ++i) {
    sum += bends[i] / total;
    if (sum > z) break;
    kept.push_back(static_cast<token_id>(order[i + 1]));
  }
  std::ranges::sort(kept);
  return kept;
}

TEST_CASE("tail_free has the golden sets of methods.md N", "[processors]") {
  // cumulated: 0.827355134, 0.924040188, 0.927854092, 1
  CHECK(survivors(tail_free(0.82), golden) == tokens{0});
  CHECK(survivors(tail_free(0.827355133), golden) == tokens{0});
  CHECK(survivors(tail_free(0.827355135), golden) == tokens{0, 1});
  CHECK(survivors(tail_free(0.9), golden) == tokens{0, 1});
  CHECK(survivors(tail_free(0.925), golden) == tokens{0, 1, 2});
  CHECK(survivors(tail_free(0.95), golden) == tokens{0, 1, 2, 3});
}

TEST_CASE("tail_free equals its definition, law by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    row logits = random_row(60, seed);
    logits[9] = gone;
    for (const double z : {0.0, 0.5, 0.9, 0.95, 0.99}) {
      const tokens expected = reference_survivors(logits, z);
      CHECK(survivors(tail_free(z), logits) == expected);
      row kept(logits.size(), gone);
      for (const token_id id : expected) kept[static_cast<std::size_t>(id)] = logits[static_cast<std::size_t>(id)];
      CHECK(difference(enumerated_law(tail_free(z), logits), reference::exact_law(kept)) < of_float);
    }
  }
}

/// The definition in its own steps: every difference, from one end of the row to the other.
tokens stepwise_survivors(const row& logits, double z) {
  std::vector<decant::entry> order;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != gone) order.push_back({static_cast<token_id>(i), logits[i]});
  }
  std::ranges::sort(order, decant::detail::before);
  law w, bends;
  for (const auto& e : order) w.push_back(decant::math::exp(double{e.logit} - double{order[0].logit}));
  for (std::size_t i = 0; i + 2 < w.size(); ++i) {
    const double slope = decant::math::rounded(w[i] - w[i + 1]), next = decant::math::rounded(w[i + 1] - w[i + 2]);
    bends.push_back(std::abs(decant::math::rounded(slope - next)));
  }
  double total = 0, sum = 0;
  for (const double b : bends) total = decant::math::rounded(total + b);
  std::size_t kept = 1;
  while (kept <= bends.size() &&
         (sum = decant::math::rounded(sum + bends[kept - 1])) <= decant::math::product(z, total))
    ++kept;
  tokens ids;
  for (std::size_t i = 0; i < (total > 1e-12 ? kept : order.size()); ++i) ids.push_back(order[i].id);
  std::ranges::sort(ids);
  return ids;
}

TEST_CASE("tail_free decides on long rows what a sum over the whole row decides", "[processors]") {
  for (const std::size_t size : {3UL, 128UL, 129UL, 500UL, 3000UL, 20'000UL}) {
    const row steep = random_row(size, size);
    std::vector<row> kinds(6, steep);
    for (std::size_t i = 0; i < size; ++i) {
      kinds[1][i] = 0.02F * steep[i];
      kinds[2][i] = std::floor(2 * steep[i]) / 2;
      kinds[3][i] = i % 3 == 0 ? gone : steep[i];
      kinds[4][i] = 1;
      kinds[5][i] = i % 1000 == 7 ? 12 + steep[i] : -static_cast<float>(i % 50);
    }
    for (const decant::math::isa which : {decant::math::isa::portable, decant::math::best_isa()}) {
      decant::math::use_kernels(which);
      for (const row& logits : kinds) {
        for (const double z : {0.0, 0.3, 0.9, 0.95, 0.999, 0.999999}) {
          CHECK(survivors(tail_free(z), logits) == stepwise_survivors(logits, z));
        }
      }
    }
  }
  decant::math::use_kernels(decant::math::best_isa());
}

TEST_CASE("z = 0 keeps the argmax", "[processors]") {
  CHECK(survivors(tail_free(0), golden) == tokens{0});
  CHECK(survivors(tail_free(-0.0), {1, 5, 5, 2}) == tokens{1});
  CHECK(survivors(tail_free(0), {1, 5, 5, 5}) == tokens{1, 2});  // the first difference is 0
}

TEST_CASE("the last token never stays below z = 1, and all stay at it", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(20, seed);
    CHECK(survivors(tail_free(std::nextafter(1.0, 0.0)), logits).size() < 20);
    CHECK(survivors(tail_free(1), logits).size() == 20);
  }
}

TEST_CASE("fewer than three tokens and rows without curvature keep all", "[processors]") {
  CHECK(survivors(tail_free(0.5), {1}) == tokens{0});
  CHECK(survivors(tail_free(0), {1, 9}) == tokens{0, 1});
  CHECK(survivors(tail_free(0), {1, gone, 9, gone}) == tokens{0, 2});
  for (const float height : {0.0F, -1000.0F, 65536.0F}) {
    for (const std::size_t size : {std::size_t{3}, std::size_t{64}, std::size_t{5000}}) {
      CHECK(survivors(tail_free(0), row(size, height)).size() == size);
    }
  }
}

TEST_CASE("tail_free: a certain token stays alone", "[processors]") {
  CHECK(survivors(tail_free(0.95), {0, 50, 0, 0}) == tokens{1});
  CHECK(survivors(tail_free(0.95), {0, 2000, -5, gone}) == tokens{1});
}

TEST_CASE("ties are cut by lower id", "[processors]") {
  // 95, 0, 0, 3: the three first of the level four, the fourth is no better and goes.
  CHECK(survivors(tail_free(0.97), {0, 3, 0, 0, 0, -1}) == tokens{0, 1, 2, 3});
  CHECK(survivors(tail_free(0, 3), {0, 3, 0, 0, 0, -1}) == tokens{0, 1, 2});
}

TEST_CASE("tail_free keeps min_keep tokens", "[processors]") {
  CHECK(survivors(tail_free(0, 3), golden) == tokens{0, 1, 2});
  CHECK(survivors(tail_free(0.95, 2), golden) == tokens{0, 1, 2, 3});
  CHECK(survivors(tail_free(0, 0), golden) == tokens{0});
  CHECK(survivors(tail_free(0, 50), golden).size() == 6);
}

TEST_CASE("tail_free sees temperature, and the tokens left", "[processors]") {
  const row logits = random_row(60, 4);
  row kept(logits.size(), gone);
  const tokens ten = survivors(decant::top_k(10), logits);
  for (const token_id id : ten) kept[static_cast<std::size_t>(id)] = logits[static_cast<std::size_t>(id)];
  CHECK(survivors(chain(decant::top_k(10), tail_free(0.9)), logits) == reference_survivors(kept, 0.9));
}

TEST_CASE("tail_free is right after extreme temperatures and shifts", "[processors]") {
  for (const double by : {-1e18, -1e12, 1e12, 1e18}) {
    const auto shifted = [=](candidates& c, const step_context&) { c.affine(1, by); };
    CHECK(survivors(chain(shifted, tail_free(0.9)), golden) == tokens{0, 1});
    CHECK(survivors(chain(shifted, tail_free(0.95)), golden) == tokens{0, 1, 2, 3});
  }
  // Logits of 1e8 and more, of which a float would hold no differences below 8.
  const auto both = [](candidates& c, const step_context&) { c.affine(1e-3, 1e9); };
  row thousandfold = golden;
  for (float& z : thousandfold) z *= 1000;
  CHECK(survivors(chain(both, tail_free(0.9)), thousandfold) == tokens{0, 1});
  CHECK(survivors(chain(decant::temperature(1e-12), tail_free(0.9)), {1000, 999, 1000.5F, 3}) == tokens{2});
}

TEST_CASE("z >= 1 is off bit for bit", "[processors]") {
  for (const double z : {1.0, 1.5, infinity}) {
    CHECK(tail_free(z).off());
    check_identity(tail_free(z));
  }
  CHECK(!tail_free(0.999).off());
}

TEST_CASE("tail_free refuses what is not a number >= 0", "[processors]") {
  for (const double bad : {not_a_number, -infinity, -1.0, -denormal}) {
    check_rejects<tail_free>(bad, "tail_free", "z", "must be a number >= 0");
  }
  for (const double good : {0.0, -0.0, denormal, 0.95, 1.0, infinity}) check_accepts<tail_free>(good);
  CHECK(tail_free::make(0.5, std::size_t{3}).has_value());
  CHECK(tail_free(0.95).describe() == "tail_free(0.95)");
}

TEST_CASE("tail_free on all sizes and on bad rows", "[processors]") {
  for (const double z : {0.0, 0.95}) {
    check_sizes(tail_free(z));
    check_bad_rows(tail_free(z));
  }
}

TEST_CASE("tail_free passes check_processor", "[processors]") {
  for (const double z : {0.5, 0.95, 1.0}) {
    check_report_of(tail_free(z),
                    {.permutation = false, .shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

}  // namespace tail_free_tests
