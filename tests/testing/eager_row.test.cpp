// SPDX-License-Identifier: MIT
#include <decant/testing/eager_row.hpp>

#include <cmath>
#include <vector>

#include "support/catch.hpp"

namespace eager_row_tests {

using decant::gone;
using decant::row_status;
using decant::token_id;
using decant::testing::eager_row;
using ids = std::vector<token_id>;

const std::vector<float> golden{2, 1, 0.5F, 0, -1, -3};

TEST_CASE("the eager row gives the golden numbers", "[testing]") {
  eager_row row(golden);
  CHECK(row.entropy() == Approx(1.226783295532).margin(1e-9));
  CHECK(row.sigma() == Approx(1.592081097879).margin(1e-9));
  CHECK(row.probabilities()[0] == Approx(0.560893422).margin(1e-9));
  CHECK(std::exp(row.log_sum(2) - 2 * row.log_sum()) == Approx(0.379397416250).margin(1e-9));
}

TEST_CASE("the eager row narrows as the definitions say", "[testing]") {
  const auto after = [](auto narrow) {
    eager_row row(golden);
    narrow(row);
    return row.ids();
  };
  CHECK(after([](eager_row& r) { r.keep_mass(0.8); }) == ids{0, 1, 2});
  CHECK(after([](eager_row& r) { r.keep_mass(0); }) == ids{0});
  CHECK(after([](eager_row& r) { r.keep_mass(0, 3); }) == ids{0, 1, 2});
  CHECK(after([](eager_row& r) { r.keep_mass(1); }) == ids{0, 1, 2, 3, 4, 5});
  CHECK(after([](eager_row& r) { r.keep_above(r.max() + std::log(0.1)); }) == ids{0, 1, 2, 3});
  CHECK(after([](eager_row& r) { r.keep_above(100); }) == ids{0});
  CHECK(after([](eager_row& r) { r.keep_mass_around(0.2, r.log_sum() - r.entropy()); }) == ids{1});
  CHECK(after([](eager_row& r) { r.keep_mass_around(0.5, r.log_sum() - r.entropy()); }) == ids{0, 1});
  eager_row ties(std::vector<float>{1, 3, 3, 3});
  ties.keep_largest(2);
  CHECK(ties.ids() == ids{1, 2});
}

TEST_CASE("gone is final for the eager row, but for rewrite", "[testing]") {
  eager_row row(golden);
  row.ban(0);
  row.set(0, 5);
  row.add(0, 5);
  row.transform([](token_id, float) { return 1.0F; });
  CHECK(row.ids() == ids{1, 2, 3, 4, 5});
  row.rewrite([](token_id id, float z) { return id == 0 ? 7.0F : z; });
  CHECK(row.descending() == ids{0, 1, 2, 3, 4, 5});
}

TEST_CASE("a bad eager row does nothing more", "[testing]") {
  eager_row empty(std::vector<float>{gone, gone});
  CHECK(empty.status() == row_status::empty);
  eager_row broken(std::vector<float>{1, std::nanf(""), 0});
  CHECK(broken.status() == row_status::not_finite);
  broken.keep_largest(1);
  broken.ban(0);
  CHECK(broken.ids() == ids{0, 1, 2});
  CHECK(broken.descending().empty());
}

TEST_CASE("scale and shift are kept apart from the stored floats", "[testing]") {
  eager_row row(golden);
  row.affine(2, 1);
  CHECK(row.logit(0) == 5.0F);
  row.set(1, 4);
  row.add(2, -0.5F);
  CHECK(row.logit(1) == 4.0F);
  CHECK(row.logit(2) == 1.5F);
  CHECK(row.max() == 5.0);
}

TEST_CASE("differences to the maximum and log-probabilities are by id, -inf for what is gone", "[testing]") {
  eager_row row(golden);
  row.ban(3);
  row.affine(2, 1e9);
  const std::vector<double> below = row.below_max(), log_p = row.log_probabilities();
  CHECK(below == std::vector<double>{0, -2, -3, static_cast<double>(gone), -6, -10});
  CHECK(log_p[3] == static_cast<double>(gone));
  double sum = 0;
  for (const token_id id : row.ids()) sum += std::exp(log_p[static_cast<std::size_t>(id)]);
  CHECK(sum == Approx(1).margin(1e-12));
  CHECK(log_p[0] - log_p[4] == Approx(6).margin(1e-12));
  row.keep_first({4, 0, 1, 2, 5}, 2);
  CHECK(row.ids() == ids{0, 4});
  row.keep_first({4, 0}, 0);
  CHECK(row.ids() == ids{4});
}

TEST_CASE("the eager row tells what a reading has found, and does not read to do so", "[testing]") {
  eager_row broken(std::vector<float>{1, std::nanf(""), 0});
  CHECK_FALSE(broken.found_bad());
  broken.set(1, 2);
  CHECK(broken.status() == row_status::ok);
  broken.set(1, std::nanf(""));
  broken.keep_largest(2);
  CHECK(broken.found_bad());
  CHECK(broken.below_max() == std::vector<double>(3, static_cast<double>(gone)));
}

TEST_CASE("an edit that no float could hold under the scale is made to the logits as they stand", "[testing]") {
  eager_row row(std::vector<float>{0, -1, -2});
  row.affine(0x1p-200, 1);
  row.set(1, 0.5F);
  CHECK(row.logit(0) == 1.0F);
  CHECK(row.logit(1) == 0.5F);
  CHECK(row.logit(2) == 1.0F);
  row.affine(0x1p-200);
  row.add(0, 3);
  CHECK(row.logit(0) == 3.0F);
  eager_row far(golden);
  far.affine(0x1p300);
  far.affine(0x1p300);
  CHECK(far.below_max()[1] == -0x1p400);
}

}  // namespace eager_row_tests
