// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <decant/chain/explain.hpp>
#include <decant/chain/log_probs.hpp>
#include <decant/chain/steps.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>
#include <decant/math/strict.hpp>

namespace decant {

DECANT_STRICT_BEGIN

/// What one step came to: a token, or no_token and why.
struct step_outcome {
  token_id token = no_token;
  row_status status = row_status::ok;
};

namespace detail {

/// Scratch that belongs to an object and not to its value: copies start with a fresh one.
struct row_workspace {
  row_workspace() = default;
  row_workspace(const row_workspace&) {}
  row_workspace& operator=(const row_workspace&) { return *this; }
  ~row_workspace() = default;

  candidates row;
  law before;
};

/// Binds a row for a scope, and releases it however the scope is left: a processor that throws leaves the row restored.
class bound_row {
 public:
  template <class Row>
  bound_row(candidates& row, Row&& logits) : row_(row) {
    row_.bind(logits);
  }
  bound_row(const bound_row&) = delete;
  bound_row& operator=(const bound_row&) = delete;
  ~bound_row() { row_.release(); }

 private:
  candidates& row_;
};

}  // namespace detail

/// A processor and the sampler that ends it: logits and context in, a token out. `temperature(0.8) | multinomial{}`.
///
/// A value: copying it forks its state. It owns the workspace that rows are worked on in, so steady state allocates
/// nothing; use one decoder a thread. Rows are anything that candidates::bind takes; pass `row.first(n)` of a padded
/// one. A row of non-const floats is edited in place and restored before the call returns, also by an exception.
template <LogitsProcessor Processor, Sampler S>
class decoder {
 public:
  decoder(Processor processor, S sampler) : processor_(std::move(processor)), sampler_(std::move(sampler)) {}

  /// Decides a token and accepts it. Errors: decode_error if the row is empty or not finite; then nothing is accepted.
  template <class Row>
  token_id step(Row&& logits, const step_context& context) {
    const step_outcome outcome = try_step(logits, context);
    if (outcome.status != row_status::ok) detail::raise(outcome.status);
    return outcome.token;
  }

  /// The same with the error as a value.
  template <class Row>
  [[nodiscard]] step_outcome try_step(Row&& logits, const step_context& context) {
    const decision decided = decide(logits, context);
    if (decided.outcome.token != no_token) accept(decided.outcome.token, decided.record);
    return decided.outcome;
  }

  /// The same, and says what was asked for about the token; `report` is empty if there is none. Draws what it would
  /// draw without being asked. One more look at the row, for processed numbers one more run of the processors.
  template <class Row>
  [[nodiscard]] step_outcome try_step(Row&& logits, const step_context& context, const log_prob_options& options,
                                      token_log_probs& report) {
    const decision decided = decide(logits, context);
    if (decided.outcome.token == no_token) {
      report = {};
      return decided.outcome;
    }
    report_on(logits, context, decided.outcome.token, options, report);
    accept(decided.outcome.token, decided.record);
    return decided.outcome;
  }

  /// Reports on a token that was chosen elsewhere, as `try_step` does on its own. Call it before the token is accepted.
  template <class Row>
  void report_on(Row&& logits, const step_context& context, token_id token, const log_prob_options& options,
                 token_log_probs& report) {
    const detail::bound_row bound(row(), logits);
    if (!options.raw()) processor_(row(), context);
    log_probs_of(row(), token, options, report);
  }

  /// The law that `step` would draw from, as a value; empty on a bad row. Accepts nothing.
  template <class Row>
    requires LawSampler<S>
  [[nodiscard]] law law_of(Row&& logits, const step_context& context) {
    law out;
    law_of(logits, context, out);
    return out;
  }

  /// The same into an existing law, whose storage is reused.
  template <class Row>
    requires LawSampler<S>
  void law_of(Row&& logits, const step_context& context, law& out) {
    const detail::bound_row bound(row(), logits);
    processor_(row(), context);
    sampler_.narrow(row(), context);
    row().probabilities(out);
  }

  /// What parts with state want to know of a token that was chosen elsewhere, for `accept`.
  template <class Row>
    requires LawSampler<S>
  [[nodiscard]] step_record record_of(Row&& logits, const step_context& context, token_id token) {
    const detail::bound_row bound(row(), logits);
    processor_(row(), context);
    const candidates::law_measure measure = row().measure_law();
    if (row().status() != row_status::ok) return {static_cast<double>(gone), static_cast<double>(gone)};
    const double before = row().log_probability(token, measure);
    sampler_.narrow(row(), context);
    return {before, row().quick_log_probability(token)};
  }

  /// Says what became of a token: which step removed it and why. Draws nothing, accepts nothing.
  template <class Row>
  [[nodiscard]] explanation explain(Row&& logits, const step_context& context, token_id id) {
    Processor processor = processor_;
    S sampler = sampler_;
    const std::vector<chain_step> steps = list_steps(processor, sampler);
    const detail::bound_row bound(row(), logits);
    return detail::explain_steps(row(), context, id, steps);
  }

  /// Says what every step, and the sampler's own narrowing, does to a row: what a truncation in front of mirostat
  /// leaves it to do, for one. Draws nothing, accepts nothing.
  template <class Row>
  [[nodiscard]] std::vector<step_effect> effects(Row&& logits, const step_context& context) {
    Processor processor = processor_;
    S sampler = sampler_;
    const std::vector<chain_step> steps = list_steps(processor, sampler);
    const detail::bound_row bound(row(), logits);
    return detail::effects_of_steps(row(), context, steps);
  }

  /// Tells the parts with state of a token that was chosen elsewhere (`step` does so itself).
  void accept(token_id token, const step_record& record = {}) {
    detail::accept_in(processor_, token, record);
    detail::accept_in(sampler_, token, record);
  }

  /// Undoes the last `count` accepts.
  void rollback(std::size_t count) {
    detail::rollback_in(processor_, count);
    detail::rollback_in(sampler_, count);
  }

  /// Undoes all accepts.
  void reset() {
    detail::reset_in(processor_);
    detail::reset_in(sampler_);
  }

  [[nodiscard]] bool keeps_state() const { return decant::keeps_state(processor_) || decant::keeps_state(sampler_); }

  /// The steps that are not off, and the sampler: "top_k(40) | temperature(0.8) | multinomial".
  [[nodiscard]] std::string describe() const {
    std::string text = is_off(processor_) ? std::string() : decant::describe(processor_);
    detail::append_step(text, decant::describe(sampler_));
    return text;
  }

  [[nodiscard]] Processor& processor() { return processor_; }
  [[nodiscard]] const Processor& processor() const { return processor_; }
  [[nodiscard]] S& sampler() { return sampler_; }
  [[nodiscard]] const S& sampler() const { return sampler_; }

 private:
  struct decision {
    step_outcome outcome;
    step_record record;
  };

  [[nodiscard]] candidates& row() { return workspace_.row; }

  /// The steps of a processor, and the narrowing of a sampler that has a law.
  static std::vector<chain_step> list_steps(Processor& processor, S& sampler) {
    std::vector<chain_step> steps;
    decant::list_steps(processor, steps);
    if constexpr (LawSampler<S>) {
      if (decant::has_law(sampler)) {
        steps.push_back(
            {decant::describe(sampler), false, &sampler,
             [](void* self, candidates& row, const step_context& c) { static_cast<S*>(self)->narrow(row, c); }});
      }
    }
    return steps;
  }

  /// Everything up to the token. A record is made for those who keep state.
  template <class Row>
  decision decide(Row&& logits, const step_context& context) {
    const detail::bound_row bound(row(), logits);
    if (!keeps_state()) {
      if (takes_argmax(sampler_)) {
        detail::apply_for_argmax(processor_, row(), context);
      } else {
        processor_(row(), context);
      }
      return {checked(sampler_(row(), context)), {}};
    }
    processor_(row(), context);
    const candidates::law_measure measure = row().measure_law();
    if (row().status() != row_status::ok) return {{no_token, row().status()}, {}};
    // Where the token will keep its logit, the measure of the law is enough; else its weights must be kept.
    const bool narrows = only_narrows(sampler_);
    if (!narrows) {
      row().probabilities(workspace_.before);
      workspace_.before.total = measure.total;
    }
    const token_id token = sampler_(row(), context);
    if (token == no_token) return {checked(token), {}};
    const double before = narrows ? row().log_probability(token, measure) : workspace_.before.log_probability(token);
    return {{token, row_status::ok}, {before, row().quick_log_probability(token)}};
  }

  /// A token and the row's status; a sampler of the user's that answers a bad row with a token is not believed.
  [[nodiscard]] step_outcome checked(token_id token) {
    DECANT_ASSERT(token == no_token || (token >= 0 && static_cast<std::size_t>(token) < row().vocabulary_size()),
                  "the sampler returned a token outside the vocabulary");
    const row_status status = row().status();
    return {status == row_status::ok ? token : no_token, status};
  }

  Processor processor_;
  S sampler_;
  detail::row_workspace workspace_;
};

/// What drives a generation: turns a row and a context into a token.
template <class D>
concept Decoder = requires(D& decoder, std::span<const float> row, const step_context& context) {
  { decoder.try_step(row, context) } -> std::same_as<step_outcome>;
  { decoder.describe() } -> std::convertible_to<std::string>;
};

DECANT_STRICT_END

}  // namespace decant
