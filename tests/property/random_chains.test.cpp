// SPDX-License-Identifier: MIT
#include <decant/testing/eager_row.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <decant/chain.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

#include "support/catch.hpp"

// Random chains in any order, on random rows of every kind, must leave exactly what an eager reference leaves.

namespace random_chains {

using namespace decant;
using decant::testing::eager_row;

/// Small random numbers from decant's own generator: the same on every platform.
class dice {
 public:
  explicit dice(std::uint64_t seed) : draws_(seed) {}
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(unit() * static_cast<double>(bound)); }
  double unit() { return draws_.uniform(purpose::user, count_++); }
  bool one_in(std::size_t n) { return below(n) == 0; }

 private:
  draw_stream draws_;
  std::uint32_t count_ = 0;
};

struct step {
  std::string name;
  any_processor library;
  std::function<void(eager_row&)> eager;
};

std::vector<token_id> distinct(std::span<const token_id> tokens) {
  const std::set<token_id> ids(tokens.begin(), tokens.end());
  return {ids.begin(), ids.end()};
}

std::uint64_t bits_of_token(token_id id, std::uint64_t salt) {
  return math::philox4x32({static_cast<std::uint32_t>(id), 0, 0, 0}, salt)[0];
}

step random_step(dice& roll, std::size_t n, const step_context& context) {
  const auto any_id = [&] { return static_cast<token_id>(roll.below(n)); };
  switch (roll.below(19)) {
    case 0: {
      const double t = std::vector<double>{0, 1e-3, 0.25, 0.5, 1, 2, 4}[roll.below(7)];
      return {"temperature " + detail::number_text(t), temperature(t), [=](eager_row& row) {
                if (t == 0)
                  row.keep_largest(1);
                else if (t != 1)
                  row.affine(1 / t);
              }};
    }
    case 1: {
      const auto k = static_cast<std::int64_t>(roll.below(42)) - 1;
      return {"top_k " + std::to_string(k), top_k(k), [=](eager_row& row) {
                if (k > 0) row.keep_largest(static_cast<std::size_t>(k));
              }};
    }
    case 2: {
      const double p = static_cast<double>(roll.below(60)) * 0.0173;
      const std::size_t min_keep = 1 + roll.below(3);
      return {"top_p " + detail::number_text(p), top_p(p, min_keep), [=](eager_row& row) {
                if (p < 1) row.keep_mass(p, min_keep);
              }};
    }
    case 3: {
      const double p = static_cast<double>(roll.below(21)) / 20;
      const std::size_t min_keep = 1 + roll.below(3);
      return {"min_p " + detail::number_text(p), min_p(p, min_keep), [=](eager_row& row) {
                if (p > 0) row.keep_above(row.max() + math::log(p), min_keep);
              }};
    }
    case 4: {
      const double penalty = std::vector<double>{0.5, 1, 1.25, 2, 1.1}[roll.below(5)];
      const auto seen = distinct(context.tokens);
      return {"repetition " + detail::number_text(penalty), repetition_penalty(penalty), [=](eager_row& row) {
                if (penalty == 1) return;
                for (const token_id id : seen) {
                  const double z = static_cast<double>(row.logit(id));
                  if (std::isfinite(z)) row.set(id, static_cast<float>(z > 0 ? z / penalty : z * penalty));
                }
              }};
    }
    case 5: {
      const double penalty = std::vector<double>{-0.5, 0, 0.3, 1}[roll.below(4)];
      const std::vector<token_id> output(context.output().begin(), context.output().end());
      return {"frequency " + detail::number_text(penalty), frequency_penalty(penalty), [=](eager_row& row) {
                if (penalty == 0) return;
                for (const token_id id : distinct(output)) {
                  const auto count = static_cast<double>(std::count(output.begin(), output.end(), id));
                  row.add(id, static_cast<float>(-penalty * count));
                }
              }};
    }
    case 6: {
      const double penalty = std::vector<double>{-0.5, 0, 0.3, 1}[roll.below(4)];
      const auto seen = distinct(context.output());
      return {"presence " + detail::number_text(penalty), presence_penalty(penalty), [=](eager_row& row) {
                if (penalty == 0) return;
                for (const token_id id : seen) row.add(id, static_cast<float>(-penalty));
              }};
    }
    case 7: {
      const std::size_t size = 1 + roll.below(3);
      const std::vector<token_id> all(context.tokens.begin(), context.tokens.end());
      return {"ngram " + std::to_string(size), no_repeat_ngram(static_cast<std::int64_t>(size)), [=](eager_row& row) {
                for (std::size_t i = 0; i + size <= all.size(); ++i) {
                  bool same = true;
                  for (std::size_t j = 0; j + 1 < size; ++j)
                    same = same && all[i + j] == all[all.size() - size + 1 + j];
                  if (same) row.ban(all[i + size - 1]);
                }
              }};
    }
    case 8: {
      const token_id id = any_id();
      const float amount = roll.one_in(3) ? gone : static_cast<float>(roll.below(33)) / 4 - 4;
      return {"bias", named("bias", [=](candidates& row, const step_context&) { row.add(id, amount); }),
              [=](eager_row& row) { row.add(id, amount); }};
    }
    case 9: {
      const token_id id = any_id();
      const float value = static_cast<float>(roll.below(65)) / 4 - 8;
      return {"set", named("set", [=](candidates& row, const step_context&) { row.set(id, value); }),
              [=](eager_row& row) { row.set(id, value); }};
    }
    case 10: {
      std::vector<token_id> ids;
      const std::size_t keep = 1 + roll.below(4);
      for (std::size_t i = 0; i < n; ++i) {
        if (roll.below(5) <= keep) ids.push_back(static_cast<token_id>(i));
      }
      return {"allow ids", named("allow", [=](candidates& row, const step_context&) { row.allow(ids); }),
              [=](eager_row& row) {
                const std::set<token_id> kept(ids.begin(), ids.end());
                row.keep_if([&](token_id id) { return kept.count(id) > 0; });
              }};
    }
    case 11: {
      const std::uint64_t salt = roll.below(1000);
      return {"allow mask",
              named("mask",
                    [=](candidates& row, const step_context&) {
                      std::vector<std::uint64_t> mask((n + 63) / 64, 0);
                      for (std::size_t i = 0; i < n; ++i) {
                        if (bits_of_token(static_cast<token_id>(i), salt) % 4 != 0)
                          mask[i / 64] |= std::uint64_t{1} << (i % 64);
                      }
                      row.allow(mask);
                    }),
              [=](eager_row& row) { row.keep_if([&](token_id id) { return bits_of_token(id, salt) % 4 != 0; }); }};
    }
    case 12: {
      const double p = 0.05 + static_cast<double>(roll.below(55)) * 0.0173;
      return {"typical " + detail::number_text(p),
              named("typical",
                    [=](candidates& row, const step_context&) {
                      if (row.status() == row_status::ok) row.keep_mass(p, 1, row.log_sum() - row.entropy());
                    }),
              [=](eager_row& row) {
                if (row.status() == row_status::ok) row.keep_mass_around(p, row.log_sum() - row.entropy());
              }};
    }
    case 13: {
      const std::size_t count = 1 + roll.below(5);
      return {"ban the top " + std::to_string(count),
              named("ban top",
                    [=](candidates& row, const step_context&) {
                      std::vector<token_id> top;
                      for (const entry& e : row.descending(count)) top.push_back(e.id);
                      for (const token_id id : top) row.ban(id);
                    }),
              [=](eager_row& row) {
                const auto order = row.descending();
                for (std::size_t i = 0; i < std::min(count, order.size()); ++i) row.ban(order[i]);
              }};
    }
    case 14:
      return {"normalise",
              named("normalise",
                    [](candidates& row, const step_context&) {
                      if (row.status() == row_status::ok) row.affine(1, -row.log_sum());
                    }),
              [](eager_row& row) {
                if (row.status() == row_status::ok) row.affine(1, -row.log_sum());
              }};
    case 15: {
      const auto bend = [](double top) {
        return [top](token_id, float z) {
          const double d = static_cast<double>(z) - top;
          return static_cast<float>(top - 0.125 * d * d + 0.0625 * d * d * d);
        };
      };
      return {"quadratic",
              named("quadratic",
                    [=](candidates& row, const step_context&) {
                      if (row.status() == row_status::ok) row.transform(bend(row.max()));
                    }),
              [=](eager_row& row) {
                if (row.status() == row_status::ok) row.transform(bend(row.max()));
              }};
    }
    case 16: {
      const double width = 0.3 + roll.unit();
      return {"sigma " + detail::number_text(width),
              named("sigma",
                    [=](candidates& row, const step_context&) {
                      if (row.status() == row_status::ok) row.keep_above(row.max() - width * row.sigma());
                    }),
              [=](eager_row& row) {
                if (row.status() == row_status::ok) row.keep_above(row.max() - width * row.sigma());
              }};
    }
    case 17: {
      const std::uint64_t salt = roll.below(1000);
      const auto revive = [salt](token_id id, float z) {
        return is_gone(z) && bits_of_token(id, salt) % 3 == 0 ? -1.5F : z;
      };
      return {"rewrite", named("rewrite", [=](candidates& row, const step_context&) { row.rewrite(revive); }),
              [=](eager_row& row) { row.rewrite(revive); }};
    }
    default:
      return {"collision",
              named("collision",
                    [](candidates& row, const step_context&) {
                      if (row.status() == row_status::ok) row.keep_above(row.log_sum(2) - row.log_sum());
                    }),
              [](eager_row& row) {
                if (row.status() == row_status::ok) row.keep_above(row.log_sum(2) - row.log_sum());
              }};
  }
}

std::vector<float> random_row(dice& roll, std::size_t n) {
  const std::size_t kind = roll.below(5);
  std::vector<float> row(n);
  for (float& z : row) {
    switch (kind) {
      case 0: z = static_cast<float>(roll.below(161)) / 8 - 10; break;                    // ties of all widths
      case 1: z = static_cast<float>(roll.below(3)); break;                               // three values
      case 2: z = static_cast<float>(roll.unit() * 20 - 10); break;                       // distinct
      case 3: z = roll.one_in(3) ? gone : static_cast<float>(roll.below(33)) / 4; break;  // much is gone already
      default: z = static_cast<float>(std::log(roll.unit()) * 4);                         // a peak and a tail
    }
  }
  if (roll.one_in(50)) std::fill(row.begin(), row.end(), roll.one_in(2) ? gone : 1.25F);
  if (roll.one_in(100))
    row[roll.below(n)] = roll.one_in(2) ? std::bit_cast<float>(0x7FC00000U) : std::bit_cast<float>(0x7F800000U);
  if (roll.one_in(20)) row[roll.below(n)] = std::bit_cast<float>(0x00000123U);  // a denormal, read as 0
  return row;
}

/// What one chain left of one row, compared. Returns what differs, empty if nothing.
std::string difference(candidates& row, eager_row& want) {
  if (row.status() != want.status())
    return std::string("status ") + to_string(row.status()) + ", wanted " + to_string(want.status());
  if (row.status() == row_status::not_finite) return {};
  if (row.size() != want.size())
    return "size " + std::to_string(row.size()) + ", wanted " + std::to_string(want.size());
  std::vector<token_id> ids;
  std::string wrong;
  row.visit([&](token_id id, float z) {
    ids.push_back(id);
    if (std::memcmp(&z, std::vector<float>{want.logit(id)}.data(), sizeof z) != 0)
      wrong = "logit of " + std::to_string(id);
  });
  if (!wrong.empty()) return wrong;
  if (ids != want.ids()) return "survivors";
  if (ids.empty()) return {};
  const auto order = want.descending();
  std::vector<token_id> listed;
  for (const entry& e : row.descending(order.size())) listed.push_back(e.id);
  if (listed != order) return "descending order";
  if (row.argmax() != order[0]) return "argmax";
  const law taken = row.probabilities();
  const auto exact = want.probabilities();
  for (std::size_t id = 0; id < exact.size(); ++id) {
    if (std::abs(taken.probability(static_cast<token_id>(id)) - exact[id]) > 1e-6)
      return "probability of " + std::to_string(id);
  }
  const draw_stream draws(taken.size(), 5);
  if (row.draw(draws) != draw(taken, draws)) return "draw from the row and from its law";
  return {};
}

void run(std::uint64_t seed, std::size_t chains, std::size_t largest) {
  std::size_t wrong = 0;
  candidates list_rows, bound_rows(0), mixed_rows(16);
  for (std::size_t i = 0; i < chains && wrong < 5; ++i) {
    dice roll(seed + i);
    const std::size_t n = roll.one_in(4) ? 1 + roll.below(8) : 1 + roll.below(largest);
    std::vector<float> logits = random_row(roll, n);
    std::vector<token_id> history(roll.below(12));
    for (token_id& t : history) t = static_cast<token_id>(roll.below(n));
    const step_context context = context_after(history, roll.below(history.size() + 1), draw_stream(seed));
    const std::size_t width = roll.below(4);
    std::vector<bfloat16> halves;
    if (width == 3) {
      for (float& z : logits) {
        halves.push_back({static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(z) >> 16)});
        z = math::to_float(halves.back());
      }
    }
    const std::vector<float> before = logits;
    candidates& row = i % 3 == 0 ? list_rows : i % 3 == 1 ? bound_rows : mixed_rows;
    if (width == 3)
      row.bind(halves);
    else if (width == 2)
      row.bind(std::as_const(logits));
    else
      row.bind(logits);
    eager_row want(before);
    std::string names;
    std::string problem;
    for (std::size_t length = 1 + roll.below(6); length > 0 && problem.empty(); --length) {
      step next = random_step(roll, n, context);
      names += next.name + ", ";
      next.library(row, context);
      next.eager(want);
      // Asking in between must change nothing, so ask only sometimes.
      if (roll.one_in(3)) problem = difference(row, want);
    }
    if (problem.empty()) problem = difference(row, want);
    row.release();
    if (std::memcmp(before.data(), logits.data(), n * sizeof(float)) != 0) problem += " row not restored";
    if (problem.empty()) continue;
    ++wrong;
    FAIL_CHECK("chain " << i << " of seed " << seed << ", " << n << " tokens, width " << width << ": " << names
                        << "differs in " << problem);
  }
  CHECK(wrong == 0);
}

// 100,000 in four parts, which run side by side.
TEST_CASE("random chains equal the eager reference, 25,000 of 100,000: first") { run(1, 25'000, 300); }
TEST_CASE("random chains equal the eager reference, 25,000 of 100,000: second") { run(25'001, 25'000, 300); }
TEST_CASE("random chains equal the eager reference, 25,000 of 100,000: third") { run(50'001, 25'000, 300); }
TEST_CASE("random chains equal the eager reference, 25,000 of 100,000: fourth") { run(75'001, 25'000, 300); }

TEST_CASE("random chains equal the eager reference on rows around the limit of lists") {
  run(900'000'000, 150, 12'000);
}

TEST_CASE("random chains equal the eager reference: 1,000,000 on rows of 1 to 300 tokens", "[long]") {
  run(1'000'000'000, 1'000'000, 300);
}

}  // namespace random_chains
