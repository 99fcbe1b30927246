// SPDX-License-Identifier: MIT
#include <decant/decant.hpp>

#include <cstdio>

static_assert(!DECANT_EXCEPTIONS, "this program is compiled with -fno-exceptions");

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("failed: %s\n", what);
  ++failures;
}

}  // namespace

int main() {
  const decant::result<int> good = 3;
  check(good.has_value() && *good == 3, "a result holds its value");
  const decant::result<int> bad = decant::error{decant::error_code::bad_parameter, "top_p", "p must be a number"};
  check(!bad && bad.error().text() == "top_p: p must be a number", "a result holds its error");
  const double u = decant::draw_stream(1).uniform(decant::purpose::sample);
  check(u > 0 && u < 1, "a draw is strictly inside (0, 1)");
  return failures == 0 ? 0 : 1;
}
