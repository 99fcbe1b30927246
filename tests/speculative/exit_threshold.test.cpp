// SPDX-License-Identifier: MIT
#include <decant/speculative/exit_threshold.hpp>

#include "support/catch.hpp"

#include <limits>

namespace exit_threshold_tests {

using decant::exit_threshold;
using decant::exit_threshold_options;

TEST_CASE("exit_threshold: updates by hand", "[speculative]") {
  exit_threshold threshold({.start = 0.6, .target_rate = 0.9, .step = 0.01, .rate_memory = 0.5, .memory = 0.9});
  CHECK(threshold.value() == 0.6);
  CHECK(threshold.rate() == 0.9);
  threshold.update(2, 4);  // rate (0.9 + 0.5) / 2 = 0.7, below the aim: 0.6 * 0.9 + 0.61 * 0.1
  CHECK(threshold.rate() == Approx(0.7));
  CHECK(threshold.value() == Approx(0.601));
  threshold.update(4, 4);  // rate 0.85
  CHECK(threshold.rate() == Approx(0.85));
  CHECK(threshold.value() == Approx(0.602));
  threshold.update(3, 3);  // rate 0.925: down
  CHECK(threshold.rate() == Approx(0.925));
  CHECK(threshold.value() == Approx(0.601));
  threshold.update(0, 0);
  CHECK(threshold.rate() == Approx(0.925));
  CHECK(threshold.value() == Approx(0.601));
}

TEST_CASE("exit_threshold: a rate equal to the aim raises it", "[speculative]") {
  exit_threshold threshold({.start = 0.5, .target_rate = 1, .step = 0.1, .memory = 0});
  threshold.update(1, 1);
  CHECK(threshold.value() == Approx(0.6));
}

TEST_CASE("exit_threshold: it stays a probability", "[speculative]") {
  exit_threshold low({.start = 0.05, .target_rate = 0, .step = 1, .memory = 0});
  low.update(1, 1);
  CHECK(low.value() == 0);
  exit_threshold high({.start = 0.95, .step = 1, .memory = 0});
  high.update(0, 5);
  CHECK(high.value() == 1);
}

TEST_CASE("exit_threshold: step 0 is off", "[speculative]") {
  exit_threshold threshold({.start = 0.25, .step = 0});
  for (int i = 0; i < 9; ++i) threshold.update(0, 5);
  CHECK(threshold.value() == 0.25);
}

TEST_CASE("exit_threshold: options outside [0, 1]", "[speculative]") {
  for (const double bad : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    for (const exit_threshold_options& options :
         {exit_threshold_options{.start = bad}, exit_threshold_options{.target_rate = bad},
          exit_threshold_options{.step = bad}, exit_threshold_options{.rate_memory = bad},
          exit_threshold_options{.memory = bad}}) {
      CHECK_FALSE(exit_threshold::make(options));
      CHECK_THROWS_AS(exit_threshold(options), decant::parameter_error);
    }
  }
  CHECK(exit_threshold::make(exit_threshold_options{.memory = 2}).error().where == "exit_threshold.memory");
}

}  // namespace exit_threshold_tests
