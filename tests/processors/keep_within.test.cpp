// SPDX-License-Identifier: MIT
#include <decant/processors/keep_within.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>

namespace keep_within_tests {

using namespace policies;
using decant::chain;
using decant::ties;

/// keep_within as a processor.
auto within(double least, std::size_t min_keep = 1, ties at_border = ties::lower_id) {
  return [=](candidates& c, const step_context&) { decant::detail::keep_within(c, least, min_keep, at_border); };
}

auto shifted(double by) {
  return [=](candidates& c, const step_context&) { c.affine(1, by); };
}

TEST_CASE("keep_within keeps what is no further below the maximum", "[processors]") {
  CHECK(survivors(within(0), {1, 3, 2, 3}) == tokens{1, 3});
  CHECK(survivors(within(-1), {1, 3, 2, 3}) == tokens{1, 2, 3});
  CHECK(survivors(within(-0.999), {1, 3, 2, 3}) == tokens{1, 3});
  CHECK(survivors(within(-2), {1, 3, 2, 3}) == tokens{0, 1, 2, 3});
  CHECK(survivors(within(-1e300), {1, gone, -3e38F, 3e38F}) == tokens{0, 2, 3});
}

TEST_CASE("keep_within keeps min_keep, ties by lower id or all of them", "[processors]") {
  CHECK(survivors(within(1), {1, 3, 2, 3}) == tokens{1});
  CHECK(survivors(within(1, 0), {1, 3, 2, 3}) == tokens{1});
  CHECK(survivors(within(1, 3), {2, 3, 2, 3}) == tokens{0, 1, 3});
  CHECK(survivors(within(1, 99), {2, 3, 2, 3}).size() == 4);
  CHECK(survivors(within(1, 1, ties::keep), {1, 3, 2, 3}) == tokens{1, 3});
  CHECK(survivors(within(1, 0, ties::keep), {1, 3, 2, 3}) == tokens{1, 3});
  CHECK(survivors(within(1, 3, ties::keep), {2, 3, 2, 3}) == tokens{0, 1, 2, 3});
  CHECK(survivors(within(1, 99, ties::keep), {2, 3, 2, 3}).size() == 4);
  // Only what min_keep lets stay has ties: what the threshold keeps keeps equal tokens anyway.
  CHECK(survivors(within(0, 1, ties::keep), {1, 3, 2, 3}) == tokens{1, 3});
}

TEST_CASE("keep_within equals keep_above where nothing is far from zero", "[processors]") {
  for (const std::size_t size : {std::size_t{5}, std::size_t{64}, std::size_t{9000}}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const row logits = random_row(size, seed);
      for (const double least : {-0.1, -1.0, -3.3, -7.0}) {
        const auto above = [&](candidates& c, const step_context&) { c.keep_above(c.max() + least); };
        CHECK(survivors(within(least), logits) == survivors(above, logits));
      }
    }
  }
}

TEST_CASE("keep_within is right however high the logits stand", "[processors]") {
  for (const double by : {-1e300, -1e15, -1e9, 1e9, 1e15, 1e18, 1e300}) {
    INFO("shifted by " << by);
    CHECK(survivors(chain(shifted(by), within(-1)), {1, 3, 2, 3, 1.99F}) == tokens{1, 2, 3});
    CHECK(survivors(chain(shifted(by), within(-1.02)), {1, 3, 2, 3, 1.99F}) == tokens{1, 2, 3, 4});
    CHECK(survivors(chain(shifted(by), within(1, 2, ties::keep)), {1, 3, 2, 3, 3}) == tokens{1, 3, 4});
  }
  for (const double t : {1e-30, 1e-12, 1e12, 1e30}) {
    INFO("T = " << t);
    CHECK(survivors(chain(decant::temperature(t), within(-1.0 / t)), {1, 3, 2, 3, 1.99F}) == tokens{1, 2, 3});
    CHECK(survivors(chain(decant::temperature(t), within(-1.02 / t)), {1, 3, 2, 3, 1.99F}) == tokens{1, 2, 3, 4});
  }
}

TEST_CASE("keep_within narrows only if something goes, and does nothing to bad rows", "[processors]") {
  check_identity(within(-1e300));
  check_bad_rows(within(-1));
  check_sizes(within(-2));
}

TEST_CASE("keep_within passes check_processor", "[processors]") {
  check_report_of(within(-1.5), {.shift_invariant = true, .allocations = decant::testing::allocations});
}

}  // namespace keep_within_tests
