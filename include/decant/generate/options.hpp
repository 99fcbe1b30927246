// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <decant/chain/log_probs.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/token.hpp>
#include <decant/generate/stopping.hpp>

namespace decant {

/// A token as it comes out of a generation.
struct token_event {
  token_id token = no_token;
  std::string_view text{};  ///< what can be shown now: whole characters, no part of a stop string; until the next event
  std::size_t index = 0;    ///< its place in the output, from 0
  finish_reason finish = finish_reason::none;  ///< set on the last event
  const token_log_probs* log_probs = nullptr;  ///< if they were asked for; until the next event
};

/// What is called with each event: a function that returns void, or bool, where false cancels the generation.
class token_callback {
 public:
  token_callback() = default;

  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, token_callback>) && std::invocable<F&, const token_event&>
  token_callback(F&& function) {
    if constexpr (std::same_as<std::invoke_result_t<F&, const token_event&>, void>) {
      function_ = [f = std::forward<F>(function)](const token_event& event) mutable { return f(event), true; };
    } else {
      function_ = std::forward<F>(function);
    }
  }

  /// Whether to go on.
  bool operator()(const token_event& event) const { return !function_ || function_(event); }

 private:
  std::function<bool(const token_event&)> function_;
};

/// How to run a generation. Everything has a default that leaves the rest effective.
struct generate_options {
  std::size_t max_new_tokens = 256;  ///< 0 generates nothing
  std::size_t context_length =
      0;  ///< prompt and output together; 0: what the model's sequence_length() says, if it has one

  std::vector<token_id> stop_tokens{};      ///< drawing one ends the run; it stands in the tokens, not in the text
  std::vector<std::string> stop_strings{};  ///< need `bytes`; the text ends before the one that is reached
  any_criterion stop{};                     ///< anything else that ends the run; stop_any and stop_all compose

  std::optional<log_prob_options> log_probs{};  ///< what to report of every token; absent: nothing

  std::function<std::string_view(token_id)> bytes{};  ///< what tokens stand for; must outlive the call. Empty: no text
  token_callback on_token{};                          ///< called with every event, in order

  std::optional<std::uint64_t> seed{};  ///< absent: a random one, reported in the result
  std::uint64_t sequence = 0;           ///< names this request among those with one seed
  std::size_t cached = 0;         ///< how many tokens of the prompt the model holds already; 0 starts the model anew
  decision_hook* hook = nullptr;  ///< for tests: makes the random decisions
};

/// What a generation came to.
struct generation {
  std::vector<token_id> tokens;            ///< the output: exactly what was drawn, a stop token included
  std::string text;                        ///< its text, if `bytes` was given
  std::vector<token_log_probs> log_probs;  ///< one a token, if they were asked for

  finish_reason finish = finish_reason::none;
  token_id stop_token = no_token;          ///< which stop token, for finish_reason::stop_token
  std::optional<std::size_t> stop_string;  ///< which stop string, for finish_reason::stop_string
  row_status status = row_status::ok;      ///< why, for finish_reason::bad_row

  std::uint64_t seed = 0;  ///< given or made up: with it the run can be repeated
  std::size_t prompt_tokens = 0;
  double prompt_seconds = 0;  ///< model time for the prompt
  double model_seconds = 0;   ///< model time for all further tokens
  double decode_seconds = 0;  ///< time in the chain and the sampler

  [[nodiscard]] double seconds() const { return prompt_seconds + model_seconds + decode_seconds; }
  [[nodiscard]] double tokens_per_second() const {
    return seconds() > 0 ? static_cast<double>(tokens.size()) / seconds() : 0;
  }
  /// The share of time spent in decoding rather than in the model.
  [[nodiscard]] double decode_share() const { return seconds() > 0 ? decode_seconds / seconds() : 0; }
};

}  // namespace decant
