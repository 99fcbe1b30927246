// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/errors.hpp>
#include <decant/generate/limits.hpp>
#include <decant/generate/options.hpp>
#include <decant/text/detokenizer.hpp>

namespace decant::detail {

/// Everything about a generation but how tokens are decided: the tokens so far, limits and stop rules, text, events and
/// the result. What drives a model hands it one token after another, and all drivers end alike.
class generation_output {
 public:
  generation_output(std::span<const token_id> prompt, generate_options options)
      : options_(std::move(options)), tokens_(prompt.begin(), prompt.end()), prompt_size_(prompt.size()) {
    DECANT_ASSERT(!prompt.empty(), "a generation needs a prompt of at least one token");
    DECANT_ASSERT(options_.stop_strings.empty() || options_.bytes, "stop strings need a function from token to bytes");
    result_.seed = options_.seed ? *options_.seed : random_seed();
    result_.prompt_tokens = prompt_size_;
    draws_ = draw_stream(result_.seed, options_.sequence).with_hook(options_.hook);
    if (options_.bytes) text_.emplace(options_.bytes, stop_matcher(options_.stop_strings));
  }

  /// Makes a model ready for the first pass, and starts the clock of a time budget. The last prompt token is always
  /// evaluated: its row is where the output begins.
  template <class M>
  void start(M& model) {
    detail::adopt_context_of(options_, model);
    model.truncate(std::min({options_.cached, model.size(), prompt_size_ - 1}));
    options_.stop.start();
  }

  [[nodiscard]] const generate_options& options() const { return options_; }
  [[nodiscard]] std::span<const token_id> tokens() const { return tokens_; }
  [[nodiscard]] std::size_t prompt_size() const { return prompt_size_; }
  [[nodiscard]] const draw_stream& draws() const { return draws_; }
  [[nodiscard]] step_context context() const { return context_after(tokens_, prompt_size_, draws_); }
  [[nodiscard]] const generation& result() const { return result_; }
  [[nodiscard]] generation& result() { return result_; }

  /// Whether no further token may come: the generation has ended, or ends here at a limit.
  bool ended() {
    if (result_.finish == finish_reason::none) result_.finish = limit_reached();
    return result_.finish != finish_reason::none;
  }

  /// How many tokens may still come before a limit is reached.
  [[nodiscard]] std::size_t room() const { return detail::room_left(options_, prompt_size_, result_.tokens.size()); }

  /// Takes the next token; `report` belongs to it if log-probabilities were asked for. The event is valid until the
  /// next call, and says whether this was the last.
  const token_event* append(token_id token, const token_log_probs* report) {
    tokens_.push_back(token);
    result_.tokens.push_back(token);
    shown_.clear();
    result_.finish = finish_after(token);
    if (result_.finish != finish_reason::none && text_) text_->flush(shown_);
    result_.text += shown_;
    event_ = {token, shown_, result_.tokens.size() - 1, result_.finish, nullptr};
    if (options_.log_probs) {
      result_.log_probs.push_back(*report);
      event_.log_probs = report;
    }
    if (!options_.on_token(event_) && result_.finish == finish_reason::none) {
      cancel();
      event_.finish = result_.finish;
    }
    return &event_;
  }

  /// Ends at a row from which nothing can be drawn.
  void fail(row_status status) {
    result_.finish = finish_reason::bad_row;
    result_.status = status;
    flush_text();
  }

  /// Ends the generation; text held back for a possible stop string goes to the result.
  void cancel() {
    if (result_.finish != finish_reason::none) return;
    result_.finish = finish_reason::cancelled;
    flush_text();
  }

 private:
  static std::uint64_t random_seed() {
    std::random_device device;
    return static_cast<std::uint64_t>(device()) << 32 | device();
  }

  [[nodiscard]] finish_reason limit_reached() const {
    return detail::limit_reached(options_, prompt_size_, result_.tokens.size());
  }

  finish_reason finish_after(token_id token) {
    if (detail::is_among(options_.stop_tokens, token)) {
      result_.stop_token = token;
      return finish_reason::stop_token;
    }
    if (text_) {
      result_.stop_string = text_->push(token, shown_);
      if (result_.stop_string) return finish_reason::stop_string;
    }
    if (options_.stop(context())) {
      const finish_reason why = options_.stop.why();
      if (why == finish_reason::stop_token) result_.stop_token = token;
      return why;
    }
    return limit_reached();
  }

  void flush_text() {
    if (text_) text_->flush(result_.text);
  }

  generate_options options_;
  std::vector<token_id> tokens_;
  std::size_t prompt_size_;
  draw_stream draws_;
  std::optional<detokenizer<std::function<std::string_view(token_id)>>> text_;
  std::string shown_;
  token_event event_;
  generation result_;
};

/// Wall-clock time, for statistics alone.
class stopwatch {
 public:
  /// Seconds since it was made, or asked last.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - since_).count();
    since_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

/// A row without what lies past the vocabulary: engines pad rows, and padding is no token.
template <class M, class Row>
[[nodiscard]] auto without_padding(const M& model, Row&& row) {
  auto logits = std::span(row);
  const std::size_t size = model.vocabulary_size();
  return size > 0 && size < logits.size() ? logits.first(size) : logits;
}

}  // namespace decant::detail
