// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace decant {

namespace detail {

/// How many bytes the character has that starts with `lead`; 0 if no character starts with it (a continuation byte,
/// the overlong leads C0 and C1, and F5 and above, which would pass U+10FFFF).
constexpr std::size_t utf8_length(std::uint8_t lead) noexcept {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;
}

/// Whether `byte` may come second after `lead`, a lead of two bytes or more.
constexpr bool utf8_second(std::uint8_t lead, std::uint8_t byte) noexcept {
  // All that the number of bytes alone does not rule out is ruled out here: overlong forms (E0, F0), the surrogates
  // (ED), and what lies above U+10FFFF (F4).
  const std::uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const std::uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return low <= byte && byte <= high;
}

}  // namespace detail

/// Bytes in, whole UTF-8 characters out: tokens of byte-level vocabularies split characters, a terminal or a JSON
/// string must not.
///
/// What comes out is valid UTF-8 always, and all outputs together with `flush()` are the same for every way of cutting
/// the input into pieces. A tail that may still become a character (up to 3 bytes) is held back. What cannot become one
/// turns into U+FFFD, one for each maximal subpart of an ill-formed sequence: the longest beginning of some character
/// that stands there, or a single byte. Surrogates, overlong forms and code points above U+10FFFF are ill-formed.
///
/// A small value: a copy is a snapshot. Linear in the input; the forms that append allocate only what `out` needs.
///
/// Reference: The Unicode Standard, section 3.9 (table 3-7 and "U+FFFD Substitution of Maximal Subparts").
class utf8_stream {
 public:
  /// Takes the next bytes and returns the characters that are complete now.
  [[nodiscard]] std::string push(std::string_view bytes) {
    std::string out;
    push(bytes, out);
    return out;
  }

  /// The same, appended to `out`. `bytes` must not view into `out`.
  void push(std::string_view bytes, std::string& out) {
    std::size_t i = 0;
    while (i < bytes.size()) {
      const auto byte = static_cast<std::uint8_t>(bytes[i]);
      if (size_ == 0) {
        if (byte < 0x80) {
          const std::size_t begin = i;
          while (i < bytes.size() && static_cast<std::uint8_t>(bytes[i]) < 0x80) ++i;
          out.append(bytes, begin, i - begin);
          continue;
        }
        if (detail::utf8_length(byte) == 0) {
          out.append(replacement);
        } else {
          held_[size_++] = bytes[i];
        }
        ++i;
        continue;
      }
      const auto lead = static_cast<std::uint8_t>(held_[0]);
      if (!(size_ == 1 ? detail::utf8_second(lead, byte) : (byte & 0xC0) == 0x80)) {
        // The byte that broke the character is not part of it and may start the next one: it is looked at again.
        flush(out);
        continue;
      }
      if (size_ + std::size_t{1} == detail::utf8_length(lead)) {
        out.append(held_.data(), size_);
        out.push_back(bytes[i]);
        size_ = 0;
      } else {
        held_[size_++] = bytes[i];
      }
      ++i;
    }
  }

  /// Ends the text: a character still incomplete becomes one U+FFFD. Then the stream is as new.
  [[nodiscard]] std::string flush() {
    std::string out;
    flush(out);
    return out;
  }

  /// The same, appended to `out`.
  void flush(std::string& out) {
    if (size_ != 0) out.append(replacement);
    size_ = 0;
  }

  /// The bytes held back: the beginning of a character. Valid until the stream is changed.
  [[nodiscard]] std::string_view pending() const noexcept { return {held_.data(), size_}; }

  /// Forgets what is held back.
  void reset() noexcept { size_ = 0; }

  /// U+FFFD, what ill-formed bytes turn into.
  static constexpr std::string_view replacement = "\xEF\xBF\xBD";

 private:
  std::array<char, 3> held_{};
  std::uint8_t size_ = 0;
};

}  // namespace decant
