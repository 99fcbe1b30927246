// SPDX-License-Identifier: MIT
#include <decant/generate/token_stream.hpp>

#include "generate/models.hpp"
#include "support/catch.hpp"

#include <cstddef>
#include <iterator>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace token_stream_test {

using namespace generate_models;
using decant::finish_reason;
using decant::generate_options;
using decant::greedy;
using decant::token_event;
using decant::token_stream;
using decant::top_k;
using ids = std::vector<token_id>;

using stream_type = token_stream<markov, decant::decoder<top_k, greedy>>;
static_assert(std::input_iterator<stream_type::iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, stream_type::iterator>);
static_assert(std::ranges::input_range<stream_type>);

const auto best = top_k(0) | greedy{};

TEST_CASE("a stream gives one event a token, the last with the reason", "[generate][token_stream]") {
  markov model = cycle(5);
  const ids prompt{2};
  token_stream stream(model, prompt, best, {.max_new_tokens = 4, .bytes = letter, .seed = 1});
  ids tokens;
  std::string text;
  std::vector<finish_reason> reasons;
  for (const token_event& event : stream) {
    CHECK(event.index == tokens.size());
    tokens.push_back(event.token);
    text += event.text;
    reasons.push_back(event.finish);
  }
  CHECK(tokens == ids{3, 4, 0, 1});
  CHECK(text == "deab");
  CHECK(reasons == std::vector<finish_reason>{finish_reason::none, finish_reason::none, finish_reason::none,
                                              finish_reason::length});
  CHECK(stream.result().tokens == tokens);
  CHECK(stream.result().text == text);
  CHECK(stream.result().finish == finish_reason::length);
  CHECK(ids(stream.tokens().begin(), stream.tokens().end()) == ids{2, 3, 4, 0, 1});
  CHECK(stream.next() == nullptr);
  CHECK(stream.next() == nullptr);
}

TEST_CASE("range, next and callback tell the same story", "[generate][token_stream]") {
  struct told {
    token_id token;
    std::string text;
    std::size_t index;
    finish_reason finish;
    bool operator==(const told&) const = default;
  };
  const auto tell = [](const token_event& e) { return told{e.token, std::string(e.text), e.index, e.finish}; };
  const ids prompt{1, 2, 3};
  const generate_options options{.max_new_tokens = 30, .stop_strings = {"zz", "ab"}, .bytes = letter, .seed = 9};
  std::vector<told> by_range, by_next, by_callback;
  {
    auto model = scrambled_model();
    token_stream stream(model, prompt, sampling(), options);
    for (const token_event& event : stream) by_range.push_back(tell(event));
  }
  {
    auto model = scrambled_model();
    token_stream stream(model, prompt, sampling(), options);
    while (const token_event* event = stream.next()) by_next.push_back(tell(*event));
  }
  {
    auto model = scrambled_model();
    auto with_callback = options;
    with_callback.on_token = [&](const token_event& event) { by_callback.push_back(tell(event)); };
    token_stream stream(model, prompt, sampling(), with_callback);
    while (stream.next() != nullptr) {
    }
  }
  CHECK(by_range.size() >= 2);
  CHECK(by_range == by_next);
  CHECK(by_range == by_callback);
}

TEST_CASE("leaving the loop early leaves a result as far as it got; it can be taken up again",
          "[generate][token_stream]") {
  markov model = cycle(5);
  const ids prompt{0};
  token_stream stream(model, prompt, best, {.max_new_tokens = 10, .seed = 1});
  for (const token_event& event : stream) {
    if (event.index == 2) break;
  }
  CHECK(stream.result().tokens == ids{1, 2, 3});
  CHECK(stream.result().finish == finish_reason::none);
  CHECK(stream.next()->token == 4);
  stream.cancel();
  CHECK(stream.result().finish == finish_reason::cancelled);
  CHECK(stream.next() == nullptr);
  CHECK(stream.result().tokens.size() == 4);
  stream.cancel();
  CHECK(stream.result().finish == finish_reason::cancelled);
}

TEST_CASE("cancelling after the end does not change the reason", "[generate][token_stream]") {
  markov model = cycle(5);
  const ids prompt{0};
  token_stream stream(model, prompt, best,
                      {.max_new_tokens = 1, .on_token = [](const token_event&) { return false; }, .seed = 1});
  REQUIRE(stream.next() != nullptr);
  CHECK(stream.result().finish == finish_reason::length);
  stream.cancel();
  CHECK(stream.result().finish == finish_reason::length);
}

TEST_CASE("each position is given to the model once", "[generate][token_stream]") {
  markov model = cycle(5);
  const ids prompt{0, 1, 2};
  token_stream stream(model, prompt, best, {.max_new_tokens = 10, .seed = 1});
  std::size_t events = 0;
  while (stream.next() != nullptr) {
    ++events;
    CHECK(stream.tokens().size() == 3 + events);  // grows by exactly what is drawn
    CHECK(model.size() == 2 + events);            // the newest has not been needed yet
    CHECK(model.evaluated == 2 + events);
    CHECK(model.calls == events);
  }
  CHECK(events == 10);
  CHECK(model.held() == ids(stream.tokens().begin(), stream.tokens().end() - 1));
}

TEST_CASE("a prompt that the model holds already is given to it from its last token on", "[generate][token_stream]") {
  markov model = cycle(5);
  const ids prompt{0, 1, 2};
  (void)model.evaluate(prompt);
  token_stream stream(model, prompt, best, {.max_new_tokens = 2, .seed = 1, .cached = prompt.size()});
  REQUIRE(stream.next() != nullptr);
  CHECK(model.evaluated == prompt.size() + 1);
  REQUIRE(stream.next() != nullptr);
  CHECK(stream.result().tokens == ids{3, 4});
}

TEST_CASE("a stream ends with the token that fills its context", "[generate][token_stream]") {
  markov model = cycle(5);
  const ids prompt{0, 1};
  token_stream stream(model, prompt, best, {.context_length = 4, .seed = 1});
  REQUIRE(stream.next() != nullptr);
  const token_event* last = stream.next();
  REQUIRE(last != nullptr);
  CHECK(last->finish == finish_reason::context_full);
  CHECK(stream.next() == nullptr);
  CHECK(stream.result().tokens == ids{2, 3});
}

TEST_CASE("the caller's decoder does not change", "[generate][token_stream]") {
  auto counting = top_k(0) | [count = 0](decant::candidates&, const decant::step_context&) mutable -> token_id {
    return count++ % 3;
  };
  const ids prompt{0};
  for (int run = 0; run < 2; ++run) {
    auto model = scrambled_model();
    token_stream stream(model, prompt, counting, {.max_new_tokens = 4, .seed = 1});
    while (stream.next() != nullptr) {
    }
    CHECK(stream.result().tokens == ids{0, 1, 2, 0});
  }
}

TEST_CASE("an empty prompt, and stop strings without bytes, are misuse", "[generate][token_stream]") {
  markov model = cycle(3);
  const ids prompt{0}, empty;
  using stream = token_stream<markov, decant::decoder<top_k, greedy>>;
  CHECK_THROWS_AS(stream(model, empty, best), assertion_error);
  CHECK_THROWS_AS(stream(model, prompt, best, {.stop_strings = {"x"}}), assertion_error);
}

TEST_CASE("an empty stop string is an error of its own", "[generate][token_stream]") {
  markov model = cycle(3);
  const ids prompt{0};
  using stream = token_stream<markov, decant::decoder<top_k, greedy>>;
  CHECK_THROWS_AS(stream(model, prompt, best, {.stop_strings = {""}, .bytes = letter}), decant::parameter_error);
}

TEST_CASE("a stop string over tokens shows nothing of itself (vllm#3574)", "[generate][token_stream]") {
  const std::vector<std::string> pieces{"<s>", "br", "own", " fox", " jumps", "xSTOPy"};
  const auto bytes = [&](token_id id) { return std::string_view(pieces[static_cast<std::size_t>(id)]); };
  const auto run = [&](token_id from, std::vector<std::string> stops, std::size_t count) {
    markov model = cycle(6);
    const ids prompt{from};
    std::vector<std::string> shown;
    token_stream stream(model, prompt, best,
                        {.max_new_tokens = count, .stop_strings = stops, .bytes = bytes, .seed = 1});
    for (const token_event& event : stream) shown.emplace_back(event.text);
    return std::pair(shown, stream.result());
  };
  const auto [shown, result] = run(0, {"never", "own fox"}, 10);
  CHECK(shown == std::vector<std::string>{"br", "", ""});
  CHECK(result.text == "br");
  CHECK(result.finish == finish_reason::stop_string);
  CHECK(result.stop_string == 1U);
  CHECK(result.tokens == ids{1, 2, 3});
  const auto [inside, inside_result] = run(4, {"STOP"}, 10);
  CHECK(inside == std::vector<std::string>{"x"});
  CHECK(inside_result.text == "x");
  // Held back, then set free by what follows or by the end.
  const auto [freed, freed_result] = run(0, {"own cat"}, 3);
  CHECK(freed == std::vector<std::string>{"br", "", "own fox"});
  CHECK(freed_result.text == "brown fox");
  const auto [flushed, flushed_result] = run(0, {"own cat"}, 2);
  CHECK(flushed == std::vector<std::string>{"br", "own"});
  CHECK(flushed_result.text == "brown");
  CHECK(flushed_result.finish == finish_reason::length);
  CHECK_FALSE(flushed_result.stop_string);
}

TEST_CASE("characters that tokens split come out whole (ferrox#124)", "[generate][token_stream]") {
  const std::vector<std::string> pieces{"<s>", "\xF0", "\x9F\x98", "\x80", "\xC4", "a"};
  const auto bytes = [&](token_id id) { return std::string_view(pieces[static_cast<std::size_t>(id)]); };
  markov model = cycle(6);
  const ids prompt{0};
  std::vector<std::string> shown;
  token_stream stream(model, prompt, best, {.max_new_tokens = 5, .bytes = bytes, .seed = 1});
  for (const token_event& event : stream) shown.emplace_back(event.text);
  CHECK(shown == std::vector<std::string>{"", "", "\xF0\x9F\x98\x80", "",
                                          "\xEF\xBF\xBD"
                                          "a"});
  CHECK(stream.result().text ==
        "\xF0\x9F\x98\x80\xEF\xBF\xBD"
        "a");
  markov again = cycle(6);
  token_stream cut(again, prompt, best, {.max_new_tokens = 2, .bytes = bytes, .seed = 1});
  shown.clear();
  for (const token_event& event : cut) shown.emplace_back(event.text);
  CHECK(shown == std::vector<std::string>{"", "\xEF\xBF\xBD"});
}

TEST_CASE("cancelling gives the held text to the result", "[generate][token_stream]") {
  markov model = cycle(5);
  const ids prompt{0};
  token_stream stream(model, prompt, best,
                      {.max_new_tokens = 9,
                       .stop_strings = {"bcx"},
                       .bytes = letter,
                       .on_token = [](const token_event& e) { return e.index < 1; },
                       .seed = 1});
  std::size_t events = 0;
  for (const token_event& event : stream) {
    CHECK(event.text.empty());
    ++events;
  }
  CHECK(events == 2);
  CHECK(stream.result().text == "bc");
  CHECK(stream.result().finish == finish_reason::cancelled);
}

TEST_CASE("a cancelled stream's last event says that it is the last", "[generate][token_stream]") {
  markov model = cycle(5);
  const ids prompt{0};
  token_stream stream(model, prompt, best,
                      {.max_new_tokens = 9, .on_token = [](const token_event& e) { return e.index < 1; }, .seed = 1});
  finish_reason last = finish_reason::none;
  for (const token_event& event : stream) last = event.finish;
  CHECK(last == finish_reason::cancelled);
}

}  // namespace token_stream_test
