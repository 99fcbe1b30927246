// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/law.hpp>
#include <decant/speculative/draft.hpp>

namespace decant::detail {

/// Whether a decoder can say which law it draws from. One put together at run time is asked.
template <class D>
bool decoder_has_law(const D& decoder) {
  if constexpr (requires { has_law(decoder.sampler()); }) {
    return has_law(decoder.sampler());
  } else {
    return false;
  }
}

template <class D>
bool decoder_keeps_state(const D& decoder) {
  if constexpr (requires { decoder.keeps_state(); }) {
    return decoder.keeps_state();
  } else {
    return Stateful<D>;
  }
}

/// The laws of the target all over a draft, each made when it is first asked for: with the history that the node would
/// have, and the chain's state as it would be there.
///
/// The chain stands at one node at a time. Going to another undoes the tokens that lead away from it and accepts those
/// that lead there, so that a policy with state never sees a token that is not on the path; one without state costs
/// nothing.
template <class D>
class target_laws {
 public:
  /// Begins a round: after the tokens of `text`, which is used to write histories into and is left at the node that the
  /// chain stands at.
  void begin(const draft& drafted, std::size_t prompt_size, const draw_stream& draws) {
    drafted_ = &drafted;
    prompt_size_ = prompt_size;
    draws_ = draws;
    here_.clear();
    known_.assign(drafted.size() + 1, false);
    if (laws_.size() <= drafted.size()) laws_.resize(drafted.size() + 1);
  }

  /// The law of what follows a node. `row(node)` gives its logits.
  template <class Row>
  const law& at(std::int32_t node, D& decoder, std::vector<token_id>& text, Row row) {
    const auto place = static_cast<std::size_t>(node) + 1;
    if (!known_[place]) {
      go_to(node, decoder, text, row);
      decoder.law_of(row(node), context(text), laws_[place]);
      known_[place] = true;
    }
    return laws_[place];
  }

  /// Moves the chain, and `text`, to a node.
  template <class Row>
  void go_to(std::int32_t node, D& decoder, std::vector<token_id>& text, Row row) {
    drafted_->path_to(node, wanted_);
    const auto split = std::mismatch(here_.begin(), here_.end(), wanted_.begin(), wanted_.end());
    const auto back = static_cast<std::size_t>(here_.end() - split.first);
    if (back > 0 && decoder_keeps_state(decoder)) decoder.rollback(back);
    text.resize(text.size() - back);
    for (auto step = split.second; step != wanted_.end(); ++step) {
      const auto next = static_cast<std::int32_t>(*step);
      accept(drafted_->token(next), drafted_->parent(next), decoder, text, row);
    }
    here_ = wanted_;
  }

  /// Lets the chain, which stands at `node`, accept a token after it.
  template <class Row>
  void accept(token_id token, std::int32_t node, D& decoder, std::vector<token_id>& text, Row row) {
    if (decoder_keeps_state(decoder)) decoder.accept(token, decoder.record_of(row(node), context(text), token));
    text.push_back(token);
  }

  [[nodiscard]] step_context context(std::span<const token_id> text) const {
    return context_after(text, prompt_size_, draws_);
  }

 private:
  const draft* drafted_ = nullptr;
  std::size_t prompt_size_ = 0;
  draw_stream draws_;
  std::vector<std::size_t> here_, wanted_;  // paths from below the root
  std::vector<bool> known_;
  std::deque<law> laws_;  // which stay where they are
};

}  // namespace decant::detail
