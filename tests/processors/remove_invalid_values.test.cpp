// SPDX-License-Identifier: MIT
#include <decant/processors/remove_invalid_values.hpp>

#include "processors/lists.hpp"

#include <decant/chain.hpp>
#include <decant/processors/suppress_tokens.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/processors/top_p.hpp>

namespace remove_invalid_values_tests {

using namespace lists;
using decant::chain;
using decant::remove_invalid_values;
using options = decant::remove_invalid_values_options;

constexpr float most = std::numeric_limits<float>::max();
const remove_invalid_values plain;
const remove_invalid_values hf({.revive = true});

TEST_CASE("NaN becomes 0 and +inf the largest float", "[processors]") {
  check_becomes(plain, {nan_float, 1, -2}, {}, {0, 1, -2});
  check_becomes(plain, {-nan_float, 1, -2}, {}, {0, 1, -2});
  check_becomes(plain, {1, infinite_float, -2}, {}, {1, most, -2});
  check_becomes(plain, row(8, nan_float), {}, flat8);
  check_becomes(plain, row(8, infinite_float), {}, row(8, most));
}

TEST_CASE("remove_invalid_values: a token that is gone stays gone", "[processors]") {
  check_becomes(plain, {nan_float, infinite_float, gone, 1.5F, -2, 0, nan_float, 3}, {},
                {0, most, gone, 1.5F, -2, 0, 0, 3});
  check_becomes(plain, inf8, {}, inf8);
  check_becomes(plain, row(3, gone), {}, row(3, gone));
  check_becomes(chain(decant::suppress_tokens({0, 2}), plain), {nan_float, 1, 2, nan_float}, {}, {gone, 1, gone, 0});
}

TEST_CASE("the cases of the golden file of remove_invalid_values, through the option revive", "[processors]") {
  check_becomes(hf, {nan_float, infinite_float, gone, 1.5F, -2, 0, nan_float, 3}, {},
                {0, most, -most, 1.5F, -2, 0, 0, 3});
  check_becomes(hf, g8, {}, g8);
  check_becomes(hf, inf8, {}, {2, -most, 1, -most, 3, -most, 0, 0.5F});
  check_becomes(hf, big8, {}, big8);
  check_becomes(hf, neg12, {}, neg12);
  check_becomes(hf, g16, {}, g16);
  check_becomes(hf, peak8, {}, peak8);
  check_becomes(hf, row(8, nan_float), {}, flat8);
  check_becomes(hf, row(8, infinite_float), {}, row(8, most));
}

TEST_CASE("with revive a row without a token becomes uniform", "[processors]") {
  check_becomes(hf, row(4, gone), {}, row(4, -most));
  check_becomes(chain(decant::suppress_tokens({0, 1}), hf), {1, 2}, {}, row(2, -most));
}

TEST_CASE("a row without such values is left bit for bit", "[processors]") {
  check_identity(plain);
  CHECK(survivors(chain(decant::top_k(2), plain), g8) == tokens{0, 3});
}

TEST_CASE("remove_invalid_values: a row that was found bad stays bad, except with revive", "[processors]") {
  const auto read = [](candidates& c, const step_context&) { static_cast<void>(c.max()); };
  CHECK(status_after(chain(read, plain), {1, nan_float}) == row_status::not_finite);
  CHECK(status_after(chain(decant::top_k(1), plain), {1, infinite_float}) == row_status::not_finite);
  CHECK(status_after(chain(read, plain), {gone, gone}) == row_status::empty);
  CHECK(logits_after(chain(read, hf), {1, nan_float}) == row{1, 0});
  CHECK(status_after(chain(read, hf), {1, nan_float}) == row_status::ok);
}

TEST_CASE("it works on what stands after a temperature, and in a mutable row", "[processors]") {
  CHECK(logits_after(chain(decant::temperature(0.5), plain), {1, nan_float, gone, 2}) == row{2, 0, gone, 4});
  row edited{1, nan_float, gone, infinite_float};
  const row before = edited;
  candidates c;
  c.bind(std::span<float>(edited));
  remove_invalid_values{}(c, {});
  CHECK(c.status() == row_status::ok);
  CHECK(c.logit(1) == 0);
  CHECK(c.draw(draw_stream(1)) == 3);
  c.release();
  CHECK(same_bits(edited, before));
}

TEST_CASE("the largest float passes through the steps that follow", "[processors]") {
  for (const double t : {1e-30, 0.5, 1.0, 2.0, 1e30}) {
    const row logits{1, infinite_float, 0, infinite_float};
    CHECK(status_after(chain(plain, decant::temperature(t), decant::top_p(0.9)), logits) == row_status::ok);
  }
  CHECK(difference(law_after(plain, {1, infinite_float, 0, infinite_float}), {0, 0.5, 0, 0.5}) < of_float);
}

TEST_CASE("a NaN or +inf anywhere leaves a row that can be drawn from", "[processors]") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{65}, std::size_t{9000}}) {
    for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
      for (const float bad : {nan_float, infinite_float}) {
        row logits = random_row(size, 3), mended = logits;
        logits[place] = bad;
        mended[place] = decant::math::is_nan(bad) ? 0 : most;
        CHECK(same_bits(logits_after(plain, logits), mended));
        CHECK(drawn_after(plain, logits, 10) == drawn_after([](candidates&, const step_context&) {}, mended, 10));
        CHECK(drawn_after(hf, logits, 10) == drawn_after(plain, logits, 10));
      }
    }
  }
}

TEST_CASE("remove_invalid_values can be made and says what it is", "[processors]") {
  check_made<remove_invalid_values>("remove_invalid_values");
  check_made<remove_invalid_values>("remove_invalid_values(revive = true)", options{.revive = true});
}

TEST_CASE("remove_invalid_values on all sizes", "[processors]") {
  check_sizes(plain);
  check_sizes(hf);
}

TEST_CASE("remove_invalid_values passes check_processor", "[processors]") {
  check_report_of(plain, {.shift_invariant = true, .allocations = decant::testing::allocations});
  check_report_of(hf, {.shift_invariant = true, .may_revive = true, .allocations = decant::testing::allocations});
}

}  // namespace remove_invalid_values_tests
