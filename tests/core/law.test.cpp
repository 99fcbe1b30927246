// SPDX-License-Identifier: MIT
#include <decant/core/law.hpp>

#include "core/naive_row.hpp"
#include "core/statistics.hpp"
#include "math/bits.hpp"
#include "support/catch.hpp"

#include <decant/core/candidates.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace law_test {

using namespace test_bits;
using decant::bfloat16;
using decant::candidates;
using decant::draw;
using decant::draw_stream;
using decant::float16;
using decant::gone;
using decant::law;
using decant::no_token;
using decant::purpose;
using decant::token_id;

law by_hand(std::vector<token_id> ids, std::vector<double> weights) {
  law made;
  made.ids = std::move(ids);
  made.weights = std::move(weights);
  decant::math::sum_tree workspace;
  made.total = decant::sum_of_weights(made.weights);
  return made;
}

TEST_CASE("a law tells probabilities, 0 for tokens that it does not hold", "[core][law]") {
  const law l = by_hand({2, 5, 900}, {1, 2, 5});
  CHECK(l.total == 8);
  CHECK(l.size() == 3);
  CHECK(l.probability(2) == 0.125);
  CHECK(l.probability(5) == 0.25);
  CHECK(l.probability(900) == 0.625);
  for (const token_id id : {-1, 0, 3, 899, 901, 2000000000}) {
    CHECK(l.probability(id) == 0);
    CHECK(bits_of(l.log_probability(id)) == 0xFFF0000000000000U);
  }
  CHECK(l.log_probability(5) == Approx(std::log(0.25)));
}

TEST_CASE("an empty law draws nothing", "[core][law]") {
  law l;
  CHECK(l.empty());
  CHECK(l.probability(0) == 0);
  CHECK(draw(l, draw_stream(1)) == no_token);
  l = by_hand({1}, {1});
  CHECK(draw(l, draw_stream(1)) == 1);
  l.clear();
  CHECK(l.empty());
  CHECK(l == law());
  decant::math::sum_tree workspace;
  CHECK(decant::sum_of_weights({}) == 0);
}

TEST_CASE("a law made by hand is drawn in proportion, purpose and index choose the number", "[core][law]") {
  const law l = by_hand({1, 63, 64, 700, 100000}, {1, 2, 3, 4, 10});
  std::vector<double> counts(5, 0);
  for (std::size_t i = 0; i < 20000; ++i) {
    const token_id drawn = draw(l, draw_stream(21).at(i), purpose::residual, 3);
    ++counts[static_cast<std::size_t>(std::ranges::find(l.ids, drawn) - l.ids.begin())];
  }
  CHECK(statistics::plausible(counts, {1000, 2000, 3000, 4000, 10000}));
  int alike = 0;
  for (std::size_t i = 0; i < 200; ++i)
    alike += draw(l, draw_stream(21).at(i)) == draw(l, draw_stream(21).at(i), purpose::draft);
  CHECK(alike < 120);
}

TEST_CASE("weights of 0 within a law are never drawn", "[core][law]") {
  const law l = by_hand({0, 1, 2, 64, 65}, {0, 1, 0, 0, 0});
  for (std::size_t i = 0; i < 500; ++i) CHECK(draw(l, draw_stream(i)) == 1);
}

// ---- drawing from the law is drawing from the row

/// `shape` takes a row to the state that is to be drawn from.
template <class Shape, class... Rows>
void same_draws(Shape shape, std::uint64_t draws, Rows&... rows) {
  candidates row;
  law first;
  const auto check = [&](auto& logits) {
    row.bind(logits);
    shape(row);
    const law l = row.probabilities();
    REQUIRE_FALSE(l.empty());
    REQUIRE(std::ranges::is_sorted(l.ids));
    if (first.empty()) first = l;
    REQUIRE(l == first);  // whatever the storage
    law reused;
    reused.ids.assign(3, 1);
    reused.block_bounds.assign(9, 1);
    row.probabilities(reused);
    REQUIRE(reused == l);
    decant::math::sum_tree workspace;
    for (std::uint64_t i = 0; i < draws; ++i) {
      const draw_stream stream = draw_stream(i, 5).at(i % 7);
      const token_id from_row = row.draw(stream);
      if (from_row != draw(l, stream, purpose::sample, 0, workspace)) FAIL("draw " << i << " differs");
      if (i % 16 == 0 && row.draw(stream, purpose::draft, 4) != draw(l, stream, purpose::draft, 4))
        FAIL("draw " << i << " differs");
      if (!(l.probability(from_row) > 0)) FAIL("drew a token of probability 0");
    }
  };
  (check(rows), ...);
}

/// A row of values that all four storages hold exactly.
struct every_storage {
  std::vector<float> in_place;
  std::vector<bfloat16> b16;
  std::vector<float16> h16;

  every_storage(splitmix& next, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      const auto quarter = static_cast<float>(static_cast<int>(next.below(64)) - 32) / 4;  // 5 bits and a sign
      in_place.push_back(quarter);
      b16.push_back({static_cast<std::uint16_t>(bits_of(quarter) >> 16)});
      const std::uint32_t sign = bits_of(quarter) >> 16 & 0x8000U, exponent = (bits_of(quarter) >> 23 & 0xFFU) - 112;
      const std::uint32_t half = quarter == 0 ? 0 : sign | exponent << 10 | (bits_of(quarter) >> 13 & 0x3FFU);
      h16.push_back({static_cast<std::uint16_t>(half)});
    }
  }
};

template <class Shape>
void every_storage_draws_alike(std::size_t size, Shape shape, std::uint64_t draws = 0) {
  if (draws == 0) draws = size > 10000 ? 60 : 300;
  splitmix next(size);
  every_storage rows(next, size);
  for (std::size_t i = 0; i < size; ++i) {
    if (decant::math::to_float(rows.h16[i]) != rows.in_place[i]) FAIL("the half is another number");
  }
  const std::vector<float> constant = rows.in_place;
  same_draws(shape, draws, rows.in_place, constant, rows.b16, rows.h16);
  CHECK(rows.in_place == constant);
}

const auto untouched = [](candidates&) {};

TEST_CASE("law and row draw alike: whole rows up to the limit", "[core][law]") {
  for (const std::size_t size : {1U, 2U, 63U, 64U, 65U, 1000U, 4095U, 4096U})
    every_storage_draws_alike(size, untouched);
}

TEST_CASE("law and row draw alike: whole rows beyond the limit, by rejection", "[core][law]") {
  for (const std::size_t size : {4097U, 5000U, 32001U}) every_storage_draws_alike(size, untouched);
}

TEST_CASE("law and row draw alike: narrowed to a list", "[core][law]") {
  for (const std::size_t size : {70U, 5000U, 20000U}) {
    every_storage_draws_alike(size, [](candidates& row) { row.keep_largest(40); });
    every_storage_draws_alike(size, [](candidates& row) { row.keep_mass(0.9); });
    every_storage_draws_alike(size, [](candidates& row) { row.keep_above(2); });
    every_storage_draws_alike(size, [](candidates& row) { row.affine(0.2), row.keep_mass_around(0.5, 1, 0.5); });
  }
}

TEST_CASE("law and row draw alike: narrowed to a window", "[core][law]") {
  every_storage_draws_alike(20000, [](candidates& row) { row.keep_largest(4097); });
  every_storage_draws_alike(20000, [](candidates& row) { row.keep_largest(15000); });
  every_storage_draws_alike(20000, [](candidates& row) { row.affine(0.1), row.keep_mass(0.9); });
  every_storage_draws_alike(20000, [](candidates& row) { row.affine(0.1), row.keep_mass_around(0.8, 1, 0.0); });
}

TEST_CASE("law and row draw alike: banned, masked and edited", "[core][law]") {
  const auto ban = [](candidates& row) {
    for (token_id id = 0; id < 60; id += 3) row.ban(id);
    row.set(1, 9);
    row.add(2, -1);
  };
  const auto mask = [](candidates& row) { row.allow(std::vector<std::uint64_t>(400, 0x0F0F0F0F0F0F0F0FU)); };
  for (const std::size_t size : {70U, 5000U, 20000U}) {
    every_storage_draws_alike(size, ban);
    every_storage_draws_alike(size, mask);
    every_storage_draws_alike(size, [&](candidates& row) { mask(row), row.affine(1.3, 7), row.add(1, 1); });
    every_storage_draws_alike(size,
                              [&](candidates& row) { ban(row), row.keep_largest(5000), mask(row), row.set(4, 2); });
    every_storage_draws_alike(size, [&](candidates& row) { row.keep_largest(50), ban(row); });
    every_storage_draws_alike(size, [&](candidates& row) {
      ban(row), row.transform([](token_id id, float z) { return id % 2 == 0 ? z : z / 2; });
    });
    every_storage_draws_alike(size, [&](candidates& row) {
      row.transform([](token_id id, float z) { return id % 100 == 0 ? gone : z; }), row.affine(0.5);
    });
  }
}

TEST_CASE("law and row draw alike: a whole row that bans have brought below the limit", "[core][law]") {
  every_storage_draws_alike(5000, [](candidates& row) {
    for (token_id id = 0; id < 1000; ++id) row.ban(id);
  });
  every_storage_draws_alike(5000, [](candidates& row) {
    for (token_id id = 0; id < 903; ++id) row.ban(id);
  });
}

TEST_CASE("law and row draw alike: so sharp that most weights underflow", "[core][law]") {
  for (const std::size_t size : {70U, 5000U}) {
    every_storage_draws_alike(size, [](candidates& row) { row.affine(100); });
    every_storage_draws_alike(size, [](candidates& row) { row.affine(1e6); });
    every_storage_draws_alike(size, [](candidates& row) { row.affine(1e200); });
    every_storage_draws_alike(size, [](candidates& row) { row.affine(1e-200); });
    every_storage_draws_alike(size, [](candidates& row) { row.set(9, 5000), row.set(33, 5000.5F); });
    every_storage_draws_alike(size, [](candidates& row) { row.set(9, 5000); });
  }
}

TEST_CASE("law and row draw alike on rows of a real size", "[core][law]") {
  every_storage_draws_alike(151937, untouched, 30);
  every_storage_draws_alike(151937, [](candidates& row) { row.keep_mass(0.95); }, 30);
}

TEST_CASE("what was asked before, and how a state was reached, does not change what is drawn", "[core][law]") {
  splitmix next(61);
  for (const std::size_t size : {100U, 6000U}) {
    auto logits = naive::random_row(next, size);
    candidates quiet, asked, another;
    quiet.bind(std::as_const(logits));
    asked.bind(logits);
    const auto ask = [&] {
      (void)asked.entropy(), (void)asked.descending(20), (void)asked.sigma(), (void)asked.probabilities();
    };
    ask();
    for (candidates* row : {&quiet, &asked}) {
      row->set(5, 3);
      row->set(7, 9);
      row->affine(0.7);
      if (row == &asked) ask();
      row->ban(11);
    }
    ask();
    CHECK(quiet.probabilities() == asked.probabilities());
    for (std::uint64_t i = 0; i < 300; ++i) CHECK(quiet.draw(draw_stream(i)) == asked.draw(draw_stream(i)));
    // Banning one by one, by mask or by list is the same.
    std::vector<token_id> all;
    for (std::size_t t = 0; t < size; ++t) {
      if (t % 9 != 4) all.push_back(static_cast<token_id>(t));
    }
    std::vector<std::uint64_t> mask((size + 63) / 64, 0);
    for (const token_id t : all) mask[static_cast<std::size_t>(t) / 64] |= std::uint64_t{1} << (t % 64);
    const std::vector<float> plain = naive::random_row(next, size);
    law laws[4];
    for (int how = 0; how < 4; ++how) {
      another.bind(plain);
      if (how == 0) another.allow(std::span<const token_id>(all));
      if (how == 1) another.allow(mask);
      if (how == 2) {
        for (std::size_t t = 4; t < size; t += 9) another.ban(static_cast<token_id>(t));
      }
      if (how == 3) another.transform([](token_id id, float z) { return id % 9 == 4 ? gone : z; });
      another.probabilities(laws[how]);
      CHECK(laws[how] == laws[0]);
    }
    // Narrowings that come to the same set.
    another.bind(plain);
    another.keep_largest(20);
    const law by_count = another.probabilities();
    another.bind(plain);
    another.keep_above(static_cast<double>(naive::row(plain).logit(naive::row(plain).order()[19])));
    CHECK(another.probabilities() == by_count);
    another.bind(plain);
    another.keep_largest(50);
    another.keep_largest(20);
    CHECK(another.probabilities() == by_count);
  }
}

TEST_CASE("a law outlives its row", "[core][law]") {
  law kept;
  {
    std::vector<float> logits{1, 2, 3};
    candidates row;
    row.bind(logits);
    kept = row.probabilities();
  }
  CHECK(kept.probability(2) == Approx(0.66524096).epsilon(1e-6));
  CHECK(draw(kept, draw_stream(1)) >= 0);
}

TEST_CASE("the same seed draws the same token wherever the row lies in memory", "[core][law]") {
  splitmix next(62);
  const auto logits = naive::random_row(next, 5000);
  std::vector<float> shifted(5003, 0);
  std::ranges::copy(logits, shifted.begin() + 3);
  candidates a, b;
  a.bind(logits);
  b.bind(std::span(shifted).subspan(3));
  for (std::uint64_t i = 0; i < 300; ++i) CHECK(a.draw(draw_stream(i)) == b.draw(draw_stream(i)));
}

TEST_CASE("a whole row of which one token is left, or which is level, draws within itself", "[core][law]") {
  std::vector<float> logits(5000, 0.0F);
  candidates row;
  row.bind(logits);
  std::vector<double> counts(50, 0);
  for (std::uint64_t i = 0; i < 5000; ++i) ++counts[static_cast<std::size_t>(row.draw(draw_stream(i))) / 100];
  CHECK(statistics::plausible(counts, std::vector<double>(50, 100.0)));
  row.set(4999, -1e4F);  // a token that cannot win must lose (SGLang PR #25133)
  for (std::uint64_t i = 0; i < 2000; ++i) CHECK(row.draw(draw_stream(i)) != 4999);
}

void chi_square_by_rejection(std::uint64_t draws, bool from_law) {
  splitmix next(63);
  auto logits = naive::random_row(next, 5000, -9, -4);
  logits[0] = 2;
  logits[63] = 1;
  logits[64] = 1.5F;
  logits[2500] = 3;
  logits[4999] = 2.5F;
  candidates row;
  row.bind(logits);
  const law l = row.probabilities();
  REQUIRE_FALSE(l.block_bounds.empty());
  const auto p = naive::row(logits).probabilities();
  std::vector<double> counts(5000, 0), expected;
  for (const double x : p) expected.push_back(x * static_cast<double>(draws));
  decant::math::sum_tree workspace;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const draw_stream stream = draw_stream(1000).at(i);
    ++counts[static_cast<std::size_t>(from_law ? draw(l, stream, purpose::sample, 0, workspace) : row.draw(stream))];
  }
  CHECK(statistics::plausible(counts, expected));
  // The heavy ones by themselves, all others as one.
  std::vector<double> few_counts{0}, few_expected{0};
  for (std::size_t i = 0; i < 5000; ++i) {
    if (p[i] > 0.01) {
      few_counts.push_back(counts[i]);
      few_expected.push_back(expected[i]);
    } else {
      few_counts[0] += counts[i];
      few_expected[0] += expected[i];
    }
  }
  CHECK(few_counts.size() == 6);
  CHECK(statistics::plausible(few_counts, few_expected));
}

TEST_CASE("block rejection is exact: few heavy tokens among thousands", "[core][law]") {
  chi_square_by_rejection(20000, false);
}

TEST_CASE("block rejection is exact: many draws, from row and law", "[core][law][long]") {
  chi_square_by_rejection(400000, false);
  chi_square_by_rejection(400000, true);
}

TEST_CASE("block rejection is exact: ten million draws over three vocabularies and three temperatures",
          "[core][law][long]") {
  constexpr std::uint64_t draws = 10'000'000 / 9 + 1;
  std::uint64_t cell = 0;
  for (const std::size_t size : {std::size_t{4097}, std::size_t{9000}, std::size_t{32'000}}) {
    splitmix next(80 + size);
    auto logits = naive::random_row(next, size, -6, 0);
    for (int heavy = 0; heavy < 40; ++heavy) logits[next.below(size)] = static_cast<float>(next.between(2, 6));
    for (const double temperature : {0.6, 1.0, 1.7}) {
      candidates row;
      row.bind(logits);
      row.affine(1 / temperature);
      const law l = row.probabilities();
      REQUIRE_FALSE(l.block_bounds.empty());
      std::vector<double> counts(size, 0), expected(size, 0);
      for (std::size_t i = 0; i < l.size(); ++i) {
        expected[static_cast<std::size_t>(l.ids[i])] = l.weights[i] / l.total * static_cast<double>(draws);
      }
      const draw_stream stream(1001, cell++);
      for (std::uint64_t i = 0; i < draws; ++i) ++counts[static_cast<std::size_t>(row.draw(stream.at(i)))];
      INFO(size << " tokens at temperature " << temperature);
      CHECK(statistics::plausible(counts, expected));
    }
  }
}

TEST_CASE("inverse CDF is exact in a list and in a window", "[core][law]") {
  splitmix next(64);
  const auto logits = naive::random_row(next, 9000, -3, 3);
  candidates row;
  for (const std::size_t kept : {std::size_t{50}, std::size_t{5000}}) {
    naive::row plain(logits);
    plain.keep_largest(kept);
    const auto p = plain.probabilities();
    row.bind(logits);
    row.keep_largest(kept);
    std::vector<double> counts(9000, 0), expected;
    for (const double x : p) expected.push_back(x * 6000);
    for (std::uint64_t i = 0; i < 6000; ++i) ++counts[static_cast<std::size_t>(row.draw(draw_stream(2000).at(i)))];
    CHECK(statistics::plausible(counts, expected));
  }
}

struct fixed_answer : decant::decision_hook {
  std::size_t choose(const decant::draw_key&, std::span<const double> weights, double total) override {
    seen.assign(weights.begin(), weights.end());
    seen_total = total;
    return answer;
  }
  std::size_t answer = 0;
  std::vector<double> seen;
  double seen_total = 0;
};

TEST_CASE("under a hook a draw is one choice among the tokens of the law", "[core][law]") {
  for (const std::size_t size : {10U, 5000U}) {
    splitmix next(65);
    auto logits = naive::random_row(next, size);
    logits[3] = gone;
    candidates row;
    row.bind(logits);
    const law l = row.probabilities();
    fixed_answer hook;
    hook.answer = 4;
    const draw_stream stream = draw_stream(1).with_hook(&hook);
    CHECK(row.draw(stream) == l.ids[4]);
    CHECK(hook.seen == l.weights);
    CHECK(hook.seen_total == l.total);
    CHECK(draw(l, stream) == l.ids[4]);
    hook.seen.clear();
    row.keep_largest(1);
    CHECK(row.draw(stream) == row.argmax());
    CHECK(hook.seen.empty());  // certain: nobody is asked
  }
}

// Golden tokens: the meaning of a seed. Changing them is a new major version.
TEST_CASE("golden draws", "[core][law][golden]") {
  splitmix next(66);
  hash all;
  candidates row;
  for (const std::size_t size : {10U, 64U, 4096U, 4097U, 20000U}) {
    const auto logits = naive::random_row(next, size);
    for (int shape = 0; shape < 4; ++shape) {
      row.bind(logits);
      if (shape == 1) row.affine(0.7), row.ban(5);
      if (shape == 2) row.keep_mass(0.9);
      if (shape == 3) row.affine(0.1), row.keep_largest(size - size / 10);
      for (std::uint64_t i = 0; i < 200; ++i) all.add(static_cast<std::uint64_t>(row.draw(draw_stream(i, 1).at(i))));
      const law l = row.probabilities();
      all.add(l.total);
      for (const double w : l.weights) all.add(w);
    }
  }
  CHECK(all.value() == 0x35159A260CC792D8U);
}

}  // namespace law_test
