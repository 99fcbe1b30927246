// SPDX-License-Identifier: MIT
#include <decant/text/utf8_stream.hpp>

#include "support/catch.hpp"
#include "text/naive.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace utf8_stream_tests {

namespace {

const std::string fffd = "\xEF\xBF\xBD";
const std::string grin = "\xF0\x9F\x98\x80";

/// The whole input in one push, and the end.
std::string whole(std::string_view bytes) {
  decant::utf8_stream stream;
  std::string out = stream.push(bytes);
  stream.flush(out);
  return out;
}

/// One byte a push, and the end.
void by_bytes(std::string_view bytes, std::string& out) {
  decant::utf8_stream stream;
  for (std::size_t i = 0; i < bytes.size(); ++i) stream.push(bytes.substr(i, 1), out);
  stream.flush(out);
}

std::string by_bytes(std::string_view bytes) {
  std::string out;
  by_bytes(bytes, out);
  return out;
}

}  // namespace

TEST_CASE("a character split over three pieces comes out with its last byte", "[text]") {
  decant::utf8_stream stream;
  CHECK(stream.push("\xF0").empty());
  CHECK(stream.pending() == "\xF0");
  CHECK(stream.push("\x9F\x98").empty());
  CHECK(stream.pending() == "\xF0\x9F\x98");
  CHECK(stream.push("\x80") == grin);
  CHECK(stream.pending().empty());
  CHECK(stream.flush().empty());
}

TEST_CASE("text before and after a split character is not held", "[text]") {
  decant::utf8_stream stream;
  CHECK(stream.push("abc\xED\x95") == "abc");
  CHECK(stream.push("\x9C, then") == "\xED\x95\x9C, then");
  CHECK(stream.push("").empty());
}

TEST_CASE("a lone lead byte becomes one replacement character when the next byte shows it", "[text]") {
  decant::utf8_stream stream;
  CHECK(stream.push("\xC4").empty());
  CHECK(stream.push("a") == fffd + "a");
  CHECK(stream.flush().empty());
}

TEST_CASE("an incomplete character at the end becomes one replacement character, once", "[text]") {
  for (const std::string tail : {"\xC4", "\xED\x95", "\xF0\x9F\x98", "\xF0\x9F", "\xE1"}) {
    decant::utf8_stream stream;
    CHECK(stream.push("x" + tail) == "x");
    CHECK(stream.flush() == fffd);
    CHECK(stream.flush().empty());
    CHECK(stream.push("\x80") == fffd);
  }
}

TEST_CASE("every maximal subpart of an ill-formed sequence becomes one replacement character", "[text]") {
  const auto times = [](int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += fffd;
    return out;
  };
  struct example {
    std::string_view bytes;
    std::string text;
  };
  const std::vector<example> examples = {
      {"\x80", times(1)},
      {"\x80\xBF", times(2)},
      {"\xFF\xFE", times(2)},
      {"\xC0\xAF", times(2)},                    // overlong '/'
      {"\xC1\xBF", times(2)},                    // overlong DEL
      {"\xE0\x9F\xBF", times(3)},                // overlong U+07FF
      {"\xE0\xA0\x80", "\xE0\xA0\x80"},          // U+0800
      {"\xF0\x8F\xBF\xBF", times(4)},            // overlong U+FFFF
      {"\xF0\x90\x80\x80", "\xF0\x90\x80\x80"},  // U+10000
      {"\xED\x9F\xBF", "\xED\x9F\xBF"},          // U+D7FF
      {"\xED\xA0\x80", times(3)},                // the first surrogate
      {"\xED\xBF\xBF", times(3)},                // the last one
      {"\xED\xA0\xBD\xED\xB8\x80", times(6)},    // a surrogate pair (CESU-8)
      {"\xEE\x80\x80", "\xEE\x80\x80"},          // U+E000
      {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},  // U+10FFFF
      {"\xF4\x90\x80\x80", times(4)},            // U+110000
      {"\xF5\x80\x80\x80", times(4)},
      {"\xF8\x88\x80\x80\x80", times(5)},                 // five bytes, as UTF-8 once had
      {"\xE2\x82(", times(1) + "("},                      // two good bytes are one subpart
      {"\xF0\x9F\x98(", times(1) + "("},                  // and three
      {"\xF0\x9F\x98\xF0\x9F\x98\x80", times(1) + grin},  // the byte that breaks one starts the next
      {"\xC4\xC4\xC4\x80", times(2) + "\xC4\x80"},
      {"\xE2\x82\xE2\x82\xAC", times(1) + "\xE2\x82\xAC"},
      {"w\xF1\x80\x80\xE1\x80\xC2x\x80y\x80\xBFz", "w" + times(3) + "x" + times(1) + "y" + times(2) + "z"},
      {"\xEF\xBF\xBD", "\xEF\xBF\xBD"},  // U+FFFD itself
      {"\xEF\xBB\xBF", "\xEF\xBB\xBF"},  // a byte order mark is a character like others
      {std::string_view("a\0b", 3), std::string("a\0b", 3)},
  };
  for (const example& one : examples) {
    INFO(one.text);
    CHECK(whole(one.bytes) == one.text);
    CHECK(by_bytes(one.bytes) == one.text);
    CHECK(naive::decoded(one.bytes) == one.text);
  }
}

TEST_CASE("every scalar value passes unchanged, whole and byte by byte", "[text]") {
  std::uint32_t wrong = 0;
  std::string out;
  for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    const std::string bytes = naive::encoded(point);
    decant::utf8_stream stream;
    out.clear();
    stream.push(bytes, out);
    if (out != bytes || !stream.pending().empty()) ++wrong;
    out.clear();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (!out.empty()) ++wrong;
      stream.push(std::string_view(bytes).substr(i, 1), out);
    }
    if (out != bytes) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("no surrogate and nothing above the last code point passes", "[text]") {
  std::uint32_t wrong = 0;
  for (std::uint32_t point = 0xD800; point <= 0xDFFF; ++point) {
    if (whole(naive::encoded(point)) != fffd + fffd + fffd) ++wrong;
  }
  for (std::uint32_t point = 0x110000; point <= 0x1FFFFF; point += 0xFFF) {
    if (whole(naive::encoded(point)) != fffd + fffd + fffd + fffd) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("every string of two bytes decodes as the reference does", "[text]") {
  std::uint32_t wrong = 0;
  for (unsigned a = 0; a < 256; ++a) {
    for (unsigned b = 0; b < 256; ++b) {
      const std::string bytes{static_cast<char>(a), static_cast<char>(b)};
      const std::string expected = naive::decoded(bytes);
      if (whole(bytes) != expected || by_bytes(bytes) != expected) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("every string of three bytes after each kind of lead decodes as the reference does", "[text]") {
  // One that starts with ASCII, or with a byte that starts nothing, is a string of two bytes after it. Of the leads the
  // first and last of each row of the table stand for those between them, or the test would take long unoptimised.
  std::uint32_t wrong = 0;
  std::string bytes(3, '\0');
  std::string expected;
  std::string out;
  for (const unsigned a : {0xC2U, 0xDFU, 0xE0U, 0xE1U, 0xECU, 0xEDU, 0xEEU, 0xEFU, 0xF0U, 0xF1U, 0xF3U, 0xF4U}) {
    bytes[0] = static_cast<char>(a);
    for (unsigned b = 0; b < 256; ++b) {
      bytes[1] = static_cast<char>(b);
      for (unsigned c = 0; c < 256; ++c) {
        bytes[2] = static_cast<char>(c);
        expected.clear();
        naive::decode(bytes, expected);
        out.clear();
        by_bytes(bytes, out);
        if (out != expected) ++wrong;
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("four bytes from the borders of all ranges decode as the reference does", "[text]") {
  const std::vector<unsigned> borders = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xDF, 0xE0,
                                         0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
  std::uint32_t wrong = 0;
  std::string bytes(4, '\0');
  std::string expected;
  std::string out;
  const std::size_t n = borders.size();
  for (std::size_t i = 0; i < n * n * n * n; ++i) {
    std::size_t rest = i;
    for (char& byte : bytes) {
      byte = static_cast<char>(borders[rest % n]);
      rest /= n;
    }
    expected.clear();
    naive::decode(bytes, expected);
    out.clear();
    by_bytes(bytes, out);
    if (out != expected) ++wrong;
  }
  naive::numbers random(4);
  for (int i = 0; i < 100000; ++i) {
    for (char& byte : bytes) byte = static_cast<char>(random.below(256));
    if (whole(bytes) != naive::decoded(bytes)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("any split of any text gives what the whole gives, and never more than three bytes are held", "[text]") {
  naive::numbers random(1);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = naive::any_text(1 + random.below(30), random);
    const std::string expected = naive::decoded(text);
    decant::utf8_stream stream;
    std::string out;
    std::string seen;
    bool held_well = true;
    for (const std::string& piece : naive::pieces_of(text, random)) {
      seen += piece;
      stream.push(piece, out);
      // What is out and what is held are all there is: nothing is late.
      const auto pending = stream.pending();
      held_well = held_well && pending.size() <= 3 && seen.ends_with(pending) &&
                  out + naive::decoded(pending) == naive::decoded(seen) && naive::decoded(out) == out;
    }
    stream.flush(out);
    if (out == expected && held_well && whole(text) == expected) continue;
    INFO(round);
    CHECK(out == expected);
    CHECK(held_well);
    CHECK(whole(text) == expected);
  }
  SUCCEED("all rounds agree");
}

TEST_CASE("a copy of a stream is a snapshot, and reset forgets", "[text]") {
  decant::utf8_stream stream;
  CHECK(stream.push("\xF0\x9F").empty());
  decant::utf8_stream other = stream;
  CHECK(stream.push("\x98\x80") == grin);
  CHECK(other.pending() == "\xF0\x9F");
  CHECK(other.push("\x91\x8D") == "\xF0\x9F\x91\x8D");
  CHECK(other.push("\xE2").empty());
  other.reset();
  CHECK(other.pending().empty());
  CHECK(other.flush().empty());
  CHECK(other.push("ok") == "ok");
  STATIC_REQUIRE(std::is_trivially_copyable_v<decant::utf8_stream>);
}

TEST_CASE("the appending forms keep what is there", "[text]") {
  decant::utf8_stream stream;
  std::string out = "so: ";
  stream.push("a\xC3", out);
  CHECK(out == "so: a");
  stream.push("\xA9\xC3", out);
  CHECK(out == "so: a\xC3\xA9");
  stream.flush(out);
  CHECK(out == "so: a\xC3\xA9" + fffd);
}

}  // namespace utf8_stream_tests
