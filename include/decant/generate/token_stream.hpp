// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/errors.hpp>
#include <decant/generate/options.hpp>
#include <decant/text/detokenizer.hpp>

namespace decant {

/// An autoregressive generation, one token at a time: an input range of token_event.
///
///     for (const token_event& event : token_stream(model, prompt, decoder, options)) std::cout << event.text;
///
/// Each position is given to the model once; the context grows by exactly what is drawn. The decoder is copied, so its
/// state starts as it stands and the caller's does not change; the model is started anew unless `cached` says
/// otherwise. Stopping early is leaving the loop. After the end, `result()` holds everything. Misuse: an empty prompt,
/// stop strings without `bytes`.
template <Model M, Decoder D>
class token_stream {
 public:
  token_stream(M& model, std::span<const token_id> prompt, D decoder, generate_options options = {})
      : model_(&model),
        decoder_(std::move(decoder)),
        options_(std::move(options)),
        tokens_(prompt.begin(), prompt.end()),
        prompt_size_(prompt.size()) {
    DECANT_ASSERT(!prompt.empty(), "a generation needs a prompt of at least one token");
    DECANT_ASSERT(options_.stop_strings.empty() || options_.bytes, "stop strings need a function from token to bytes");
    result_.seed = options_.seed ? *options_.seed : random_seed();
    result_.prompt_tokens = prompt_size_;
    draws_ = draw_stream(result_.seed, options_.sequence).with_hook(options_.hook);
    if (options_.context_length == 0) {
      if constexpr (requires { model.sequence_length(); }) options_.context_length = model.sequence_length();
    }
    if (options_.bytes) text_.emplace(options_.bytes, stop_matcher(options_.stop_strings));
    // The last prompt token is always evaluated: its row is where the output begins.
    model.truncate(std::min({options_.cached, model.size(), prompt_size_ - 1}));
    options_.stop.start();
  }

  /// Generates the next token. Null when the generation has ended; the event is valid until the next call.
  const token_event* next() {
    if (result_.finish == finish_reason::none) result_.finish = limit_reached();
    if (result_.finish != finish_reason::none) return nullptr;
    const step_outcome outcome = decide();
    if (outcome.status != row_status::ok || outcome.token == no_token) {
      result_.finish = finish_reason::bad_row;
      result_.status = outcome.status;
      flush_text();
      return nullptr;
    }
    tokens_.push_back(outcome.token);
    result_.tokens.push_back(outcome.token);
    shown_.clear();
    result_.finish = finish_after(outcome.token);
    if (result_.finish != finish_reason::none && text_) text_->flush(shown_);
    result_.text += shown_;
    event_ = {outcome.token, shown_, result_.tokens.size() - 1, result_.finish, nullptr};
    if (options_.log_probs) {
      result_.log_probs.push_back(report_);
      event_.log_probs = &report_;
    }
    if (!options_.on_token(event_) && result_.finish == finish_reason::none) {
      cancel();
      event_.finish = result_.finish;
    }
    return &event_;
  }

  /// Ends the generation; text held back for a possible stop string goes to the result.
  void cancel() {
    if (result_.finish != finish_reason::none) return;
    result_.finish = finish_reason::cancelled;
    flush_text();
  }

  [[nodiscard]] const generation& result() const& { return result_; }
  [[nodiscard]] generation result() && { return std::move(result_); }

  /// Prompt and output.
  [[nodiscard]] std::span<const token_id> tokens() const { return tokens_; }

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = token_event;
    using difference_type = std::ptrdiff_t;

    iterator() = default;
    explicit iterator(token_stream& stream) : stream_(&stream), event_(stream.next()) {}

    const token_event& operator*() const { return *event_; }
    const token_event* operator->() const { return event_; }
    iterator& operator++() {
      event_ = stream_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t) { return it.event_ == nullptr; }

   private:
    token_stream* stream_ = nullptr;
    const token_event* event_ = nullptr;
  };

  [[nodiscard]] iterator begin() { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  using clock = std::chrono::steady_clock;

  static std::uint64_t random_seed() {
    std::random_device device;
    return static_cast<std::uint64_t>(device()) << 32 | device();
  }

  static double seconds_since(clock::time_point start) {
    return std::chrono::duration<double>(clock::now() - start).count();
  }

  [[nodiscard]] step_context context() const { return context_after(tokens_, prompt_size_, draws_); }

  step_outcome decide() {
    const auto start = clock::now();
    auto row = std::span(model_->evaluate(std::span<const token_id>(tokens_).subspan(model_->size())));
    (result_.tokens.empty() ? result_.prompt_seconds : result_.model_seconds) += seconds_since(start);
    // Engines pad rows; what lies past the vocabulary is no token.
    if (const std::size_t size = model_->vocabulary_size(); size > 0 && size < row.size()) row = row.first(size);
    const auto decoding = clock::now();
    const step_outcome outcome = step(row);
    result_.decode_seconds += seconds_since(decoding);
    return outcome;
  }

  template <class Row>
  step_outcome step(Row row) {
    if (!options_.log_probs) return decoder_.try_step(row, context());
    if constexpr (requires { decoder_.try_step(row, context(), *options_.log_probs, report_); }) {
      return decoder_.try_step(row, context(), *options_.log_probs, report_);
    } else {
      DECANT_ASSERT(false, "this decoder cannot report log-probabilities");
      return {};
    }
  }

  [[nodiscard]] finish_reason limit_reached() const {
    if (result_.tokens.size() >= options_.max_new_tokens) return finish_reason::length;
    if (options_.context_length > 0 && tokens_.size() >= options_.context_length) return finish_reason::context_full;
    return finish_reason::none;
  }

  finish_reason finish_after(token_id token) {
    if (std::ranges::find(options_.stop_tokens, token) != options_.stop_tokens.end()) {
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

  M* model_;
  D decoder_;
  generate_options options_;
  std::vector<token_id> tokens_;
  std::size_t prompt_size_;
  draw_stream draws_;
  std::optional<detokenizer<std::function<std::string_view(token_id)>>> text_;
  std::string shown_;
  token_log_probs report_;
  token_event event_;
  generation result_;
};

}  // namespace decant
