// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/generate/options.hpp>
#include <decant/generate/output.hpp>
#include <decant/generate/token_stream.hpp>
#include <decant/math/sum_tree.hpp>
#include <decant/speculative/coupled_verification.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/draft_length.hpp>
#include <decant/speculative/lossless_verification.hpp>
#include <decant/speculative/statistics.hpp>
#include <decant/speculative/target_laws.hpp>
#include <decant/speculative/verdict.hpp>

namespace decant {

/// How to speculate. Every default is lossless.
struct speculation_options {
  draft_length length = draft_length::fixed(5);  ///< how deep to draft
  std::size_t max_nodes = 0;                     ///< the most nodes of a tree; 0: as many as a chain of that depth has
  /// A path ends where the drafter gives no token so large a probability: by its chain's law where it has a chain, by
  /// its row where not. Drafters that copy text pay no heed.
  double min_confidence = 0;

  /// What drafting one token costs, as a share of a pass of the target; 0: nothing, so that drafting cannot lose. With
  /// a cost, drafting is given up for the rest of a sequence once `patience` drafted tokens have been tried and no
  /// length would be faster than plain decoding at the rate at which they were accepted; the statistics then say so.
  double cost = 0;
  std::size_t patience = 64;
  /// Measures the cost by the clock instead. The law of what comes out is the same, but a run can no longer be
  /// repeated: when tokens are drafted then depends on the machine.
  bool adapt_to_time = false;

  std::function<void(const round_outcome&)> on_round{};  ///< called after every round
};

/// What a speculative generation came to.
struct speculation : generation {
  speculation_statistics statistics;
};

namespace detail {

/// The streams of a round, all children of the request's stream by the number of tokens before it. Keyed by position
/// and purpose alone, a token that was drafted in vain would have a say in what replaces it.
struct round_draws {
  explicit round_draws(const draw_stream& request, std::size_t base)
      : round(request.at(base).child(base)),
        drafting(round.child(0)),
        acceptance(round.child(1)),
        rest(round.child(2)) {}

  draw_stream round, drafting, acceptance, rest;
};

}  // namespace detail

/// A speculative generation, one token at a time: an input range of token_event, as token_stream is.
///
/// Each round a drafter proposes continuations, one pass of the target scores them all, a rule accepts some, and one
/// more token follows: what comes out has the law of plain decoding (see the rule), and where drafts are deterministic
/// or the rule is coupled_verification it is token for token what token_stream gives with that seed. Both sides see the
/// chain at every drafted position with the history that it would have; policies with state are moved along and back.
/// Log-probabilities are the target's. Stop tokens, stop strings, criteria and limits end the output exactly where
/// plain decoding would, also inside a draft; the model then holds what it would hold after plain decoding. A row of
/// the target from which nothing can be drawn ends a draft before it, and the generation when it is reached.
///
/// The model must score many tokens in a pass; where it is a TreeModel, drafts may be trees, else their first path is
/// used. What an engine does with its cache it is told as the model: score, then truncate or keep. The decoder is
/// copied; where its sampler has no law that could be asked for, verification is coupled. The drafter is the caller's
/// and is started anew. In steady state nothing allocates beside the model and the drafter.
/// Misuse: an empty prompt, stop strings without `bytes`, a drafter that proposes more than it was asked for, a cost
/// that is negative or NaN, a min_confidence outside [0, 1]. Reference: Leviathan, Kalman, Matias, "Fast inference from
/// transformers via speculative decoding", ICML 2023, arXiv 2211.17192.
template <ScoringModel M, DraftSource S, Decoder D, class Rule = lossless_verification>
class speculative_stream {
 public:
  speculative_stream(M& model, std::span<const token_id> prompt, S& drafter, D decoder, generate_options options = {},
                     speculation_options speculation = {}, Rule rule = {})
      : model_(&model),
        drafter_(&drafter),
        decoder_(std::move(decoder)),
        rule_(std::move(rule)),
        how_(std::move(speculation)),
        output_(prompt, std::move(options)),
        text_(prompt.begin(), prompt.end()) {
    DECANT_ASSERT(how_.cost >= 0, "what drafting costs is a number >= 0");
    DECANT_ASSERT(how_.min_confidence >= 0 && how_.min_confidence <= 1, "a confidence lies in [0, 1]");
    output_.start(model);
    detail::reset_drafter(drafter);
  }

  /// Generates the next token: from the last round, or by another one. Null when the generation has ended; the event is
  /// valid until the next call.
  const token_event* next() {
    if (output_.ended()) return nullptr;
    if (next_ready_ == ready_count_) {
      if (status_ == row_status::ok) round();
      if (next_ready_ == ready_count_) {
        output_.fail(status_);
        return nullptr;
      }
    }
    const decided& now = ready_[next_ready_++];
    const token_event* event = output_.append(now.token, &now.report);
    if (event->finish != finish_reason::none) forget_the_rest();
    return event;
  }

  /// Ends the generation; text held back for a possible stop string goes to the result.
  void cancel() {
    output_.cancel();
    forget_the_rest();
  }

  [[nodiscard]] const generation& result() const& { return output_.result(); }
  [[nodiscard]] speculation result() && { return {std::move(output_.result()), std::move(seen_)}; }
  [[nodiscard]] const speculation_statistics& statistics() const { return seen_; }

  /// Prompt and output.
  [[nodiscard]] std::span<const token_id> tokens() const { return output_.tokens(); }

  using iterator = detail::event_iterator<speculative_stream>;

  [[nodiscard]] iterator begin() { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  /// A token that the last round decided.
  struct decided {
    token_id token = no_token;
    token_log_probs report;
  };

  static constexpr bool law_at_compile_time =
      requires(D& d, std::span<const float> row, const step_context& c, law& out) { d.law_of(row, c, out); };

  void round() {
    hold_all_but_the_last();
    const std::size_t base = text_.size();
    const detail::round_draws draws(output_.draws(), base);
    next_ready_ = ready_count_ = 0;
    detail::stopwatch watch;
    const std::size_t depth = make_draft(draws);
    seen_.draft_seconds += watch.lap();
    make_room(depth);
    score();
    const double target_seconds = watch.lap();
    seen_.target_seconds += target_seconds;
    if (uses_laws()) {
      verify_by_laws(draws);
    } else {
      verify_coupled_with_request();
    }
    const double verify_seconds = watch.lap();
    seen_.verify_seconds += verify_seconds;
    settle(base, depth);
    generation& result = output_.result();
    result.model_seconds += target_seconds;
    result.decode_seconds += verify_seconds;
  }

  /// Gives the model all tokens but the last, whose row begins the round. After a round that is so already: this is for
  /// the prompt.
  void hold_all_but_the_last() {
    const auto missing =
        std::span<const token_id>(text_).subspan(model_->size()).first(text_.size() - 1 - model_->size());
    if (missing.empty()) return;
    detail::stopwatch watch;
    static_cast<void>(model_->evaluate(missing));
    rows_.resize(missing.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] = i;
    detail::show_to(*drafter_, *model_, rows_);
    output_.result().prompt_seconds += watch.lap();
  }

  /// For a draft that is accepted whole, which may be rare: so that nothing allocates then.
  void make_room(std::size_t depth) {
    ready_.reserve(depth + 1);
    verdict_.path.reserve(depth);
    rows_.reserve(depth + 1);
  }

  /// Asks the drafter; returns the depth of what it proposed.
  std::size_t make_draft(const detail::round_draws& draws) {
    draft_.clear();
    draft_request request;
    request.max_depth = wanted_depth();
    if (request.max_depth == 0) return 0;
    request.max_nodes = how_.max_nodes == 0 ? request.max_depth : how_.max_nodes;
    if (output_.options().context_length > 0) {
      request.max_nodes = std::min(request.max_nodes, output_.options().context_length - text_.size());
    }
    request.context = context_after(text_, output_.prompt_size(), draws.round);
    request.draws = draws.drafting.at(text_.size());
    request.min_confidence = how_.min_confidence;
    request.stop_tokens = output_.options().stop_tokens;
    drafter_->propose(request, draft_);
    DECANT_ASSERT(draft_.size() <= request.max_nodes, "the drafter proposed more nodes than it was asked for");
    if constexpr (!TreeModel<M>) draft_.keep_first_path();
    chain_ = draft_.is_chain();
    const std::size_t depth = chain_ ? draft_.size() : draft_.max_depth();
    DECANT_ASSERT(depth <= request.max_depth, "the drafter proposed a longer path than it was asked for");
    return depth;
  }

  /// The last token that a limit allows is the target's own: drafting it would be idle.
  [[nodiscard]] std::size_t wanted_depth() {
    if (how_.adapt_to_time && seen_.drafted_rounds > 0) how_.length.set_cost(seen_.measured_cost());
    if (!seen_.fell_back && drafting_loses()) {
      seen_.fell_back = true;
      seen_.fell_back_after = text_.size() - output_.prompt_size();
    }
    const std::size_t room = output_.room();
    return seen_.fell_back || room == 0 ? 0 : std::min(how_.length.next(seen_), room - 1);
  }

  [[nodiscard]] bool drafting_loses() const {
    const double cost = how_.adapt_to_time ? seen_.measured_cost() : how_.cost;
    constexpr std::size_t longest = 64;
    return cost > 0 && seen_.drafted_tokens_tried() >= how_.patience &&
           optimal_draft_length(seen_.acceptance_rate(), cost, longest) == 0;
  }

  /// One pass over the last token and the draft.
  void score() {
    pass_.assign(1, text_.back());
    pass_.insert(pass_.end(), draft_.tokens().begin(), draft_.tokens().end());
    if constexpr (TreeModel<M>) {
      if (!draft_.empty() && !chain_) {
        parents_.assign(1, no_parent);
        for (const std::int32_t parent : draft_.parents()) parents_.push_back(parent + 1);
        model_->score(pass_, parents_);
        return;
      }
    }
    model_->score(std::span<const token_id>(pass_));
  }

  /// The logits of what follows a node.
  [[nodiscard]] auto row(std::int32_t node) {
    return detail::without_padding(*model_, model_->row(static_cast<std::size_t>(node) + 1));
  }

  /// Deterministic drafts and empty ones need no laws: the request's stream decides as it would without them. But a
  /// lossy rule is asked every round, for it may not want a draw.
  [[nodiscard]] bool uses_laws() const {
    if constexpr (law_at_compile_time && !std::is_same_v<Rule, coupled_verification>) {
      if (!detail::decoder_has_law(decoder_)) return false;
      return !is_lossless<Rule> || (!draft_.empty() && draft_.mode() != proposal::deterministic);
    } else {
      return false;
    }
  }

  void verify_by_laws(const detail::round_draws& draws) {
    if constexpr (law_at_compile_time && !std::is_same_v<Rule, coupled_verification>) {
      const auto rows = [this](std::int32_t node) { return row(node); };
      laws_.begin(draft_, output_.prompt_size(), draws.round);
      const auto target = [&](std::int32_t node) -> const law& { return laws_.at(node, decoder_, text_, rows); };
      const std::size_t base = text_.size();
      stream_decisions decide(draws.acceptance.at(base));
      rule_(draft_, target, decide, verdict_);
      // From the root down once more: the chain reports on each token, and accepts it.
      laws_.go_to(no_parent, decoder_, text_, rows);
      std::int32_t node = no_parent;
      for (const std::size_t step : verdict_.path) {
        const auto child = static_cast<std::int32_t>(step);
        report_on(node, laws_.context(text_), draft_.token(child));
        laws_.go_to(child, decoder_, text_, rows);
        node = child;
      }
      const token_id token = draw(*verdict_.next, draws.rest.at(text_.size()), purpose::residual, 0, draw_workspace_);
      if (token == no_token) {
        status_ = status_of(node);
        return;
      }
      report_on(node, laws_.context(text_), token);
      laws_.accept(token, node, decoder_, text_, rows);
    }
  }

  void report_on(std::int32_t node, const step_context& context, token_id token) {
    decided& here = take_place(token);
    if (!output_.options().log_probs) return;
    if constexpr (requires {
                    decoder_.report_on(row(node), context, token, *output_.options().log_probs, here.report);
                  }) {
      decoder_.report_on(row(node), context, token, *output_.options().log_probs, here.report);
    } else {
      DECANT_ASSERT(false, "this decoder cannot report log-probabilities");
    }
  }

  /// Why nothing could be drawn after a node: what a plain step there would have said.
  [[nodiscard]] row_status status_of(std::int32_t node) {
    return decoder_.try_step(row(node), laws_.context(text_)).status;
  }

  void verify_coupled_with_request() {
    const auto decide = [this](std::int32_t node) {
      decided& here = take_place(no_token);
      const step_outcome outcome =
          detail::step_and_report(decoder_, row(node), context_after(text_, output_.prompt_size(), output_.draws()),
                                  output_.options(), here.report);
      if (outcome.status != row_status::ok || outcome.token == no_token) {
        --ready_count_;
        status_ = outcome.status == row_status::ok ? row_status::empty : outcome.status;
        return no_token;
      }
      here.token = outcome.token;
      text_.push_back(outcome.token);
      return outcome.token;
    };
    verdict_.clear();
    static_cast<void>(verify_coupled(draft_, decide, verdict_.path));
  }

  decided& take_place(token_id token) {
    if (ready_.size() == ready_count_) ready_.emplace_back();
    ready_[ready_count_].token = token;
    return ready_[ready_count_++];
  }

  /// Tells the model what to keep, the drafter what became of its draft, and counts.
  void settle(std::size_t base, std::size_t depth) {
    const std::vector<std::size_t>& path = verdict_.path;
    rows_.assign(1, 0);
    for (const std::size_t node : path) rows_.push_back(node + 1);
    detail::show_to(*drafter_, *model_, std::span<const std::size_t>(rows_));
    if (chain_ || draft_.empty()) {
      model_->truncate(base + path.size());
    } else if constexpr (TreeModel<M>) {
      model_->keep(rows_);
    }
    const std::int32_t last = path.empty() ? no_parent : static_cast<std::int32_t>(path.back());
    const bool rejected = draft_.first_child(last) != no_node;
    seen_.count(draft_.size(), depth, path.size(), rejected);
    how_.length.feedback(depth, path.size());
    const round_outcome outcome{text_, base, depth, path, rejected};
    detail::feedback_to(*drafter_, outcome);
    if (how_.on_round) how_.on_round(outcome);
  }

  /// After the end: what was decided beyond it does not count, and the model holds what it would hold after plain
  /// decoding.
  void forget_the_rest() {
    next_ready_ = ready_count_ = 0;
    model_->truncate(std::min(model_->size(), output_.tokens().size() - 1));
  }

  M* model_;
  S* drafter_;
  D decoder_;
  Rule rule_;
  speculation_options how_;
  detail::generation_output output_;
  speculation_statistics seen_;

  std::vector<token_id> text_;  // prompt and all that was decided, also what has not been handed out
  std::vector<decided> ready_;  // the last round's tokens: from next_ready_ to ready_count_
  std::size_t next_ready_ = 0, ready_count_ = 0;
  row_status status_ = row_status::ok;  // of the row after them

  draft draft_;
  bool chain_ = true;
  verdict verdict_;
  detail::target_laws<D> laws_;
  math::sum_tree draw_workspace_;
  std::vector<token_id> pass_;
  std::vector<std::int32_t> parents_;
  std::vector<std::size_t> rows_;
};

}  // namespace decant
