// SPDX-License-Identifier: MIT
#include <decant/generate/options.hpp>

#include "generate/models.hpp"
#include "support/catch.hpp"

#include <vector>

namespace options_test {

using decant::generate_options;
using decant::token_callback;
using decant::token_event;

token_event event_of(decant::token_id token) {
  token_event event;
  event.token = token;
  return event;
}

TEST_CASE("every option has a default that leaves the rest effective", "[generate][options]") {
  const generate_options options;
  CHECK(options.max_new_tokens == 256);
  CHECK(options.context_length == 0);
  CHECK(options.stop_tokens.empty());
  CHECK(options.stop_strings.empty());
  CHECK_FALSE(options.bytes);
  CHECK_FALSE(options.seed);
  CHECK(options.sequence == 0);
  CHECK(options.cached == 0);
  CHECK(options.hook == nullptr);
  CHECK(options.on_token(token_event{}));
  const generate_options named{.max_new_tokens = 3, .stop_tokens = {1}, .seed = 5};
  CHECK(named.max_new_tokens == 3);
  CHECK(named.seed == 5U);
}

TEST_CASE("a callback of void goes on, one of bool says so itself", "[generate][options]") {
  int calls = 0;
  token_callback counting = [&](const token_event&) { ++calls; };
  CHECK(counting(token_event{}));
  token_callback refusing = [&](const token_event& event) { return ++calls, event.token != 3; };
  CHECK(refusing(event_of(2)));
  CHECK_FALSE(refusing(event_of(3)));
  CHECK(calls == 3);
  CHECK(token_callback()(token_event{}));
}

TEST_CASE("a callback may keep state of its own, and may be given as an lvalue", "[generate][options]") {
  std::vector<decant::token_id> seen;
  auto remember = [&seen, count = 0](const token_event& event) mutable {
    seen.push_back(event.token);
    return ++count < 2;
  };
  token_callback callback = remember;
  token_callback copy = callback;
  CHECK(callback(event_of(1)));
  CHECK_FALSE(callback(event_of(2)));
  CHECK(copy(event_of(3)));
  CHECK(seen == std::vector<decant::token_id>{1, 2, 3});
}

TEST_CASE("rates of a generation are never a division by zero", "[generate][options]") {
  decant::generation g;
  CHECK(g.seconds() == 0);
  CHECK(g.tokens_per_second() == 0);
  CHECK(g.decode_share() == 0);
  g.tokens = {1, 2, 3, 4};
  g.prompt_seconds = 1;
  g.model_seconds = 2;
  g.decode_seconds = 1;
  CHECK(g.seconds() == 4);
  CHECK(g.tokens_per_second() == 1);
  CHECK(g.decode_share() == 0.25);
}

}  // namespace options_test
