// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include <decant/core/context.hpp>
#include <decant/core/token.hpp>

namespace decant {

class candidates;

/// Narrows or reshapes a row on its way to a token. A lambda will do.
template <class P>
concept LogitsProcessor = std::is_object_v<P> && requires(P& processor, candidates& row, const step_context& context) {
  { processor(row, context) } -> std::same_as<void>;
};

/// Ends a chain: returns a token that is not gone, or no_token when the row is bad.
template <class S>
concept Sampler = std::is_object_v<S> && requires(S& sampler, candidates& row, const step_context& context) {
  { sampler(row, context) } -> std::same_as<token_id>;
};

/// A sampler with a law: narrow leaves in the row exactly the distribution that it draws from, and calling it is
/// narrow, then a draw (the row is left narrowed). Speculation needs this.
template <class S>
concept LawSampler = Sampler<S> && requires(S& sampler, candidates& row, const step_context& context) {
  { sampler.narrow(row, context) } -> std::same_as<void>;
};

/// What a stateful policy may want to know of an accepted token.
struct step_record {
  double log_prob_before = 0;  ///< natural log of its probability before the sampler narrowed the row
  double log_prob_after = 0;   ///< and under the law that it was drawn from
};

/// A policy with true state. `rollback(n)` undoes the last n accepts exactly; `reset()` undoes all.
template <class P>
concept Stateful = requires(P& policy, token_id token, const step_record& record, std::size_t count) {
  policy.accept(token, record);
  policy.rollback(count);
  policy.reset();
};

/// A language model with its own cache. `evaluate` appends tokens and returns the last row of logits, valid until the
/// next call; `size` is the number of tokens held; `truncate(n)` forgets all after the first n.
template <class M>
concept Model = requires(M& model, const M& constant, std::span<const token_id> tokens, std::size_t count) {
  std::span(model.evaluate(tokens));
  { constant.size() } -> std::convertible_to<std::size_t>;
  model.truncate(count);
  { constant.vocabulary_size() } -> std::convertible_to<std::size_t>;
};

/// A model that scores many appended tokens at once: row(i) follows the i-th token of the last `score` call, and all
/// rows stay valid together. The target of speculation.
template <class M>
concept ScoringModel = Model<M> && requires(M& model, std::span<const token_id> tokens, std::size_t i) {
  model.score(tokens);
  std::span(model.row(i));
};

/// Ends a generation: asked after every drawn token, with that token last in the context.
template <class C>
concept StoppingCriterion = requires(C& criterion, const step_context& context) {
  { criterion(context) } -> std::convertible_to<bool>;
};

/// The bytes that a token stands for, valid as long as the function object.
template <class F>
concept TokenBytes = requires(const F& bytes, token_id token) {
  { bytes(token) } -> std::convertible_to<std::string_view>;
};

}  // namespace decant
