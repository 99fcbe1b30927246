// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/processors/vocabulary_bytes.hpp>
#include <decant/text/stop_matcher.hpp>

namespace decant {

/// Byte strings that nothing may repeat across: what structures a text, and has to come again and again.
///
/// They are looked for in the bytes of the text, so it does not matter how a tokenizer has cut it: a breaker inside a
/// token, or over several, is found. Broken are all tokens that an occurrence has bytes of, and tokens without bytes
/// inside it. Reads all bytes of the vocabulary once. A value: copies share the strings and the bytes.
/// Off: without strings. Errors: parameter_error for an empty string; the value is its place.
class sequence_breakers : public made_or_error<sequence_breakers> {
 public:
  static constexpr std::string_view name = "sequence_breakers";

  /// What the author of DRY proposes: the end of a line, and what sets names and speech apart.
  static std::vector<std::string> usual() { return {"\n", ":", "\"", "*"}; }

  sequence_breakers() = default;
  sequence_breakers(const std::vector<std::string>& strings, vocabulary_bytes bytes) : bytes_(std::move(bytes)) {
    detail::raise_if(validate(strings, bytes_));
    if (!strings.empty()) tables_ = std::make_shared<const tables>(strings, bytes_);
  }

  static std::optional<parameter_fault> validate(const std::vector<std::string>& strings, const vocabulary_bytes&) {
    const auto found = std::ranges::find(strings, std::string());
    if (found == strings.end()) return {};
    return parameter_fault{name, "string", static_cast<double>(found - strings.begin()), "must not be empty"};
  }

  [[nodiscard]] bool off() const { return tables_ == nullptr; }

  /// How many strings there are.
  [[nodiscard]] std::size_t size() const { return off() ? 0 : tables_->automaton.strings().size(); }

  /// What the end of a text has in common with the beginning of breakers.
  using state = detail::stop_automaton::node;

  /// For every token, how many in a row up to and with it are unbroken: 0 for a broken one. Returns the state at the
  /// end. Linear in the bytes of the tokens; allocates only while `runs` grows.
  state unbroken(std::span<const token_id> tokens, std::vector<std::uint32_t>& runs) const {
    runs.assign(tokens.size(), 0);
    state at = detail::stop_automaton::root;
    if (!off()) {
      // First, for each token, how far back from its end an occurrence reaches that ends in it.
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (at == detail::stop_automaton::root && tables_->is_inert(tokens[i])) continue;
        for (const char byte : bytes_(tokens[i])) {
          if (runs[i] > 0) ++runs[i];
          at = tables_->automaton.next(at, byte);
          runs[i] = std::max(runs[i], tables_->length_ending(at));
        }
      }
      // Then backwards, because what is left of that where a token begins breaks the tokens before.
      std::size_t reach = 0;
      for (std::size_t i = tokens.size(); i-- > 0;) {
        reach = std::max<std::size_t>(reach, runs[i]);
        if (reach == 0) continue;
        runs[i] = 1;
        reach -= std::min(reach, bytes_(tokens[i]).size());
      }
    }
    std::uint32_t run = 0;
    for (std::uint32_t& here : runs) here = run = here > 0 ? 0 : run + 1;
    return at;
  }

  /// Whether a breaker ends inside a token that follows on a text. Linear in its bytes.
  [[nodiscard]] bool end_in(token_id token, state at) const {
    if (off()) return false;
    return std::ranges::any_of(bytes_(token), [&](char byte) {
      at = tables_->automaton.next(at, byte);
      return tables_->length_ending(at) > 0;
    });
  }

 private:
  struct tables {
    tables(const std::vector<std::string>& strings, const vocabulary_bytes& bytes)
        : automaton(strings), inert(bytes.size()) {
      std::array<bool, 256> begins{};
      for (const std::string& string : strings) begins[static_cast<std::uint8_t>(string[0])] = true;
      for (std::size_t i = 0; i < inert.size(); ++i) {
        inert[i] = std::ranges::none_of(bytes(static_cast<token_id>(i)),
                                        [&](char byte) { return begins[static_cast<std::uint8_t>(byte)]; });
      }
    }

    [[nodiscard]] bool is_inert(token_id token) const {
      const auto i = static_cast<std::size_t>(token);
      return token < 0 || i >= inert.size() || inert[i];
    }

    [[nodiscard]] std::uint32_t length_ending(state at) const {
      const std::uint32_t string = automaton.ending(at);
      return string == detail::stop_automaton::none ? 0
                                                    : static_cast<std::uint32_t>(automaton.strings()[string].size());
    }

    detail::stop_automaton automaton;
    std::vector<bool> inert;  // tokens in which no breaker begins: most of them, and not worth reading
  };

  vocabulary_bytes bytes_;
  std::shared_ptr<const tables> tables_;
};

}  // namespace decant
