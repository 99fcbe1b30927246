// SPDX-License-Identifier: MIT
#include <decant/text/detokenizer.hpp>

#include "support/catch.hpp"
#include "text/naive.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace detokenizer_tests {

using decant::detokenizer;
using decant::stop_matcher;
using decant::token_id;
using strings = std::vector<std::string>;

namespace {

const std::string fffd = "\xEF\xBF\xBD";
const std::string grin = "\xF0\x9F\x98\x80";

/// Token i stands for pieces[i].
auto bytes_of(const strings& pieces) {
  return [&pieces](token_id token) -> std::string_view { return pieces[static_cast<std::size_t>(token)]; };
}

struct outcome {
  std::string text;
  std::string flushed;
  std::optional<std::size_t> matched;

  bool operator==(const outcome&) const = default;

  friend std::ostream& operator<<(std::ostream& out, const outcome& one) {
    return out << '"' << one.text << "\", \"" << one.flushed << "\", "
               << (one.matched ? std::to_string(*one.matched) : "no match");
  }
};

/// Tokens 0, 1, ... in order.
outcome run(const strings& pieces, const stop_matcher& stops = {}) {
  detokenizer words(bytes_of(pieces), stops);
  outcome all;
  for (std::size_t i = 0; i < pieces.size(); ++i) all.matched = words.push(static_cast<token_id>(i), all.text);
  words.flush(all.flushed);
  return all;
}

}  // namespace

TEST_CASE("tokens that split a character give it whole", "[text]") {
  const strings pieces = {"hi ", "\xF0", "\x9F\x98", "\x80!"};
  detokenizer words(bytes_of(pieces));
  CHECK(words.push(0).text == "hi ");
  CHECK(words.push(1).text.empty());
  CHECK(words.push(2).text.empty());
  const auto now = words.push(3);
  CHECK(now.text == grin + "!");
  CHECK_FALSE(now.matched);
  CHECK(words.flush().empty());
}

TEST_CASE("a stop string over tokens ends the text before it", "[text]") {
  const strings pieces = {"br", "own", " fox", " jumps"};
  detokenizer words(bytes_of(pieces), stop_matcher({"own fox"}));
  CHECK(words.push(0).text == "br");
  CHECK(words.push(1).text.empty());
  CHECK(words.push(2).matched == 0U);
  const auto now = words.push(3);
  CHECK(now.text.empty());
  CHECK(now.matched == 0U);
  CHECK(words.matched() == 0U);
  CHECK(words.flush().empty());
}

TEST_CASE("a stop string of characters split over tokens is found", "[text]") {
  CHECK(run({"a\xF0\x9F", "\x98", "\x80!"}, stop_matcher({grin})) == outcome{"a", "", 0});
  // Another character with the same beginning is set free whole.
  CHECK(run({"a\xF0\x9F", "\x98", "\x81!"}, stop_matcher({grin})) == outcome{"a\xF0\x9F\x98\x81!", "", {}});
}

TEST_CASE("held text and a held character both come out at the end", "[text]") {
  CHECK(run({"a st"}, stop_matcher({"stop"})) == outcome{"a ", "st", {}});
  CHECK(run({"a\xF0\x9F"}, stop_matcher({"stop"})) == outcome{"a", fffd, {}});
  CHECK(run({"a\xF0\x9F"}, stop_matcher({"x", grin})) == outcome{"a", fffd, {}});
  CHECK(run({"\xF0\x9F", "st"}, stop_matcher({"stop"})) == outcome{"", fffd + "st", {}});
}

TEST_CASE("a stop string that is valid UTF-8 leaves nothing held after whole characters", "[text]") {
  const strings pieces = {grin, "\xED\x95\x9C", "STOP", "\xF0"};
  detokenizer words(bytes_of(pieces), stop_matcher({"STOP"}));
  CHECK(words.push(0).text == grin);
  CHECK(words.push(1).text == "\xED\x95\x9C");
  CHECK(words.push(2).matched == 0U);
  CHECK(words.flush().empty());
}

TEST_CASE("an incomplete character before a stop string is replaced at the flush", "[text]") {
  CHECK(run({"a\xC4", "STOP"}, stop_matcher({"STOP"})) == outcome{"a", fffd, 0});
  CHECK(run({"a\xC4", "STOP"}, stop_matcher({"STOP"}, {.include_stop = true})) == outcome{"a" + fffd + "STOP", "", 0});
}

TEST_CASE("a stop string that cuts a character leaves its beginning, replaced at the flush", "[text]") {
  // The stop string begins inside the character ...
  CHECK(run({"a\xF0\x9F", "\x98\x80!"}, stop_matcher({"\x98\x80"})) == outcome{"a", fffd, 0});
  // ... or ends inside it, and is emitted with only a part of it.
  CHECK(run({"a" + grin}, stop_matcher({"a\xF0"}, {.include_stop = true})) == outcome{"a", fffd, 0});
  // Its last byte completes the character, when it is emitted.
  CHECK(run({"a" + grin + "b"}, stop_matcher({"\x80"}, {.include_stop = true})) == outcome{"a" + grin, "", 0});
}

TEST_CASE("stop strings are compared with the bytes, not with the replacement character", "[text]") {
  CHECK(run({"a\xFF", "b"}, stop_matcher({fffd})) == outcome{"a" + fffd + "b", "", {}});
  CHECK(run({"a" + fffd, "b"}, stop_matcher({fffd})) == outcome{"a", "", 0});
}

TEST_CASE("tokens without bytes change nothing", "[text]") {
  CHECK(run({"st", "", "op", ""}, stop_matcher({"stop"})) == outcome{"", "", 0});
  CHECK(run({"\xC3", "", "\xA9"}) == outcome{"\xC3\xA9", "", {}});
}

TEST_CASE("the bytes are not asked for after a match", "[text]") {
  int asked = 0;
  detokenizer words(
      [&asked](token_id) -> std::string_view {
        ++asked;
        return "x";
      },
      stop_matcher({"x"}));
  CHECK(words.push(0).matched == 0U);
  CHECK(words.push(0).matched == 0U);
  CHECK(asked == 1);
}

TEST_CASE("bytes returned by value live long enough", "[text]") {
  detokenizer words([](token_id token) { return std::string(100, static_cast<char>('a' + token)) + "\xC3"; });
  CHECK(words.push(0).text == std::string(100, 'a'));
  CHECK(words.push(1).text == fffd + std::string(100, 'b'));
  CHECK(words.flush() == fffd);
}

TEST_CASE("a copy of a detokenizer is a snapshot that can be assigned back", "[text]") {
  const strings pieces = {"a st", "op", "ay", "\xF0\x9F", "\x98\x80"};
  detokenizer words(bytes_of(pieces), stop_matcher({"stop"}));
  CHECK(words.push(0).text == "a ");
  const auto snapshot = words;
  CHECK(words.push(1).matched == 0U);
  words = snapshot;
  CHECK_FALSE(words.matched());
  CHECK(words.push(2).text == "stay");
  CHECK(words.push(3).text.empty());
  const auto half = words;
  CHECK(words.push(2).text == fffd + "ay");
  words = half;
  auto fork = words;
  CHECK(words.push(4).text == grin);
  CHECK(fork.flush() == fffd);
  auto& self = words;
  words = self;
  CHECK(words.push(2).text == "ay");
  words = std::move(fork);
  CHECK(words.push(2).text == "ay");
}

TEST_CASE("a snapshot that is assigned brings its function with it", "[text]") {
  const strings small = {"a"};
  const strings large = {"A"};
  detokenizer words(bytes_of(small));
  const detokenizer other(bytes_of(large));
  words = other;
  CHECK(words.push(0).text == "A");

  detokenizer<std::string_view (*)(token_id)> plain([](token_id) { return std::string_view("x"); });
  plain = detokenizer<std::string_view (*)(token_id)>([](token_id) { return std::string_view("y"); });
  CHECK(plain.push(0).text == "y");
}

TEST_CASE("a detokenizer can own bytes that cannot be copied", "[text]") {
  auto vocabulary = std::make_unique<strings>(strings{"one ", "two"});
  detokenizer words([vocabulary = std::move(vocabulary)](token_id token) -> std::string_view {
    return (*vocabulary)[static_cast<std::size_t>(token)];
  });
  CHECK(words.push(0).text == "one ");
  auto moved = std::move(words);
  CHECK(moved.push(1).text == "two");
}

TEST_CASE("reset of a detokenizer forgets text and match", "[text]") {
  const strings pieces = {"st", "op", "\xF0", "a"};
  detokenizer words(bytes_of(pieces), stop_matcher({"stop"}));
  CHECK(words.push(0).text.empty());
  CHECK(words.push(1).matched == 0U);
  words.reset();
  CHECK_FALSE(words.matched());
  CHECK(words.push(1).text == "op");
  CHECK(words.push(2).text.empty());
  words.reset();
  CHECK(words.push(3).text == "a");
}

TEST_CASE("random tokens give the decoded bytes up to the naive match, in whole characters", "[text]") {
  naive::numbers random(3);
  int matches = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::string text = naive::any_text(1 + random.below(40), random);
    strings stops;
    const std::size_t count = random.below(4);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string source = random.below(2) == 0 ? text : naive::any_text(3, random);
      stops.push_back(source.substr(random.below(source.size()), 1 + random.below(8)));
    }
    const bool include = random.below(2) == 0;
    const auto match = naive::first_match(text, stops);
    const std::string cut = match ? text.substr(0, include ? match->end : match->begin) : text;
    const strings pieces = naive::pieces_of(text, random);
    detokenizer words(bytes_of(pieces), stop_matcher(stops, {.include_stop = include}));
    std::string out;
    bool whole = true;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto now = words.push(static_cast<token_id>(i));
      whole = whole && naive::decoded(now.text) == now.text;
      out += now.text;
    }
    words.flush(out);
    if (match) ++matches;
    const auto index = match ? std::optional(match->index) : std::nullopt;
    if (whole && out == naive::decoded(cut) && words.matched() == index) continue;
    INFO(round);
    CHECK(whole);
    CHECK(out == naive::decoded(cut));
    CHECK(words.matched() == index);
  }
  CHECK(matches > 500);
  CHECK(matches < 2500);
}

}  // namespace detokenizer_tests
