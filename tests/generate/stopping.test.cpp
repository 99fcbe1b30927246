// SPDX-License-Identifier: MIT
#include <decant/generate/stopping.hpp>

#include "support/catch.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace stopping_test {

using decant::any_criterion;
using decant::context_after;
using decant::draw_stream;
using decant::finish_reason;
using decant::step_context;
using decant::token_id;
using ids = std::vector<token_id>;

step_context after(const ids& tokens, std::size_t prompt) { return context_after(tokens, prompt, draw_stream(1)); }

TEST_CASE("every finish reason has words of its own", "[generate][stopping]") {
  std::vector<std::string> all;
  for (int i = 0; i <= static_cast<int>(finish_reason::bad_row); ++i)
    all.emplace_back(to_string(static_cast<finish_reason>(i)));
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i] != "unknown");
    for (std::size_t j = 0; j < i; ++j) CHECK(all[i] != all[j]);
  }
  CHECK(std::string(to_string(static_cast<finish_reason>(200))) == "unknown");
}

TEST_CASE("counting new tokens and all tokens", "[generate][stopping]") {
  const ids tokens{7, 8, 9, 10};
  CHECK_FALSE(decant::max_new_tokens{3}(after(tokens, 2)));
  CHECK(decant::max_new_tokens{2}(after(tokens, 2)));
  CHECK(decant::max_new_tokens{0}(after(tokens, 4)));
  CHECK_FALSE(decant::max_length{5}(after(tokens, 2)));
  CHECK(decant::max_length{4}(after(tokens, 2)));
}

TEST_CASE("stop tokens and sequences look at the output alone", "[generate][stopping]") {
  const ids tokens{1, 2, 3, 1, 2};
  CHECK(decant::stop_tokens{{2, 9}}(after(tokens, 3)));
  CHECK_FALSE(decant::stop_tokens{{3, 9}}(after(tokens, 3)));
  CHECK_FALSE(decant::stop_tokens{{2}}(after(tokens, 5)));
  CHECK_FALSE(decant::stop_tokens{{}}(after(tokens, 0)));
  CHECK(decant::stop_sequence{{1, 2}}(after(tokens, 3)));
  CHECK_FALSE(decant::stop_sequence{{3, 1, 2}}(after(tokens, 3)));  // begins in the prompt
  CHECK(decant::stop_sequence{{3, 1, 2}}(after(tokens, 2)));
  CHECK_FALSE(decant::stop_sequence{{1, 3}}(after(tokens, 0)));
  CHECK_FALSE(decant::stop_sequence{{}}(after(tokens, 0)));
}

TEST_CASE("predicates, with state of their own", "[generate][stopping]") {
  decant::stop_when third([count = 0](const step_context&) mutable { return ++count == 3; });
  const ids tokens{1};
  CHECK_FALSE(third(after(tokens, 0)));
  auto copy = third;
  CHECK_FALSE(third(after(tokens, 0)));
  CHECK(third(after(tokens, 0)));
  CHECK_FALSE(copy(after(tokens, 0)));
}

TEST_CASE("any part stops, all parts are asked, the first one's reason counts", "[generate][stopping]") {
  int asked = 0;
  const auto count = [&](const step_context&) { return ++asked, false; };
  decant::stop_any any(decant::stop_tokens{{5}}, decant::max_new_tokens{2}, count);
  CHECK_FALSE(any(after({1, 2}, 1)));
  CHECK(any.why() == finish_reason::none);
  CHECK(any(after({1, 2, 3}, 1)));
  CHECK(any.why() == finish_reason::length);
  CHECK(any(after({1, 2, 5}, 1)));
  CHECK(any.why() == finish_reason::stop_token);
  CHECK_FALSE(any(after({1, 2}, 1)));
  CHECK(any.why() == finish_reason::none);
  CHECK(asked == 4);
  CHECK_FALSE(decant::stop_any<>()(after({1}, 0)));
}

TEST_CASE("all parts stop together, all are asked, the last one's reason counts", "[generate][stopping]") {
  int asked = 0;
  const auto count = [&](const step_context&) { return ++asked, true; };
  decant::stop_all all(count, decant::max_new_tokens{2}, decant::stop_tokens{{5}});
  CHECK_FALSE(all(after({5}, 0)));
  CHECK_FALSE(all(after({5, 4}, 0)));
  CHECK(all(after({4, 5}, 0)));
  CHECK(all.why() == finish_reason::stop_token);
  CHECK(asked == 3);
}

TEST_CASE("criteria nest, and the reason comes from the depth", "[generate][stopping]") {
  decant::stop_any outer(decant::stop_all(decant::max_new_tokens{1}, decant::stop_sequence{{3, 4}}),
                         decant::stop_when([](const step_context& c) { return c.tokens.size() > 9; }));
  any_criterion erased = outer;
  CHECK_FALSE(erased(after({4, 3}, 0)));
  CHECK(erased(after({3, 4}, 0)));
  CHECK(erased.why() == finish_reason::stop_sequence);
  CHECK(erased(after(ids(10, 0), 0)));
  CHECK(erased.why() == finish_reason::criterion);
}

TEST_CASE("an erased criterion: none never stops, a lambda is a criterion, copies fork", "[generate][stopping]") {
  STATIC_REQUIRE(std::copyable<any_criterion>);
  any_criterion none;
  CHECK_FALSE(none(after({1}, 0)));
  CHECK(none.why() == finish_reason::none);
  none.start();
  any_criterion second = [count = 0](const step_context&) mutable { return ++count == 2; };
  CHECK_FALSE(second(after({1}, 0)));
  any_criterion fork = second;
  CHECK(second(after({1}, 0)));
  CHECK(second.why() == finish_reason::criterion);
  CHECK(fork(after({1}, 0)));
  fork = none;
  CHECK_FALSE(fork(after({1}, 0)));
  none = second;
  CHECK_FALSE(none(after({1}, 0)));
  any_criterion moved = std::move(second);
  CHECK_FALSE(moved(after({1}, 0)));
}

TEST_CASE("a time budget ends, and one that is long does not", "[generate][stopping]") {
  using namespace std::chrono_literals;
  decant::time_budget none(0ns), hour(1h);
  CHECK(none(after({1}, 0)));
  CHECK_FALSE(hour(after({1}, 0)));
  decant::stop_any either(decant::time_budget(1h), decant::time_budget(0ns));
  either.start();
  CHECK(either(after({1}, 0)));
  CHECK(either.why() == finish_reason::time);
  any_criterion erased = decant::stop_all(decant::time_budget(0ns));
  erased.start();
  CHECK(erased(after({1}, 0)));
}

}  // namespace stopping_test
