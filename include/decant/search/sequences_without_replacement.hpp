// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/chain/any.hpp>
#include <decant/chain/decoder.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/generate/limits.hpp>
#include <decant/generate/output.hpp>
#include <decant/generate/stopping.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/sum_tree.hpp>

namespace decant {

/// How to sample. Everything has a default that leaves the rest effective.
struct without_replacement_options {
  std::size_t max_new_tokens = 256;  ///< at least 1
  std::size_t context_length = 0;    ///< prompt and output together; 0: what the model's sequence_length() says, if any

  std::vector<token_id> end_tokens{};  ///< a sequence ends with any of them

  /// Run on every row, with its sequence as context: sequences are drawn from the distribution that they make. They may
  /// keep no state.
  dynamic_chain processors{};

  std::uint64_t seed = 0;
  std::uint64_t sequence = 0;     ///< names this request among those with one seed
  decision_hook* hook = nullptr;  ///< for tests: makes the random decisions

  /// The first rule that is broken, if one is. The constructor of sequences_without_replacement raises parameter_error
  /// for it.
  [[nodiscard]] std::optional<parameter_fault> validate() const {
    if (max_new_tokens >= 1) return {};
    return parameter_fault{"sequences_without_replacement", "max_new_tokens", static_cast<double>(max_new_tokens),
                           "must be >= 1"};
  }
};

/// A sequence drawn from what was left.
struct fresh_sequence {
  std::vector<token_id> tokens;  ///< without the prompt; an end token stands last
  double log_prob = 0;           ///< sum of the tokens' log-probabilities, as processed, whatever was drawn before
  finish_reason finish = finish_reason::none;
  token_id end_token = no_token;       ///< which end token, for finish_reason::stop_token
  row_status status = row_status::ok;  ///< why, for finish_reason::bad_row
};

/// Different sequences from a model, one after another, until there are no more: an input range of fresh_sequence.
///
///     for (const fresh_sequence& s : sequences_without_replacement(model, prompt, options)) ...
///
/// Effect: each is an ordinary sample under the condition that it is none of those before (the Plackett-Luce law of
/// whole sequences); the first is what `generate` with multinomial draws from the same seed. How many there will be
/// need not be known, unlike in stochastic_beam_search. A row that cannot be decoded ends its sequence with
/// finish_reason::bad_row; a sequence that reaches max_new_tokens is complete as it is.
/// How: a trie of all prefixes visited, each with the share of its mass that is left. Shares are sums of what is left
/// below, never differences, so nothing cancels: what is used up is exactly 0.
/// Complexity: a row is asked of the model once for each new prefix; a draw costs O(law) for each token of a sequence,
/// and the trie O(law) memory for each prefix, where a truncation among the processors keeps laws short.
/// Errors: parameter_error for max_new_tokens = 0 (options.validate() tells without exceptions). Misuse: an empty
/// prompt, processors that keep state, giving tokens to the model between two calls.
/// Reference: Shi, Bieber, Sutton, "Incremental sampling without replacement for sequence models", ICML 2020,
/// arXiv 2002.09067.
template <Model M>
class sequences_without_replacement {
 public:
  sequences_without_replacement(M& model, std::span<const token_id> prompt, without_replacement_options options = {})
      : model_(&model),
        options_(std::move(options)),
        prompt_size_(prompt.size()),
        draws_(draw_stream(options_.seed, options_.sequence).with_hook(options_.hook)),
        text_(prompt.begin(), prompt.end()) {
    DECANT_ASSERT(!prompt.empty(), "a search needs a prompt of at least one token");
    DECANT_ASSERT(!options_.processors.keeps_state(), "processors in a search may keep no state");
    detail::raise_if(options_.validate());
    detail::adopt_context_of(options_, model);
    model.truncate(0);
    nodes_.emplace_back();
  }

  /// Draws the next sequence. Null when there is none left; valid until the next call.
  const fresh_sequence* next() {
    if (nodes_[0].left == 0) return nullptr;
    descend();
    use_up();
    ++drawn_;
    return &result_;
  }

  /// The probability of all sequences that have not been drawn: 1 minus the sum of those that have, without the loss.
  [[nodiscard]] double remaining() const { return nodes_[0].left; }

  /// How many have been drawn.
  [[nodiscard]] std::size_t drawn() const { return drawn_; }

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = fresh_sequence;
    using difference_type = std::ptrdiff_t;

    iterator() = default;
    explicit iterator(sequences_without_replacement& from) : from_(&from), current_(from.next()) {}

    const fresh_sequence& operator*() const { return *current_; }
    const fresh_sequence* operator->() const { return current_; }
    iterator& operator++() {
      current_ = from_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t) { return it.current_ == nullptr; }

   private:
    sequences_without_replacement* from_ = nullptr;
    const fresh_sequence* current_ = nullptr;
  };

  iterator begin() { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  /// A prefix that has been visited. A complete sequence has no law.
  struct node {
    struct branch {
      token_id token;
      std::uint32_t node;
    };

    bool visited = false;
    finish_reason finish = finish_reason::none;
    row_status status = row_status::ok;
    law unused{};                   // the next token's, each weight times the share that is left behind it
    std::vector<double> weights{};  // the same without the shares
    double total = 0;               // of the weights when nothing was used up
    double left = 1;                // the share of the mass that is left
    std::vector<branch> branches{};
  };

  /// Walks from the root to a complete sequence, drawing what is not used up.
  void descend() {
    text_.resize(prompt_size_);
    path_.assign(1, 0);
    result_ = {};
    const draw_stream draws = drawn_ == 0 ? draws_ : draws_.child(drawn_);
    for (std::uint32_t at = 0;; at = path_.back()) {
      if (!nodes_[at].visited) visit(nodes_[at]);
      if (nodes_[at].finish != finish_reason::none) break;
      const law& unused = nodes_[at].unused;
      const token_id token = draw(unused, draws.at(text_.size()), purpose::sample, 0, workspace_);
      result_.log_prob += math::log(nodes_[at].weights[place_of(unused, token)] / nodes_[at].total);
      text_.push_back(token);
      path_.push_back(child(at, token));
    }
    const node& last = nodes_[path_.back()];
    result_.tokens.assign(text_.begin() + static_cast<std::ptrdiff_t>(prompt_size_), text_.end());
    result_.finish = last.finish;
    result_.status = last.status;
    if (last.finish == finish_reason::stop_token) result_.end_token = text_.back();
  }

  /// Finds out what may follow the text, or that nothing does.
  void visit(node& fresh) {
    fresh.visited = true;
    fresh.finish = finish_of_text();
    if (fresh.finish != finish_reason::none) return;
    const step_context context = context_after(text_, prompt_size_, draws_);
    const detail::bound_row bound(row_, row_after_text());
    options_.processors(row_, context);
    row_.probabilities(fresh.unused);
    fresh.status = row_.status();
    if (fresh.unused.empty()) fresh.finish = finish_reason::bad_row;
    fresh.weights = fresh.unused.weights;
    fresh.total = fresh.unused.total;
  }

  [[nodiscard]] finish_reason finish_of_text() const {
    const std::size_t length = text_.size() - prompt_size_;
    if (length > 0 && detail::is_among(options_.end_tokens, text_.back())) return finish_reason::stop_token;
    return detail::limit_reached(options_, prompt_size_, length);
  }

  /// The model's row, given what it holds of an earlier text.
  auto row_after_text() {
    std::size_t common = 0;
    while (common < held_.size() && common + 1 < text_.size() && held_[common] == text_[common]) ++common;
    model_->truncate(common);
    held_.assign(text_.begin(), text_.end());
    return detail::without_padding(*model_, model_->evaluate(std::span<const token_id>(text_).subspan(common)));
  }

  /// The node that follows another with a token, made if it is new.
  std::uint32_t child(std::uint32_t at, token_id token) {
    for (const auto& branch : nodes_[at].branches) {
      if (branch.token == token) return branch.node;
    }
    if (spare_.empty()) {
      spare_.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.emplace_back();
    }
    const std::uint32_t made = spare_.back();
    spare_.pop_back();
    nodes_[at].branches.push_back({token, made});
    return made;
  }

  /// Takes the sequence just drawn out of the trie, from its end to the root.
  void use_up() {
    nodes_[path_.back()].left = 0;
    for (std::size_t depth = path_.size() - 1; depth > 0; --depth) {
      node& parent = nodes_[path_[depth - 1]];
      const double share = nodes_[path_[depth]].left;
      law& unused = parent.unused;
      unused.block_bounds.clear();  // they bound what was; the rest is drawn by inverse CDF
      const std::size_t place = place_of(unused, text_[prompt_size_ + depth - 1]);
      unused.weights[place] = parent.weights[place] * share;
      if (!(unused.weights[place] > 0)) {
        forget(parent, place);
        nodes_[path_[depth]] = {};
        spare_.push_back(path_[depth]);
      }
      unused.total = sum_of_weights(unused.weights);
      parent.left = unused.total / parent.total;
    }
  }

  static void forget(node& of, std::size_t place) {
    const auto at = static_cast<std::ptrdiff_t>(place);
    const token_id token = of.unused.ids[place];
    std::erase_if(of.branches, [token](const auto& branch) { return branch.token == token; });
    of.unused.ids.erase(of.unused.ids.begin() + at);
    of.unused.weights.erase(of.unused.weights.begin() + at);
    of.weights.erase(of.weights.begin() + at);
  }

  static std::size_t place_of(const law& in, token_id token) {
    return static_cast<std::size_t>(std::lower_bound(in.ids.begin(), in.ids.end(), token) - in.ids.begin());
  }

  M* model_;
  without_replacement_options options_;
  std::size_t prompt_size_;
  draw_stream draws_;
  std::vector<token_id> text_;  // the prompt, and the output that is being drawn
  std::vector<token_id> held_;  // what the model holds
  std::vector<node> nodes_;     // the trie; the first is the root
  std::vector<std::uint32_t> path_, spare_;
  std::size_t drawn_ = 0;
  fresh_sequence result_;
  candidates row_;
  math::sum_tree workspace_;
};

}  // namespace decant
