// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/chain/steps.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/law.hpp>
#include <decant/generate/output.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/sum_tree.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/residual.hpp>
#include <decant/speculative/target_laws.hpp>

namespace decant {

/// The classic drafter: a smaller model with the same vocabulary, which decodes ahead with a chain of its own.
///
/// Effect: proposes a chain, each token drawn from the law that its decoder leaves; that law is what verification sees,
/// so that the chain may be any, the target's or not. A greedy decoder makes deterministic drafts. A draft ends at a
/// stop token, where the largest probability is below request.min_confidence (known before the token is drawn: a rule
/// that looked at the token would bias the output), at a row from which nothing can be drawn, and at the model's
/// context. The model is a reference; it holds what it was last asked about, and is given only what differs.
/// Parts of the chain with state follow the tokens generated, those that were drafted elsewhere without a record.
/// One pass of the model a drafted token; nothing allocates in steady state beside it.
/// Reference: Leviathan, Kalman, Matias, "Fast inference from transformers via speculative decoding", ICML 2023,
/// arXiv 2211.17192.
template <Model M, Decoder D>
class draft_model {
 public:
  draft_model(M& model, D decoder) : model_(&model), decoder_(std::move(decoder)) {}

  void propose(const draft_request& request, draft& out) {
    follow(request.context);
    out.set_mode(is_greedy() ? proposal::deterministic : proposal::with_replacement);
    std::int32_t node = no_parent;
    const std::size_t longest = std::min({request.max_depth, request.max_nodes, room()});
    for (std::size_t i = 0; i < longest; ++i) {
      const auto row = evaluate_pending();
      law& q = out.children_law(node);
      const step_context context = context_after(text_, request.context.prompt_size, request.context.draws);
      decoder_.law_of(row, context, q);
      if (q.empty() || (request.min_confidence > 0 && confidence(row, context, q) < request.min_confidence)) return;
      const token_id token = draw(q, request.draws.at(text_.size()), purpose::draft, 0, workspace_);
      node = out.add(token, node);
      if (detail::decoder_keeps_state(decoder_)) decoder_.accept(token, decoder_.record_of(row, context, token));
      text_.push_back(token);
      if (detail::stops(request, token)) return;
    }
  }

  void reset() {
    model_->truncate(0);
    decoder_.reset();
    text_.clear();
    accepted_from_ = 0;
  }

 private:
  /// Makes the model, and the chain's state, stand after the tokens given.
  void follow(const step_context& context) {
    const auto same = std::mismatch(text_.begin(), text_.end(), context.tokens.begin(), context.tokens.end());
    const auto common = static_cast<std::size_t>(same.first - text_.begin());
    if (detail::decoder_keeps_state(decoder_)) {
      std::size_t known = common;
      if (common < accepted_from_ || text_.empty()) {
        decoder_.reset();
        accepted_from_ = known = std::min(context.prompt_size, context.tokens.size());
      } else {
        decoder_.rollback(text_.size() - common);
      }
      for (std::size_t i = known; i < context.tokens.size(); ++i) {
        decoder_.accept(context.tokens[i], step_record{});
      }
    }
    text_.resize(common);
    text_.insert(text_.end(), context.tokens.begin() + static_cast<std::ptrdiff_t>(common), context.tokens.end());
    // The last token is evaluated once more where the model holds it: its row is not kept.
    model_->truncate(std::min({model_->size(), common, text_.size() - 1}));
  }

  [[nodiscard]] auto evaluate_pending() {
    return detail::without_padding(*model_, model_->evaluate(std::span<const token_id>(text_).subspan(model_->size())));
  }

  [[nodiscard]] std::size_t room() const {
    if constexpr (requires { model_->sequence_length(); }) {
      const std::size_t length = model_->sequence_length();
      return length - std::min(length, text_.size() - 1);
    } else {
      return static_cast<std::size_t>(-1);
    }
  }

  /// The probability of the best token: of a greedy decoder, before it becomes certain.
  template <class Row>
  [[nodiscard]] double confidence(Row row, const step_context& context, const law& q) {
    if (is_greedy()) return math::exp(decoder_.record_of(row, context, q.ids[0]).log_prob_before);
    return detail::largest_weight(q) / q.total;
  }

  [[nodiscard]] bool is_greedy() const {
    if constexpr (requires { takes_argmax(decoder_.sampler()); }) {
      return takes_argmax(decoder_.sampler());
    } else {
      return false;
    }
  }

  M* model_;
  D decoder_;
  std::vector<token_id> text_;     // what the model was asked about last, drafted tokens too
  std::size_t accepted_from_ = 0;  // the chain's state has seen text_ from here on
  math::sum_tree workspace_;
};

}  // namespace decant
