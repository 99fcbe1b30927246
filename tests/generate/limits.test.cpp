// SPDX-License-Identifier: MIT
#include <decant/generate/limits.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <limits>
#include <vector>

namespace limits_tests {

using decant::finish_reason;
using decant::detail::adopt_context_of;
using decant::detail::is_among;
using decant::detail::limit_reached;
using decant::detail::room_left;

struct options {
  std::size_t max_new_tokens = 0, context_length = 0;
};

TEST_CASE("a limit is reached exactly where no room is left", "[generate][limits]") {
  for (std::size_t most = 0; most < 5; ++most) {
    for (std::size_t context = 0; context < 8; ++context) {
      for (std::size_t prompt = 1; prompt < 5; ++prompt) {
        for (std::size_t output = 0; output < 7; ++output) {
          const options given{most, context};
          const bool too_long = output >= most, full = context != 0 && prompt + output >= context;
          const finish_reason expected =
              too_long ? finish_reason::length : (full ? finish_reason::context_full : finish_reason::none);
          CHECK(limit_reached(given, prompt, output) == expected);
          const std::size_t room = room_left(given, prompt, output);
          CHECK((room == 0) == (expected != finish_reason::none));
          if (room == 0) continue;
          CHECK(limit_reached(given, prompt, output + room - 1) == finish_reason::none);
          CHECK(limit_reached(given, prompt, output + room) != finish_reason::none);
        }
      }
    }
  }
}

TEST_CASE("a prompt beyond the context leaves no room, and no limit is no limit", "[generate][limits]") {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  CHECK(room_left(options{10, 4}, 9) == 0);
  CHECK(limit_reached(options{10, 4}, 9, 0) == finish_reason::context_full);
  CHECK(room_left(options{most, 0}, 9, 1) == most - 1);
}

TEST_CASE("a context length that is not given is the model's", "[generate][limits]") {
  struct {
    std::size_t sequence_length() { return 64; }
  } limited;
  struct {
  } other;
  options given{10, 32}, open{10, 0}, none{10, 0};
  adopt_context_of(given, limited);
  adopt_context_of(open, limited);
  adopt_context_of(none, other);
  CHECK(given.context_length == 32);
  CHECK(open.context_length == 64);
  CHECK(none.context_length == 0);
}

TEST_CASE("a token is among those listed or not", "[generate][limits]") {
  const std::vector<decant::token_id> ends{5, 2};
  CHECK(is_among(ends, 2));
  CHECK(is_among(ends, 5));
  CHECK_FALSE(is_among(ends, 3));
  CHECK_FALSE(is_among({}, 0));
}

}  // namespace limits_tests
