// SPDX-License-Identifier: MIT
#pragma once

// What the text tests compare with: slow, obvious, and written without a look at the code under test.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace naive {

/// A small generator of numbers (splitmix64), the same on every platform.
class numbers {
 public:
  explicit numbers(std::uint64_t seed) : state_(seed) {}

  /// A number below `bound`.
  std::size_t below(std::size_t bound) {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return static_cast<std::size_t>((x ^ (x >> 31)) % bound);
  }

 private:
  std::uint64_t state_;
};

/// Cuts a text into pieces of 0 to 4 bytes.
inline std::vector<std::string> pieces_of(std::string_view text, numbers& random) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const std::size_t size = std::min(random.below(5), text.size());
    pieces.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return pieces;
}

/// Text as models write it and as they should not: ASCII, Korean, emoji, combining marks, ill-formed bytes.
inline std::string any_text(std::size_t characters, numbers& random) {
  static const std::vector<std::string> parts = {"a",
                                                 "b",
                                                 "ab",
                                                 "stop",
                                                 " ",
                                                 "\n",
                                                 std::string(1, '\0'),
                                                 "\xED\x95\x9C",
                                                 "\xEA\xB8\x80",
                                                 "\xF0\x9F\x98\x80",
                                                 "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB",
                                                 "e\xCC\x81",
                                                 "\xCC\x88",
                                                 "\xC3\xA9",
                                                 "\xEF\xBF\xBD",
                                                 "\xC4",
                                                 "\xF0\x9F",
                                                 "\xE1\x80",
                                                 "\x80",
                                                 "\xFF",
                                                 "\xC0\xAF",
                                                 "\xED\xA0\x80",
                                                 "\xF4\x90\x80\x80",
                                                 "\xE0\x80"};
  std::string text;
  for (std::size_t i = 0; i < characters; ++i) text += parts[random.below(parts.size())];
  return text;
}

/// Decodes a whole text by table 3-7 of the Unicode Standard: at each place the longest beginning of a row counts.
inline void decode(std::string_view bytes, std::string& out) {
  struct row {
    std::size_t length;
    std::array<std::array<unsigned, 2>, 4> ranges;
  };
  static constexpr std::array<row, 9> table = {{
      {1, {{{0x00, 0x7F}}}},
      {2, {{{0xC2, 0xDF}, {0x80, 0xBF}}}},
      {3, {{{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}}}},
      {3, {{{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}}}},
      {3, {{{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}}}},
      {3, {{{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}}}},
      {4, {{{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}}},
      {4, {{{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}}},
      {4, {{{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}}}},
  }};
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t longest = 0;
    bool whole = false;
    for (const row& pattern : table) {
      std::size_t fits = 0;
      while (fits < pattern.length && at + fits < bytes.size()) {
        const unsigned byte = static_cast<unsigned char>(bytes[at + fits]);
        if (byte < pattern.ranges[fits][0] || byte > pattern.ranges[fits][1]) break;
        ++fits;
      }
      if (fits > longest) {
        longest = fits;
        whole = fits == pattern.length;
      }
    }
    if (whole) {
      out.append(bytes.substr(at, longest));
    } else {
      out.append("\xEF\xBF\xBD");
    }
    at += longest > 0 ? longest : 1;
  }
}

inline std::string decoded(std::string_view bytes) {
  std::string out;
  decode(bytes, out);
  return out;
}

/// A code point in UTF-8, by arithmetic.
inline std::string encoded(std::uint32_t point) {
  std::string out;
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 + ((point >> shift) & 0x3F)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xC0 + (point >> 6));
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xE0 + (point >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 + (point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
  return out;
}

struct match {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t index = 0;
};

/// The match that ends first in the whole text; of those the longest, of those the lowest index.
inline std::optional<match> first_match(const std::string& text, const std::vector<std::string>& stops) {
  std::optional<match> best;
  for (std::size_t i = 0; i < stops.size(); ++i) {
    const std::size_t begin = text.find(stops[i]);
    if (begin == std::string::npos) continue;
    const std::size_t end = begin + stops[i].size();
    if (!best || end < best->end || (end == best->end && begin < best->begin)) best = match{begin, end, i};
  }
  return best;
}

/// The length of the longest suffix of the text that is a prefix of some stop string.
inline std::size_t held(std::string_view text, const std::vector<std::string>& stops) {
  std::size_t longest = 0;
  for (const std::string& stop : stops) {
    for (std::size_t n = 1; n <= stop.size() && n <= text.size(); ++n) {
      if (text.ends_with(std::string_view(stop).substr(0, n)) && n > longest) longest = n;
    }
  }
  return longest;
}

}  // namespace naive
