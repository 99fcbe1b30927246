// SPDX-License-Identifier: MIT
#include <decant/core/candidates.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <decant/math/kernels.hpp>
#include <decant/processors/confidence_increment.hpp>
#include <decant/processors/p_less.hpp>
#include <decant/processors/p_less_norm.hpp>
#include <decant/processors/quadratic.hpp>
#include <decant/processors/top_h.hpp>
#include <decant/testing/eager_row.hpp>

#include "math/bits.hpp"
#include "support/catch.hpp"

// Rows as long as those of real models, where candidates never looks at every token twice: every narrowing must leave
// exactly what the eager reference leaves, on every instruction set, on ordinary rows and on those made to hurt.

namespace large_rows {

using namespace decant;
using decant::testing::eager_row;

/// Pins an instruction set, and puts the best back.
class pinned {
 public:
  explicit pinned(math::isa which) { math::use_kernels(which); }
  pinned(const pinned&) = delete;
  pinned& operator=(const pinned&) = delete;
  ~pinned() { math::use_kernels(math::best_isa()); }
};

constexpr std::size_t kinds = 14;

std::vector<float> make_row(std::size_t kind, std::size_t size, std::uint64_t seed) {
  const draw_stream draws(seed, kind);
  std::uint32_t used = 0;
  const auto unit = [&] { return draws.uniform(purpose::user, used++); };
  const auto normal = [&] { return std::sqrt(-2 * std::log(unit())) * std::cos(6.283185307179586 * unit()); };
  const auto any_place = [&] { return static_cast<std::size_t>(unit() * static_cast<double>(size)); };
  std::vector<float> row(size);
  for (float& z : row) z = static_cast<float>((kind == 1 ? 1 : 2) * normal());
  switch (kind) {
    case 0:
      for (int r = 0; r < 300; ++r)
        row[any_place()] = static_cast<float>(20 - 1.3 * std::log(r + 1.0) + 0.1 * normal());
      break;
    case 1: break;  // flat
    case 2:
      for (int r = 0; r < 200; ++r) row[any_place()] = static_cast<float>(8 + 6 * unit());
      break;
    case 3:
      for (int r = 0; r < 300; ++r) row[any_place()] = static_cast<float>(20 - 3.0 * std::log(r + 1.0));
      break;
    case 4:
      for (int r = 0; r < 4000; ++r) row[any_place()] = static_cast<float>(20 - 0.9 * std::log(r + 1.0));
      break;
    case 5: std::ranges::sort(row); break;
    case 6: std::ranges::sort(row, std::greater<>()); break;
    case 7: std::ranges::fill(row, 1.25F); break;
    case 8:
      for (float& z : row) z = z > 0 ? 1.0F : -1.0F;
      break;
    case 9:
      for (float& z : row) z = unit() < 0.999 ? gone : z;
      row[size / 2] = 0.5F;
      break;
    case 10:
      for (std::size_t i = 0; i < 64; ++i) row[size / 128 * 64 + i] = static_cast<float>(10 + 2 * unit());
      break;
    case 11:
      for (float& z : row) z += 15;
      break;
    case 12:  // rounded: ties everywhere
      for (float& z : row) z = std::round(2 * z) / 2;
      break;
    default:  // half of it gone, denormals and zeros among the rest
      for (float& z : row) {
        const double u = unit();
        z = u < 0.5 ? gone : u < 0.6 ? 1e-40F : u < 0.65 ? -1e-40F : u < 0.7 ? 0.0F : z;
      }
  }
  return row;
}

struct narrowing {
  std::string name;
  std::function<void(candidates&)> library;
  std::function<void(eager_row&)> reference;
};

std::vector<narrowing> narrowings() {
  std::vector<narrowing> all;
  for (const std::size_t k : {1U, 2U, 40U, 1000U, 4000U, 4096U, 4097U, 30'000U}) {
    all.push_back({"keep_largest " + std::to_string(k), [=](candidates& row) { row.keep_largest(k); },
                   [=](eager_row& row) { row.keep_largest(k); }});
  }
  for (const double below : {0.0, 0.5, 3.0, 7.0, 1000.0}) {
    all.push_back({"keep_above max - " + std::to_string(below),
                   [=](candidates& row) { row.keep_above(row.max() - below, 3); },
                   [=](eager_row& row) { row.keep_above(row.max() - below, 3); }});
  }
  for (const double p : {0.0, 0.3, 0.9, 0.95, 0.99, 0.9999}) {
    all.push_back({"keep_mass " + std::to_string(p), [=](candidates& row) { row.keep_mass(p, 2); },
                   [=](eager_row& row) { row.keep_mass(p, 2); }});
  }
  for (const double around : {-0.7, 0.5, 1.3, 9.0}) {
    for (const double p : {0.0, 0.6, 0.99}) {
      all.push_back({"keep_mass " + std::to_string(p) + " around " + std::to_string(around),
                     [=](candidates& row) { row.keep_mass_around(p, 1, around); },
                     [=](eager_row& row) { row.keep_mass_around(p, around); }});
    }
  }
  all.push_back({"after a temperature, keep_mass 0.9",
                 [](candidates& row) {
                   row.affine(1 / 0.7, 2);
                   row.keep_mass(0.9);
                 },
                 [](eager_row& row) {
                   row.affine(1 / 0.7, 2);
                   row.keep_mass(0.9, 1);
                 }});
  all.push_back({"keep_largest 20000, then keep_mass 0.9",
                 [](candidates& row) {
                   row.keep_largest(20'000);
                   row.keep_mass(0.9);
                 },
                 [](eager_row& row) {
                   row.keep_largest(20'000);
                   row.keep_mass(0.9, 1);
                 }});
  return all;
}

std::vector<token_id> survivors(candidates& row) {
  std::vector<token_id> ids;
  row.visit([&](token_id id, float) { ids.push_back(id); });
  return ids;
}

void run(std::size_t size, std::uint64_t seed, std::size_t every, std::size_t list_limit = candidates::compact_limit) {
  candidates row(list_limit);
  std::size_t turn = seed;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    const std::vector<float> logits = make_row(kind, size, seed);
    for (const narrowing& step : narrowings()) {
      if (turn++ % every != 0) continue;
      eager_row want(logits);
      step.reference(want);
      token_id drawn = no_token;
      for (const math::isa which : test_bits::forms()) {
        const pinned pin(which);
        INFO(step.name << " on a row of kind " << kind << ", " << size << " tokens, seed " << seed << ", "
                       << math::to_string(which));
        row.bind(logits);
        step.library(row);
        REQUIRE(row.size() == want.size());
        REQUIRE(survivors(row) == want.ids());
        CHECK(row.argmax() == want.descending().front());
        const token_id token = row.draw(draw_stream(turn));
        CHECK((drawn == no_token || token == drawn));
        CHECK(token == draw(row.probabilities(), draw_stream(turn)));
        drawn = token;
        row.release();
      }
    }
  }
}

TEST_CASE("narrowings of long rows leave what the reference leaves, on every instruction set") {
  run(4097, 1, 3);
  run(5000, 2, 3);
  run(9001, 3, 3);
  run(32'001, 4, 7);
}

/// Sizes just below, at and above every border of a block; lists of at most 40, so that most rows stay dense.
void run_borders(std::size_t last, std::uint64_t seed, std::size_t every) {
  for (std::size_t border = 64; border <= last; border += 64) {
    for (const std::size_t size : {border - 1, border, border + 1}) run(size, seed + size, every, 40);
  }
}

TEST_CASE("narrowings of rows around every border of a block leave what the reference leaves") {
  run_borders(1024, 50, 11);
}

TEST_CASE("narrowings of rows around every border of a block, all of them up to 4,096 tokens", "[long]") {
  run_borders(4096, 51, 1);
}

TEST_CASE("narrowings of rows of 128,256 tokens leave what the reference leaves, on every instruction set") {
  run(128'256, 5, 7);
}

TEST_CASE("narrowings of long rows, every one on every kind of row", "[long]") {
  for (std::uint64_t seed = 10; seed < 14; ++seed) {
    run(4096 + static_cast<std::size_t>(seed) * 777, seed, 1);
    run(128'256, seed, 2);
  }
  run(262'144, 30, 3);
}

TEST_CASE("steps that sum over long rows decide what exact sums say, edited or not, on every instruction set") {
  using step = std::function<void(candidates&, const step_context&)>;
  const std::vector<step> steps{p_less(),
                                p_less(3),
                                p_less_norm(),
                                top_h(0.1),
                                top_h(0.4),
                                top_h(0.9),
                                top_h(0.4, 1, top_h_rule::hf),
                                confidence_increment(1e-3),
                                confidence_increment(3e-5, 2)};
  for (const std::size_t size : {4'097U, 9'001U, 65'600U}) {
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      std::vector<float> logits = make_row(kind, size, 60 + kind);
      for (std::size_t which = 0; which < steps.size(); ++which) {
        // Edits go into the row itself, or next to it; both before anything is read, or after it.
        const std::size_t edits = which % 3;
        const auto prepare = [&](candidates& row) {
          if (edits == 2) static_cast<void>(row.max());
          for (std::size_t i = 0; edits > 0 && i < 50; ++i) row.add(static_cast<token_id>(i * i * 7 % size), -1.25F);
          if (edits > 0) row.affine(1 / 0.8);
        };
        candidates exact;
        exact.bind(std::as_const(logits));
        prepare(exact);
        static_cast<void>(exact.log_sum());
        steps[which](exact, {});
        const std::vector<token_id> wanted = survivors(exact);
        for (const math::isa isa : test_bits::forms()) {
          const pinned pin(isa);
          INFO("step " << which << " on a row of kind " << kind << ", " << size << " tokens, " << math::to_string(isa));
          candidates row;
          row.bind(std::as_const(logits));
          prepare(row);
          steps[which](row, {});
          REQUIRE(survivors(row) == wanted);
          row.bind(logits);
          prepare(row);
          steps[which](row, {});
          CHECK(survivors(row) == wanted);
          CHECK(row.draw(draw_stream(which)) == exact.draw(draw_stream(which)));
          row.release();
        }
      }
    }
  }
}

/// What quadratic does, value by value.
void bend_eagerly(candidates& row, double factor, double curve) {
  const double top = row.max(), square = (3 - curve) / 2 * factor, cube = (curve - 1) / 2 * factor;
  std::vector<double> below(row.vocabulary_size());
  row.visit_below_max([&](token_id id, double d) { below[static_cast<std::size_t>(id)] = d; });
  row.transform([&](token_id id, float) {
    const double d = std::max(below[static_cast<std::size_t>(id)], -0x1p200);
    return math::saturated(math::product(math::product(cube, d) - square, math::product(d, d)));
  });
  row.affine(1, top);
}

TEST_CASE("a long row that is bent where it is looked at is the row bent value by value") {
  using step = std::function<void(candidates&)>;
  const auto edit = [](candidates& row) {
    for (std::size_t i = 0; i < 40; ++i) row.add(static_cast<token_id>(i * i * 11 % row.vocabulary_size()), -0.75F);
    row.ban(17);
  };
  const std::vector<step> before{[](candidates&) {},
                                 edit,
                                 [&](candidates& row) { static_cast<void>(row.max()), edit(row), row.affine(1.5, 3); },
                                 [](candidates& row) { row.keep_largest(row.size() - 900); },
                                 [](candidates& row) {
                                   std::vector<std::uint64_t> mask((row.vocabulary_size() + 63) / 64,
                                                                   0xFFFFFFFFFF0FFFF1U);
                                   row.allow(mask);
                                 },
                                 [](candidates& row) { row.transform([](token_id, float z) { return z * 0.5F; }); }};
  const std::vector<step> after{
      [](candidates&) {},
      [](candidates& row) { row.keep_mass(0.9); },
      [](candidates& row) { row.keep_largest(50); },
      [](candidates& row) { row.keep_above(row.max() - 2); },
      edit,
      [&](candidates& row) { static_cast<void>(row.descending(3)), edit(row), row.keep_largest(5000); },
      [](candidates& row) { quadratic(0.2, 2)(row, {}); },
      [](candidates& row) {
        std::vector<std::uint64_t> mask((row.vocabulary_size() + 63) / 64, 0x5555FFFF0000FFFFU);
        row.allow(mask);
      },
      [](candidates& row) { row.rewrite([](token_id, float z) { return is_gone(z) ? -9.0F : z; }); },
      [](candidates& row) { static_cast<void>(row.entropy()); }};
  std::size_t turn = 0;
  for (const std::size_t size : {4'200U, 9'001U}) {
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      std::vector<float> logits = make_row(kind, size, 80 + kind);
      std::vector<bfloat16> half;
      for (const float z : logits) half.push_back({static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(z) >> 16)});
      for (std::size_t first = 0; first < before.size(); ++first) {
        for (std::size_t then = 0; then < after.size(); ++then) {
          const double factor = ++turn % 5 == 0 ? 4 : 0.3, curve = 1 + static_cast<double>(turn / 3 % 3);
          INFO("kind " << kind << ", " << size << " tokens, before " << first << ", after " << then);
          const auto check = [&](auto&& values) {
            candidates row(turn % 2 == 0 ? candidates::compact_limit : 40), want;
            row.bind(values);
            before[first](row);
            quadratic(factor, curve)(row, {});
            after[then](row);
            std::vector<std::pair<token_id, float>> got, wanted;
            const token_id drawn = row.draw(draw_stream(turn));
            row.visit([&](token_id id, float z) { got.emplace_back(id, z); });
            row.release();
            want.bind(values);
            before[first](want);
            bend_eagerly(want, factor, curve);
            if (then == 6) bend_eagerly(want, 0.2, 2);
            if (then != 6) after[then](want);
            want.visit([&](token_id id, float z) { wanted.emplace_back(id, z); });
            CHECK(got == wanted);
            CHECK(drawn == want.draw(draw_stream(turn)));
            want.release();
          };
          if (turn % 3 == 0) check(logits);
          if (turn % 3 == 1) check(std::as_const(logits));
          if (turn % 3 == 2) check(std::as_const(half));
        }
      }
    }
  }
}

TEST_CASE("facts of long rows have the same bits on every instruction set, and are near those of plain sums") {
  candidates row;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    const std::vector<float> logits = make_row(kind, 20'001, 40 + kind);
    const double top = static_cast<double>(*std::ranges::max_element(logits));
    double mass = 0, weighted = 0, sum = 0, squares = 0, count = 0;
    for (const float raw : logits) {
      if (is_gone(raw)) continue;
      const double below = static_cast<double>(math::flush_denormal(raw)) - top, w = std::exp(below);
      mass += w;
      weighted += w * below;
      sum += below;
      ++count;
    }
    for (const float raw : logits) {
      if (!is_gone(raw)) squares += std::pow(static_cast<double>(math::flush_denormal(raw)) - top - sum / count, 2);
    }
    std::vector<double> first;
    for (const math::isa which : test_bits::forms()) {
      const pinned pin(which);
      INFO("kind " << kind << ", " << math::to_string(which));
      row.bind(logits);
      const std::vector<double> facts{row.log_sum(),
                                      row.entropy(),
                                      row.sigma(),
                                      row.log_mass(2),
                                      static_cast<double>(row.size()),
                                      row.log_probability(row.argmax()),
                                      row.quick_log_sum(),
                                      row.quick_entropy()};
      CHECK(facts[0] == Approx(top + std::log(mass)).epsilon(1e-12));
      CHECK(facts[1] == Approx(std::log(mass) - weighted / mass).epsilon(1e-10).margin(1e-12));
      CHECK(facts[2] == Approx(std::sqrt(squares / count)).epsilon(1e-9).margin(1e-12));
      CHECK(facts[4] == count);
      if (first.empty()) first = facts;
      CHECK(facts == first);
      row.release();
      // Nor do they depend on where the values are stored.
      row.bind(std::as_const(logits));
      for (const token_id id : {5, 70, 9'000, 20'000}) row.set(id, row.logit(id));
      row.affine(1);
      static_cast<void>(row.quick_entropy());
      CHECK(std::vector<double>{row.log_sum(), row.entropy(), row.log_mass(2), row.quick_entropy()} ==
            std::vector<double>{facts[0], facts[1], facts[3], facts[7]});
      row.release();
    }
  }
}

}  // namespace large_rows
