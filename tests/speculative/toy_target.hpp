// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/token.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/testing/markov_model.hpp>

namespace toy {

using decant::token_id;
using tokens = std::vector<token_id>;

/// A target that shows all that drafters from inside it want to see, made of tables: rows are functions of the text,
/// and so are the rows of heads, of early exits and of passes that skip, each from a table of its own. Leaving after
/// the last layer, and skipping nothing, is the model itself. A hidden state is the size of the text and its last
/// token.
class target {
 public:
  target(std::size_t vocabulary, std::uint64_t seed, std::size_t heads = 3, std::size_t layers = 4)
      : layers_(layers), model_(decant::testing::random_markov_model(vocabulary, 2, seed)) {
    for (std::size_t k = 1; k <= heads; ++k) {
      heads_.push_back(decant::testing::random_markov_model(vocabulary, 2, seed + 100 * k));
    }
    for (std::size_t depth = 1; depth < layers; ++depth) {
      exits_.push_back(decant::testing::random_markov_model(vocabulary, 2, seed + 7 * depth));
    }
  }

  [[nodiscard]] std::span<const float> row_after(std::span<const token_id> text) const {
    return model_.row_after(text);
  }

  // ---- Model, ScoringModel, TreeModel

  std::span<const float> evaluate(std::span<const token_id> more) {
    score(more);
    return row(texts_.size() - 1);
  }

  void score(std::span<const token_id> more) {
    begin();
    for (const token_id token : more) {
      held_.push_back(token);
      texts_.push_back(held_);
    }
  }

  void score(std::span<const token_id> nodes, std::span<const std::int32_t> parents) {
    begin();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      texts_.push_back(parents[i] == decant::no_parent ? held_ : texts_[static_cast<std::size_t>(parents[i])]);
      texts_.back().push_back(nodes[i]);
    }
  }

  void keep(std::span<const std::size_t> path) {
    if (!path.empty()) held_ = texts_[path.back()];
  }

  [[nodiscard]] std::span<const float> row(std::size_t i) const {
    return (skipped_ == npos ? model_ : exits_[skipped_]).row_after(texts_.at(i));
  }
  [[nodiscard]] std::size_t size() const { return held_.size(); }
  [[nodiscard]] std::size_t vocabulary_size() const { return model_.vocabulary_size(); }
  void truncate(std::size_t length) { held_.resize(length); }

  // ---- HiddenRowModel, HeadedModel

  [[nodiscard]] std::span<const float> hidden(std::size_t i) {
    hidden_ = {static_cast<float>(texts_.at(i).size()), static_cast<float>(texts_.at(i).back())};
    return hidden_;
  }
  [[nodiscard]] std::size_t head_count() const { return heads_.size(); }
  [[nodiscard]] std::span<const float> head_row(std::size_t k, std::size_t i) const {
    return heads_.at(k - 1).row_after(texts_.at(i));
  }

  // ---- SkippableModel, LayeredModel

  [[nodiscard]] std::size_t n_layers() const { return layers_; }
  [[nodiscard]] std::size_t sub_layers() const { return 2 * layers_; }
  std::span<const float> evaluate_skipping(std::span<const token_id> more, const std::vector<bool>& skip) {
    score_skipping(more, skip);
    return row(texts_.size() - 1);
  }
  void score_skipping(std::span<const token_id> more, const std::vector<bool>& skip) {
    score(more);
    last_skip = skip;
    // The more is skipped, the shallower the exit that stands for it.
    const auto count = static_cast<std::size_t>(std::ranges::count(skip, true));
    if (count > 0) skipped_ = exits_.size() - std::min(count, exits_.size());
  }
  std::span<const float> peek(std::span<const token_id> more, std::size_t depth) {
    if (depth != peek_depth_) peeked_.clear();
    peek_depth_ = depth;
    peeked_.insert(peeked_.end(), more.begin(), more.end());
    tokens text = held_;
    text.insert(text.end(), peeked_.begin(), peeked_.end());
    return (depth == layers_ ? model_ : exits_.at(depth - 1)).row_after(text);
  }

  [[nodiscard]] const decant::testing::markov_model& exit(std::size_t depth) const { return exits_.at(depth - 1); }
  [[nodiscard]] const decant::testing::markov_model& head(std::size_t k) const { return heads_.at(k - 1); }
  [[nodiscard]] const tokens& held() const { return held_; }

  std::vector<bool> last_skip;  // of the last pass that skipped

 private:
  void begin() {
    texts_.clear();
    peeked_.clear();
    skipped_ = npos;
  }

  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  std::size_t layers_;
  decant::testing::markov_model model_;
  std::vector<decant::testing::markov_model> heads_, exits_;
  tokens held_, peeked_;
  std::size_t peek_depth_ = 0;
  std::vector<tokens> texts_;   // of the rows of the last pass
  std::size_t skipped_ = npos;  // the exit that stands for the skipping pass, if it was one
  std::vector<float> hidden_;
};

static_assert(decant::TreeModel<target> && decant::HiddenRowModel<target> && decant::HeadedModel<target> &&
              decant::SkippableModel<target> && decant::LayeredModel<target>);

inline token_id argmax(std::span<const float> row) {
  return static_cast<token_id>(std::ranges::max_element(row) - row.begin());
}

/// A request after a text, as a round makes it.
inline decant::draft_request request_after(std::span<const token_id> text, std::size_t max_depth = 8,
                                           std::size_t max_nodes = 128, decant::decision_hook* hook = nullptr) {
  const auto round = decant::draw_stream(5).with_hook(hook).child(text.size());
  decant::draft_request request;
  request.context = decant::context_after(text, 1, round);
  request.draws = round.child(1);
  request.max_depth = max_depth;
  request.max_nodes = max_nodes;
  return request;
}

/// What the rounds of a greedy generation came to.
struct rounds {
  tokens text;
  std::size_t passes = 0;  // of the target, after the prompt's
  std::size_t proposed = 0, accepted = 0;
};

/// Greedy speculation in its plainest form, for tests of drafters alone: a draft is scored together with the token that
/// waits, and followed as long as its nodes are the target's argmax.
template <class M, class D>
rounds greedy_rounds(M& model, D& drafter, tokens text, std::size_t count, std::size_t max_depth = 8) {
  rounds done;
  const std::size_t end = text.size() + count;
  std::vector<std::size_t> rows(text.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  model.truncate(0);
  model.score(text);
  token_id next = argmax(model.row(text.size() - 1));
  decant::detail::show_to(drafter, model, rows);
  text.push_back(next);
  decant::draft draft;
  while (text.size() < end) {
    draft.clear();
    drafter.propose(request_after(text, max_depth), draft);
    tokens nodes{text.back()};
    std::vector<std::int32_t> parents{decant::no_parent};
    for (std::size_t i = 0; i < draft.size(); ++i) {
      nodes.push_back(draft.tokens()[i]);
      parents.push_back(draft.parents()[i] + 1);
    }
    model.score(nodes, parents);
    std::vector<std::size_t> path;
    rows.assign(1, 0);
    std::int32_t at = decant::no_parent;
    next = argmax(model.row(0));
    for (std::int32_t child; (child = draft.child_with(at, next)) != decant::no_node; at = child) {
      text.push_back(next);
      path.push_back(static_cast<std::size_t>(child));
      rows.push_back(path.back() + 1);
      next = argmax(model.row(rows.back()));
    }
    decant::detail::show_to(drafter, model, rows);
    model.keep(rows);
    decant::round_outcome outcome;
    outcome.base = text.size() - path.size();
    text.push_back(next);
    outcome.tokens = text;
    outcome.proposed = draft.max_depth();
    outcome.path = path;
    outcome.rejected = draft.first_child(at) != decant::no_node;
    decant::detail::feedback_to(drafter, outcome);
    ++done.passes;
    done.proposed += outcome.proposed;
    done.accepted += path.size();
  }
  text.resize(end);
  done.text = std::move(text);
  return done;
}

/// The same text without speculation.
template <class M>
tokens greedy_text(M& model, tokens text, std::size_t count) {
  model.truncate(0);
  std::span<const token_id> more = text;
  for (std::size_t i = 0; i < count; ++i) {
    text.push_back(argmax(model.evaluate(more)));
    more = std::span<const token_id>(text).last(1);
  }
  return text;
}

}  // namespace toy
