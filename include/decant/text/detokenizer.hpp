// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <decant/core/concepts.hpp>
#include <decant/core/token.hpp>
#include <decant/text/stop_matcher.hpp>
#include <decant/text/utf8_stream.hpp>

namespace decant {

/// Tokens in, text out that can be shown at once: whole characters, no part of a stop string, nothing taken back.
///
/// `bytes(token)` gives the bytes of a token; for one that shall not be seen (an end token) it gives none. The bytes
/// pass a stop_matcher first and a utf8_stream after it. So stop strings are compared with what the model wrote, not
/// with the U+FFFD that ill-formed bytes turn into; and when a match cuts the text, no more than the cut text decides
/// how it reads. A stop string that is valid UTF-8 cuts well-formed text between characters only. One that is not may
/// cut a character in two: the part before the cut becomes one U+FFFD, and that is emitted by `flush()`, not before.
///
/// All outputs together, that of `flush()` included, are the decoded bytes of all tokens up to the match.
///
/// A value: a copy is a snapshot, and may be assigned back, also when `F` is a lambda with captures. It copies `F`, so
/// a vocabulary is best captured by reference. Linear in the bytes; the forms that append allocate only what `out`
/// needs, beside what `F` does.
template <TokenBytes F>
  requires std::move_constructible<F>
class detokenizer {
 public:
  /// Without stop strings unless they are given.
  explicit detokenizer(F bytes, const stop_matcher& stops = {}) : bytes_(std::move(bytes)), stops_(stops) {}

  detokenizer(const detokenizer&) = default;
  detokenizer(detokenizer&&) = default;
  ~detokenizer() = default;

  /// Assigns a lambda with captures too, which has no assignment of its own.
  detokenizer& operator=(detokenizer other) {  // NOLINT(performance-unnecessary-value-param): moved from below
    if constexpr (std::is_move_assignable_v<F>) {
      bytes_ = std::move(other.bytes_);
    } else {
      static_assert(std::is_nothrow_move_constructible_v<F>, "or a throw would leave no function behind");
      std::destroy_at(&bytes_);
      std::construct_at(&bytes_, std::move(other.bytes_));
    }
    stops_ = other.stops_;
    characters_ = other.characters_;
    return *this;
  }

  /// Takes the next token; returns the text that may be emitted now, and whether a stop string has ended it.
  /// After a match it emits nothing, and does not ask for the bytes.
  [[nodiscard]] emitted_text push(token_id token) {
    emitted_text now;
    now.matched = push(token, now.text);
    return now;
  }

  /// The same, appended to `out`.
  std::optional<std::size_t> push(token_id token, std::string& out) {
    if (stops_.matched()) return stops_.matched();
    // In one expression, because an `F` that returns a string by value gives bytes that live no longer than it.
    return stops_.push(std::as_const(bytes_)(token), decoding_into(out));
  }

  /// Ends the text: returns what was held back. It holds no match; an incomplete character becomes one U+FFFD.
  [[nodiscard]] std::string flush() {
    std::string out;
    flush(out);
    return out;
  }

  /// The same, appended to `out`.
  void flush(std::string& out) {
    stops_.flush(decoding_into(out));
    characters_.flush(out);
  }

  /// The index of the stop string that has ended the text, if one has.
  [[nodiscard]] std::optional<std::size_t> matched() const noexcept { return stops_.matched(); }

  /// Forgets the text so far, and a match.
  void reset() noexcept {
    stops_.reset();
    characters_.reset();
  }

 private:
  auto decoding_into(std::string& out) {
    return [this, &out](std::string_view part) { characters_.push(part, out); };
  }

  F bytes_;
  stop_matcher stops_;
  utf8_stream characters_;
};

}  // namespace decant
