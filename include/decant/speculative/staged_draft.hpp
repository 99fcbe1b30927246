// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/math/sum_tree.hpp>
#include <decant/speculative/chain_drafter.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/following_model.hpp>
#include <decant/speculative/lossless_verification.hpp>
#include <decant/speculative/verdict.hpp>

namespace decant {

namespace detail {

/// The streams of the processors of a nested drafter: whoever tosses a coin is found out.
class no_coins final : public decision_hook {
 public:
  std::size_t choose(const draw_key& key, std::span<const double>, double) override {
    raise(parameter_fault{"staged_draft", "decoder", static_cast<double>(key.position),
                          "tokens into the text asked for a random number: its chain must hold no random processor"});
  }
};

}  // namespace detail

/// A draft model that is itself decoded speculatively: a smaller drafter drafts for it, it verifies, and what comes out
/// is drafted for the target. Nests to any depth.
///
/// Effect: a chain of tokens drawn from the draft model's own laws, as draft_model gives, in fewer passes of the draft
/// model: it scores the smaller drafter's proposals, a lossless rule accepts some of them and draws one token more, and
/// so on until the draft is long enough. Each token carries the law of the draft model at its place, which it has
/// exactly; so the target's verification is lossless too. The random decisions of every inner round are children of the
/// outer round's drafting stream, by the number of tokens before. Of an inner draft that is a tree the first path is
/// used. The chain ends at a stop token, where the largest probability is below min_confidence, and on a bad row.
/// Complexity: one pass of the draft model an inner round. The model must outlive the drafter and is its alone.
/// Errors: parameter_error for inner_depth = 0, and when a processor of either chain asks for a random decision, which
/// a nested chain may not: a token drafted in vain would have had a say in its law. Misuse: a processor that asks for a
/// continuous random number, and a decoder with state.
/// Reference: Spector, Ré 2023, "Accelerating LLM inference with staged speculative decoding", arXiv 2308.04623; Chen
/// et al. 2023 (cascade speculative drafting), arXiv 2312.11462.
template <ScoringModel M, DraftSource S, class D>
class staged_draft : public made_or_error<staged_draft<M, S, D>> {
 public:
  static constexpr std::string_view name = "staged_draft";

  /// `inner` drafts up to `inner_depth` tokens at a time for `model`, which is decoded by `decoder`.
  staged_draft(M& model, S inner, D decoder, std::size_t inner_depth = 4)
      : follower_(model), inner_(std::move(inner)), decoder_(std::move(decoder)), inner_depth_(inner_depth) {
    detail::raise_if(fault(inner_depth));
    DECANT_ASSERT(!decoder_.keeps_state(), "a decoder with state cannot draft: nobody tells it what was accepted");
  }

  static std::optional<parameter_fault> validate(const M&, const S&, const D&, std::size_t inner_depth = 4) {
    return fault(inner_depth);
  }

  void propose(const draft_request& request, draft& out) {
    out.set_mode(proposal::with_replacement);
    text_.assign(request.context.tokens.begin(), request.context.tokens.end());
    last_ = no_parent;
    const std::size_t wanted = std::min(request.max_depth, request.max_nodes);
    while (out.size() < wanted && follower_.fits(text_.size()) && inner_round(wanted, request, out)) {
    }
  }

  void reset() { detail::reset_drafter(inner_); }

  [[nodiscard]] S& inner() noexcept { return inner_; }

 private:
  static std::optional<parameter_fault> fault(std::size_t inner_depth) {
    if (inner_depth == 0) return parameter_fault{name, "inner_depth", 0, "must be at least 1"};
    return {};
  }

  /// Decides one token or more; whether the chain may go on.
  bool inner_round(std::size_t wanted, const draft_request& request, draft& out) {
    const std::size_t base = text_.size();
    const draw_stream round = request.draws.at(base).child(base);
    ask_inner(wanted - out.size() - 1, round.child(0), request);
    score(request);
    stream_decisions decide(round.child(1).at(base));
    lossless_verification{}(
        inner_draft_, [this](std::int32_t node) -> const law& { return laws_[static_cast<std::size_t>(node) + 1]; },
        decide, verdict_);
    std::size_t place = 0;
    bool going_on = true;
    for (const std::size_t node : verdict_.path) {
      going_on = going_on && add(inner_draft_.tokens()[node], laws_[place], request, out);
      ++place;
    }
    if (going_on) {
      const token_id token =
          draw(*verdict_.next, round.child(2).at(text_.size()), purpose::residual, 0, draw_workspace_);
      going_on = token != no_token && add(token, laws_[place], request, out);
    }
    const bool rejected = verdict_.path.size() < inner_draft_.size();
    detail::feedback_to(inner_, round_outcome{text_, base, inner_draft_.size(), verdict_.path, rejected});
    return going_on;
  }

  void ask_inner(std::size_t room, const draw_stream& draws, const draft_request& request) {
    inner_draft_.clear();
    draft_request asked;
    asked.max_depth = std::min(room, inner_depth_);
    while (asked.max_depth > 0 && !follower_.fits(text_.size() + asked.max_depth)) --asked.max_depth;
    if (asked.max_depth == 0) return;
    asked.max_nodes = asked.max_depth;
    asked.context = context(text_, request);
    asked.draws = draws.at(text_.size());
    asked.stop_tokens = request.stop_tokens;
    inner_.propose(asked, inner_draft_);
    inner_draft_.keep_first_path();
  }

  /// One pass of the draft model over the inner draft, and its laws at every place.
  void score(const draft_request& request) {
    const std::size_t base = text_.size();
    text_.insert(text_.end(), inner_draft_.tokens().begin(), inner_draft_.tokens().end());
    const std::size_t drafted = inner_draft_.size();
    const auto missing = follower_.follow(text_, drafted + 1);
    M& model = follower_.model();
    model.score(missing);
    if (laws_.size() <= drafted) laws_.resize(drafted + 1);
    for (std::size_t i = 0; i <= drafted; ++i) {
      const auto row = follower_.trimmed(std::span<const float>(model.row(missing.size() - 1 - drafted + i)));
      decoder_.law_of(row, context(std::span<const token_id>(text_).first(base + i), request), laws_[i]);
    }
    text_.resize(base);
  }

  [[nodiscard]] step_context context(std::span<const token_id> tokens, const draft_request& request) {
    return context_after(tokens, request.context.prompt_size, request.context.draws.with_hook(&no_coins_));
  }

  /// Adds a token that was drawn from `from` to the chain, if that is wanted; whether the chain may go on.
  bool add(token_id token, const law& from, const draft_request& request, draft& out) {
    if (out.size() == std::min(request.max_depth, request.max_nodes)) return false;
    if (!detail::is_sure(from, request.min_confidence)) return false;
    out.children_law(last_) = from;
    last_ = out.add(token, last_);
    text_.push_back(token);
    return !detail::stops(request, token);
  }

  detail::following_model<M> follower_;
  S inner_;
  D decoder_;
  std::size_t inner_depth_;
  detail::no_coins no_coins_;
  draft inner_draft_;
  std::vector<token_id> text_;
  std::int32_t last_ = no_parent;  // of the draft
  std::deque<law> laws_;           // the draft model's, after each node of the inner draft, the root first
  verdict verdict_;
  math::sum_tree draw_workspace_;
};

}  // namespace decant
