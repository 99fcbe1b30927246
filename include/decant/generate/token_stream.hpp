// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <iterator>
#include <span>
#include <utility>

#include <decant/chain/decoder.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>
#include <decant/generate/options.hpp>
#include <decant/generate/output.hpp>

namespace decant {

namespace detail {

/// An input iterator over the events of a stream.
template <class Stream>
class event_iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = token_event;
  using difference_type = std::ptrdiff_t;

  event_iterator() = default;
  explicit event_iterator(Stream& stream) : stream_(&stream), event_(stream.next()) {}

  const token_event& operator*() const { return *event_; }
  const token_event* operator->() const { return event_; }
  event_iterator& operator++() {
    event_ = stream_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const event_iterator& it, std::default_sentinel_t) { return it.event_ == nullptr; }

 private:
  Stream* stream_ = nullptr;
  const token_event* event_ = nullptr;
};

/// Decides a token as `step` does, and reports on it if that was asked for.
template <class D, class Row>
step_outcome step_and_report(D& decoder, Row row, const step_context& context, const generate_options& options,
                             token_log_probs& report) {
  if (!options.log_probs) return decoder.try_step(row, context);
  if constexpr (requires { decoder.try_step(row, context, *options.log_probs, report); }) {
    return decoder.try_step(row, context, *options.log_probs, report);
  } else {
    DECANT_ASSERT(false, "this decoder cannot report log-probabilities");
    return {};
  }
}

}  // namespace detail

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
      : model_(&model), decoder_(std::move(decoder)), output_(prompt, std::move(options)) {
    output_.start(model);
  }

  /// Generates the next token. Null when the generation has ended; the event is valid until the next call.
  const token_event* next() {
    if (output_.ended()) return nullptr;
    const step_outcome outcome = decide();
    if (outcome.status != row_status::ok || outcome.token == no_token) {
      output_.fail(outcome.status);
      return nullptr;
    }
    return output_.append(outcome.token, &report_);
  }

  /// Ends the generation; text held back for a possible stop string goes to the result.
  void cancel() { output_.cancel(); }

  [[nodiscard]] const generation& result() const& { return output_.result(); }
  [[nodiscard]] generation result() && { return std::move(output_.result()); }

  /// Prompt and output.
  [[nodiscard]] std::span<const token_id> tokens() const { return output_.tokens(); }

  using iterator = detail::event_iterator<token_stream>;

  [[nodiscard]] iterator begin() { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  step_outcome decide() {
    generation& result = output_.result();
    detail::stopwatch watch;
    const auto row = detail::without_padding(*model_, model_->evaluate(output_.tokens().subspan(model_->size())));
    (result.tokens.empty() ? result.prompt_seconds : result.model_seconds) += watch.lap();
    const step_outcome outcome = detail::step_and_report(decoder_, row, output_.context(), output_.options(), report_);
    result.decode_seconds += watch.lap();
    return outcome;
  }

  M* model_;
  D decoder_;
  detail::generation_output output_;
  token_log_probs report_;
};

}  // namespace decant
