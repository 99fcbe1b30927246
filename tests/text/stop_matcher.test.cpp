// SPDX-License-Identifier: MIT
#include <decant/text/stop_matcher.hpp>

#include "support/catch.hpp"
#include "text/naive.hpp"

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stop_matcher_tests {

using decant::stop_matcher;
using strings = std::vector<std::string>;

namespace {

struct outcome {
  std::string text;
  std::optional<std::size_t> matched;

  bool operator==(const outcome&) const = default;

  friend std::ostream& operator<<(std::ostream& out, const outcome& one) {
    return out << '"' << one.text << "\", " << (one.matched ? std::to_string(*one.matched) : "no match");
  }
};

outcome run(stop_matcher matcher, const strings& pieces) {
  outcome all;
  for (const std::string& piece : pieces) all.matched = matcher.push(piece, all.text);
  matcher.flush(all.text);
  return all;
}

outcome expected(const std::string& text, const strings& stops, bool include_stop = false) {
  const auto match = naive::first_match(text, stops);
  if (!match) return {text, std::nullopt};
  return {text.substr(0, include_stop ? match->end : match->begin), match->index};
}

/// All texts of `length` letters from an alphabet of `letters`, starting at 'a'.
strings all_texts(std::size_t length, std::size_t letters) {
  strings texts{""};
  for (std::size_t i = 0; i < length; ++i) {
    strings longer;
    for (const std::string& text : texts) {
      for (std::size_t letter = 0; letter < letters; ++letter) longer.push_back(text + static_cast<char>('a' + letter));
    }
    texts = std::move(longer);
  }
  return texts;
}

strings letters_of(const std::string& text) {
  strings letters;
  for (const char letter : text) letters.emplace_back(1, letter);
  return letters;
}

}  // namespace

TEST_CASE("a stop string over three pieces is not shown, the text before it is", "[text]") {
  stop_matcher matcher({"own fox"});
  auto now = matcher.push("br");
  CHECK(now.text == "br");
  CHECK_FALSE(now.matched);
  now = matcher.push("own");
  CHECK(now.text.empty());
  CHECK(matcher.held() == "own");
  now = matcher.push(" fox");
  CHECK(now.text.empty());
  CHECK(now.matched == 0U);
  CHECK(matcher.held().empty());
  CHECK(matcher.flush().empty());
}

TEST_CASE("a stop string inside one piece cuts it", "[text]") {
  stop_matcher matcher({"STOP"});
  const auto now = matcher.push("xSTOPy");
  CHECK(now.text == "x");
  CHECK(now.matched == 0U);
}

TEST_CASE("a stop string that ends inside a piece cuts before its first byte", "[text]") {
  // One step of speculation yields "ST", "OP", "x": what follows the stop string is not shown.
  stop_matcher matcher({"STOP"});
  CHECK(matcher.push("say ST").text == "say ");
  const auto now = matcher.push("OPx");
  CHECK(now.text.empty());
  CHECK(now.matched == 0U);
  CHECK(matcher.push("x").text.empty());
}

TEST_CASE("held text is set free as soon as it cannot begin a stop string", "[text]") {
  stop_matcher matcher({"stop"});
  CHECK(matcher.push("s").text.empty());
  CHECK(matcher.push("t").text.empty());
  CHECK(matcher.push("a").text == "sta");
  CHECK(matcher.push("sto").text.empty());
  CHECK(matcher.push("s").text == "sto");
  CHECK(matcher.held() == "s");
  CHECK(matcher.push("").text.empty());
  CHECK(matcher.push("ss").text == "ss");
  CHECK(matcher.flush() == "s");
}

TEST_CASE("flush gives back what is held, once, and no match", "[text]") {
  stop_matcher matcher({"stop"});
  CHECK(matcher.push("no sto").text == "no ");
  CHECK(matcher.flush() == "sto");
  CHECK(matcher.flush().empty());
  CHECK_FALSE(matcher.matched());
  // What flush gave away is not part of a match any more.
  CHECK(matcher.push("p").text == "p");
  CHECK(matcher.push("stop").matched == 0U);
}

TEST_CASE("after a match nothing comes out any more, and the match stays", "[text]") {
  stop_matcher matcher({"a", "b"});
  CHECK(matcher.push("xb").matched == 1U);
  const auto now = matcher.push("more a");
  CHECK(now.text.empty());
  CHECK(now.matched == 1U);
  CHECK(matcher.matched() == 1U);
  CHECK(matcher.flush().empty());
  CHECK(matcher.matched() == 1U);
}

TEST_CASE("stop strings that overlap themselves and each other", "[text]") {
  CHECK(run(stop_matcher({"aab"}), {"aaab"}) == outcome{"a", 0});
  CHECK(run(stop_matcher({"aab"}), {"a", "a", "a", "b"}) == outcome{"a", 0});
  CHECK(run(stop_matcher({"aab"}), {"aa", "aa", "a"}) == outcome{"aaaaa", std::nullopt});
  CHECK(run(stop_matcher({"abab"}), {"aba", "abab"}) == outcome{"aba", 0});
  CHECK(run(stop_matcher({"ababac"}), {"abab", "abac"}) == outcome{"ab", 0});
  CHECK(run(stop_matcher({"aa"}), {"xa", "aa"}) == outcome{"x", 0});
}

TEST_CASE("of stop strings that end at the same byte the longest wins", "[text]") {
  CHECK(run(stop_matcher({"ab", "bab"}), {"bab"}) == outcome{"", 1});
  CHECK(run(stop_matcher({"bab", "ab"}), {"babab"}) == outcome{"", 0});
  CHECK(run(stop_matcher({"ab", "bab"}), {"aab"}) == outcome{"a", 0});
  CHECK(run(stop_matcher({"ab", "bab"}), {"b", "ab"}) == outcome{"", 1});
}

TEST_CASE("the match that ends first wins, also inside a longer stop string", "[text]") {
  CHECK(run(stop_matcher({"abcd", "bc"}), {"abcd"}) == outcome{"a", 1});
  CHECK(run(stop_matcher({"abcd", "bc"}), {"ab", "cd"}) == outcome{"a", 1});
  CHECK(run(stop_matcher({"abcd", "bc"}), {"abx"}) == outcome{"abx", std::nullopt});
  CHECK(run(stop_matcher({"stop", "stopped"}), {"x stopped"}) == outcome{"x ", 0});
  CHECK(run(stop_matcher({"stopped", "stop"}), {"x stopped"}) == outcome{"x ", 1});
  CHECK(run(stop_matcher({"abcde", "c"}), {"abcde"}) == outcome{"ab", 1});
  CHECK(run(stop_matcher({"xabcy", "abcz", "bcq"}), {"xa", "bc", "q"}) == outcome{"xa", 2});
}

TEST_CASE("of equal stop strings the lowest index is reported", "[text]") {
  CHECK(run(stop_matcher({"x", "end", "end", "x"}), {"the end"}) == outcome{"the ", 1});
  CHECK(run(stop_matcher({"x", "end", "end", "x"}), {"x"}) == outcome{"", 0});
}

TEST_CASE("stop strings may be any bytes", "[text]") {
  const std::string nul(1, '\0');
  CHECK(run(stop_matcher({nul}), {"a" + nul + "b"}) == outcome{"a", 0});
  CHECK(run(stop_matcher({"\xFF\x80"}), {"a\xFF", "\xFF\x80z"}) == outcome{"a\xFF", 0});
  CHECK(run(stop_matcher({"\x7F", "\x80"}), {"\x81\x80"}) == outcome{"\x81", 1});
  CHECK(run(stop_matcher({"\n\n"}), {"a", "\n", "b\n", "\nc"}) == outcome{"a\nb", 0});
  strings bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  const stop_matcher every(bytes);
  for (std::size_t byte = 0; byte < 256; ++byte) CHECK(run(every, {bytes[byte]}) == outcome{"", byte});
}

TEST_CASE("without stop strings everything passes", "[text]") {
  stop_matcher matcher;
  CHECK(matcher.push("any").text == "any");
  CHECK(matcher.push("").text.empty());
  CHECK(matcher.held().empty());
  CHECK(matcher.stop_strings().empty());
  CHECK(run(stop_matcher(strings{}), {"any", "thing"}) == outcome{"anything", std::nullopt});
}

TEST_CASE("include_stop emits the stop string too, and nothing after it", "[text]") {
  const decant::stop_options include{.include_stop = true};
  CHECK(run(stop_matcher({"own fox"}, include), {"br", "own", " fox jumps"}) == outcome{"brown fox", 0});
  CHECK(run(stop_matcher({"STOP"}, include), {"xSTOPy"}) == outcome{"xSTOP", 0});
  CHECK(run(stop_matcher({"abcd", "bc"}, include), {"abcd"}) == outcome{"abc", 1});
  CHECK(run(stop_matcher({"stop"}, include), {"st", "o"}) == outcome{"sto", std::nullopt});
  stop_matcher matcher({"stop"}, include);
  CHECK(matcher.options().include_stop);
  CHECK(matcher.push("st").text.empty());
  CHECK(matcher.push("op!").text == "stop");
  CHECK(matcher.push("!").text.empty());
}

TEST_CASE("a copy of a matcher is a fork, and assigning it back is a rollback", "[text]") {
  stop_matcher matcher({"stop", "sting"});
  CHECK(matcher.push("a st").text == "a ");
  const stop_matcher snapshot = matcher;
  stop_matcher fork = matcher;
  CHECK(matcher.push("op").matched == 0U);
  CHECK(fork.held() == "st");
  CHECK(fork.push("ing").matched == 1U);
  matcher = snapshot;
  CHECK_FALSE(matcher.matched());
  CHECK(matcher.push("and").text == "stand");
  // A moved-from matcher is still whole.
  stop_matcher moved = std::move(fork);
  CHECK(moved.matched() == 1U);
  fork.reset();
  CHECK(fork.push("stop").matched == 0U);
}

TEST_CASE("reset forgets the text and the match, not the stop strings", "[text]") {
  stop_matcher matcher({"stop"});
  CHECK(matcher.push("st").text.empty());
  matcher.reset();
  CHECK(matcher.flush().empty());
  CHECK(matcher.push("op").text == "op");
  CHECK(matcher.push("stop").matched == 0U);
  matcher.reset();
  CHECK_FALSE(matcher.matched());
  CHECK(matcher.push("again stop").text == "again ");
  REQUIRE(matcher.stop_strings().size() == 1);
  CHECK(matcher.stop_strings()[0] == "stop");
}

TEST_CASE("a sink gets the held part and the new part, never an empty one", "[text]") {
  stop_matcher matcher({"stop"});
  strings parts;
  const auto sink = [&parts](std::string_view part) { parts.emplace_back(part); };
  CHECK_FALSE(matcher.push("st", sink));
  CHECK(parts.empty());
  CHECK_FALSE(matcher.push("ay st", sink));
  CHECK(parts == strings{"st", "ay "});
  CHECK_FALSE(matcher.push("st", sink));
  CHECK(parts == strings{"st", "ay ", "st"});
  matcher.flush(sink);
  matcher.flush(sink);
  CHECK(parts == strings{"st", "ay ", "st", "st"});
}

TEST_CASE("an empty stop string is a parameter error", "[text]") {
  CHECK_THROWS_AS(stop_matcher({"ok", ""}), decant::parameter_error);
  std::string message;
  try {
    stop_matcher matcher({""});
  } catch (const decant::parameter_error& fault) {
    message = fault.what();
  }
  CHECK(message.find("stop_matcher") != std::string::npos);
  CHECK(message.find("size of a stop string = 0") != std::string::npos);
  CHECK(message.find("at least 1 byte") != std::string::npos);

  const auto bad = stop_matcher::make({"", "ok"});
  REQUIRE_FALSE(bad);
  CHECK(bad.error().code == decant::error_code::bad_parameter);
  CHECK(bad.error().text() == message);

  auto good = stop_matcher::make({"ok"}, {.include_stop = true});
  REQUIRE(good);
  CHECK(good->push("is ok.").text == "is ok");
}

TEST_CASE("every text of eight letters against every pair of short stop strings", "[text]") {
  strings words;
  for (const std::size_t length : {1U, 2U, 3U}) {
    for (const std::string& word : all_texts(length, 2)) words.push_back(word);
  }
  for (const std::string word : {"aaab", "abab", "abba", "babab"}) words.push_back(word);
  const strings texts = all_texts(8, 2);
  std::size_t wrong = 0;
  for (const std::string& first : words) {
    for (const std::string& second : words) {
      const strings stops{first, second};
      const stop_matcher matcher(stops);
      for (const std::string& text : texts) {
        if (run(matcher, {text}) != expected(text, stops)) ++wrong;
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("after every byte exactly the longest beginning of a stop string is held", "[text]") {
  const std::vector<strings> sets = {{"aab"}, {"ab", "bab"}, {"abcd", "bc"}, {"abcab", "cabb", "bcc"}, {"aaaa", "aab"}};
  std::size_t wrong = 0;
  for (const strings& stops : sets) {
    for (const std::string& text : all_texts(7, 3)) {
      stop_matcher matcher(stops);
      std::string seen;
      std::string out;
      for (const std::string& letter : letters_of(text)) {
        seen += letter;
        if (matcher.push(letter, out)) break;
        const std::size_t held = naive::held(seen, stops);
        if (out != seen.substr(0, seen.size() - held) || matcher.held() != seen.substr(seen.size() - held)) ++wrong;
      }
      if (matcher.matched() && naive::first_match(seen, stops)->end != seen.size()) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("random text in random pieces gives the same text and match as the naive search", "[text]") {
  naive::numbers random(2);
  int matches = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::string text = naive::any_text(1 + random.below(40), random);
    strings stops;
    const std::size_t count = random.below(5);
    for (std::size_t i = 0; i < count; ++i) {
      // Half are cut from the text, also through characters, so that there are matches.
      const std::string source = random.below(2) == 0 ? text : naive::any_text(3, random);
      const std::size_t begin = random.below(source.size());
      stops.push_back(source.substr(begin, 1 + random.below(8)));
    }
    const bool include = random.below(2) == 0;
    const outcome wanted = expected(text, stops, include);
    const stop_matcher matcher(stops, {.include_stop = include});
    const outcome whole = run(matcher, {text});
    const outcome split = run(matcher, naive::pieces_of(text, random));
    if (wanted.matched) ++matches;
    if (whole == wanted && split == wanted) continue;
    INFO(round);
    CHECK(whole == wanted);
    CHECK(split == wanted);
  }
  CHECK(matches > 500);
  CHECK(matches < 2500);
}

TEST_CASE("the first token with a match is the first for which the Hugging Face rule holds", "[text]") {
  // That rule looks at all tokens so far: some stop string ends inside the last token.
  const strings tokens = {"a",    "b",    "c", "ab",   "bc", "abc", "st", "op",
                          "stop", "top!", " ", "\n\n", "s",  "to",  "p",  "xst"};
  const std::vector<strings> sets = {{"stop"}, {"a"}, {"ab", "c"}, {"abc"}, {"bcb"}, {"\n\n"}, {"op"}, {"bb"}, {"cab"}};
  const auto rule = [](const std::string& text, std::size_t last_token, const strings& stops) {
    for (const std::string& stop : stops) {
      for (std::size_t end = text.size() - last_token + 1; end <= text.size(); ++end) {
        if (std::string_view(text).substr(0, end).ends_with(stop)) return true;
      }
    }
    return false;
  };
  std::size_t wrong = 0;
  for (const strings& stops : sets) {
    const stop_matcher fresh(stops);
    for (std::size_t i = 0; i < tokens.size() * tokens.size() * tokens.size(); ++i) {
      stop_matcher matcher = fresh;
      std::string text;
      std::size_t rest = i;
      for (int n = 0; n < 3 && !matcher.matched(); ++n) {
        const std::string& token = tokens[rest % tokens.size()];
        rest /= tokens.size();
        text += token;
        const bool stopped = matcher.push(token).matched.has_value();
        if (stopped != rule(text, token.size(), stops)) ++wrong;
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("many and long stop strings", "[text]") {
  strings stops;
  for (int i = 0; i < 3000; ++i) stops.push_back(std::string("<").append(std::to_string(i * 7919 % 3000)).append(">"));
  const stop_matcher many(stops);
  for (const int i : {0, 1, 1499, 2999}) {
    const auto index = static_cast<std::size_t>(i);
    CHECK(run(many, {"go ", stops[index].substr(0, 2), stops[index].substr(2) + "x"}) == outcome{"go ", index});
  }
  CHECK(run(many, {"<<3000>", "<12"}) == outcome{"<<3000><12", std::nullopt});

  // Quadratic work would show here: a suffix of the text always is nearly the whole stop string.
  const std::string long_run(200000, 'a');
  stop_matcher one({long_run + "b"});
  std::size_t emitted = 0;
  for (int i = 0; i < 4; ++i) emitted += one.push(long_run).text.size();
  CHECK(emitted == 600000);
  CHECK(one.push("b").matched == 0U);
  CHECK(run(stop_matcher({std::string(50000, 'a') + "b"}), {long_run + "c"}) == outcome{long_run + "c", std::nullopt});
}

}  // namespace stop_matcher_tests
