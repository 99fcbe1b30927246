// SPDX-License-Identifier: MIT
// A sampler of your own, and the test of it: check_sampler compares draws with the law, replays, permutes, and more.

#include <cstdio>
#include <string>

#include <decant/core.hpp>
#include <decant/testing/check.hpp>

using namespace decant;

namespace {

/// Draws among the tokens at least half as probable as the best. A law sampler: narrow, then draw.
struct near_best {
  void narrow(candidates& row, const step_context&) const { row.keep_above(row.max() - 0.6931471805599453); }
  token_id operator()(candidates& row, const step_context& context) const {
    narrow(row, context);
    return row.draw(context.draws);
  }
};

/// The same with a well-known mistake: the draw falls back on the last id when the sum of floats falls short of 1.
struct careless {
  void narrow(candidates& row, const step_context& context) const { near_best{}.narrow(row, context); }
  token_id operator()(candidates& row, const step_context& context) const {
    narrow(row, context);
    const double target = context.draws.uniform(purpose::sample) * 1.02;  // as if 2 % were lost to rounding
    double cumulative = 0;
    const law chances = row.probabilities();
    for (const token_id id : chances.ids) {
      cumulative += chances.probability(id);
      if (target < cumulative) return id;
    }
    return static_cast<token_id>(row.vocabulary_size()) - 1;
  }
};

}  // namespace

int main() {
  std::printf("near_best: %s\n", testing::check_sampler(near_best{}).text().c_str());
  const auto report = testing::check_sampler(careless{});
  const std::string first = report.ok ? "nothing" : report.failures.front();
  std::printf("careless fails in: %s\n", first.substr(0, first.find(':')).c_str());
  return 0;
}
