// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

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

/// The parent of a node that follows the tokens held.
inline constexpr std::int32_t no_parent = -1;

/// A ScoringModel that also scores a tree of continuations in one pass. Node i follows node parents[i] < i, or with
/// `no_parent` the tokens held; it sees these and its ancestors alone. row(i) follows node i. Nothing of a tree counts
/// as held until `keep(path)` appends the nodes that `path` lists from the top down, each the parent of the next, and
/// forgets the others; any other call that changes the sequence forgets them all.
template <class M>
concept TreeModel =
    ScoringModel<M> && requires(M& model, std::span<const token_id> nodes, std::span<const std::int32_t> parents,
                                std::span<const std::size_t> path) {
      model.score(nodes, parents);
      model.keep(path);
    };

/// A model whose last pass shows hidden states, each as the classifier sees it: hidden(i) is the one of the i-th token
/// or node of that pass. (A batch names the sequence too: HiddenStateModel.)
template <class M>
concept HiddenRowModel = Model<M> && requires(M& model, std::size_t i) { std::span(model.hidden(i)); };

/// A model with heads for later tokens. Where row(i) is about the next token after the i-th of the last pass,
/// head_row(k, i) is about the token k places after that one; k from 1 to head_count(). Valid until the next call of
/// head_row or of a pass.
template <class M>
concept HeadedModel = ScoringModel<M> && requires(M& model, std::size_t i) {
  { model.head_count() } -> std::convertible_to<std::size_t>;
  std::span(model.head_row(i, i));
};

/// A model that can leave out parts of a pass, and so draft for itself. There are `sub_layers()` of them, two a layer:
/// attention, then feed-forward. Both calls append tokens like the ones they are named after, without the parts whose
/// flag is set; what the left-out parts would have kept for later tokens is missing until these are truncated.
template <class M>
concept SkippableModel =
    ScoringModel<M> && requires(M& model, std::span<const token_id> tokens, const std::vector<bool>& skip) {
      { model.sub_layers() } -> std::convertible_to<std::size_t>;
      std::span(model.evaluate_skipping(tokens, skip));
      model.score_skipping(tokens, skip);
    };

/// A model whose layers can be left early, through the classifier that all share. `peek(tokens, depth)` runs tokens
/// that follow those held and those peeked at before, through the first `depth` of `n_layers()` layers, and returns the
/// last one's row. They do not count as held: a later pass over tokens that begin with the same ones goes on from
/// where they left, and any other change of the sequence forgets them.
template <class M>
concept LayeredModel = ScoringModel<M> && requires(M& model, std::span<const token_id> tokens, std::size_t depth) {
  { model.n_layers() } -> std::convertible_to<std::size_t>;
  std::span(model.peek(tokens, depth));
};

/// Extrapolates the hidden states of another model, its features. Holds pairs of a token and the feature before it,
/// which `extend` appends (features one after the other, feature_size() numbers each) and `truncate` forgets; both
/// return to no nodes, and extend returns the row that follows the last pair. `grow` adds nodes that follow that pair
/// (no_parent) or earlier nodes, each with the drafter's own feature of its parent; row(i) follows node i.
template <class F>
concept FeatureDrafter =
    requires(F& drafter, const F& constant, std::span<const token_id> tokens, std::span<const float> features,
             std::span<const std::int32_t> parents, std::size_t count) {
      { constant.size() } -> std::convertible_to<std::size_t>;
      { constant.feature_size() } -> std::convertible_to<std::size_t>;
      std::span(drafter.extend(tokens, features));
      drafter.truncate(count);
      drafter.grow(tokens, parents);
      std::span(drafter.row(count));
    };

/// One part of a pass over many sequences: tokens to append to one of them.
struct batch_item {
  std::size_t sequence = 0;
  std::span<const token_id> tokens;
};

/// A language model that holds many sequences and advances any of them in one pass. `start` makes an empty sequence and
/// returns its number; `fork` one that begins with all tokens of another, shared where the model can; `drop` ends one,
/// whose number may be given again. `evaluate` appends the tokens of every item, no sequence twice; row(i) follows the
/// last token of item i, and all rows stay valid until the next `evaluate`. Search speaks this.
template <class M>
concept BatchModel =
    requires(M& model, const M& constant, std::span<const batch_item> items, std::size_t sequence, std::size_t count) {
      { model.start() } -> std::same_as<std::size_t>;
      { model.fork(sequence) } -> std::same_as<std::size_t>;
      model.drop(sequence);
      model.evaluate(items);
      std::span(model.row(count));
      model.truncate(sequence, count);
      { constant.size(sequence) } -> std::convertible_to<std::size_t>;
      { constant.vocabulary_size() } -> std::convertible_to<std::size_t>;
    };

/// A BatchModel that shows its last hidden states: hidden(i, j) is that of the j-th token of item i of the last pass.
template <class M>
concept HiddenStateModel = BatchModel<M> && requires(M& model, std::size_t i) { std::span(model.hidden(i, i)); };

/// A BatchModel that reads a source once and then attends to it: an encoder-decoder. `encode` reads one, for all
/// sequences started from then on and their forks; earlier ones keep theirs. cross_attention(i) has a weight for each
/// of its positions: where the last token of item i of the last pass looked, to say what follows it.
template <class M>
concept EncoderDecoderModel = BatchModel<M> && requires(M& model, std::span<const token_id> source, std::size_t i) {
  model.encode(source);
  std::span<const float>(model.cross_attention(i));
};

/// Says which tokens may come next, and follows those that do. `fill` sets, in a mask of zeros with bit id % 64 of word
/// id / 64, the bits of the tokens that may come next; `accept` moves on by a token that may; `rollback(n)` undoes the
/// last n accepts; `finished` says whether the text may end here. A copy is a fork: it goes its own way from then on.
template <class C>
concept TokenConstraint = std::copyable<C> && requires(C& constraint, const C& constant, std::span<std::uint64_t> mask,
                                                       token_id token, std::size_t count) {
  constraint.fill(mask);
  constraint.accept(token);
  constraint.rollback(count);
  { constant.finished() } -> std::convertible_to<bool>;
};

/// A TokenConstraint that asks for something to be reached, in steps: `progress` of at most `goal` are done, after one
/// token more `progress_after` of them, and `advancing` appends the tokens after which it is more. Search holds places
/// for every stage of progress.
template <class C>
concept ProgressConstraint =
    TokenConstraint<C> && requires(const C& constant, token_id token, std::vector<token_id>& tokens) {
      { constant.progress() } -> std::convertible_to<std::size_t>;
      { constant.progress_after(token) } -> std::convertible_to<std::size_t>;
      { constant.goal() } -> std::convertible_to<std::size_t>;
      constant.advancing(tokens);
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
