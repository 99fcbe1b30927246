// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// Something that an output must contain: one of these phrases. The tokenisations of a word are alternatives as well.
struct phrase_choice {
  std::vector<std::vector<token_id>> alternatives;
};

struct required_phrases_options {
  bool ordered = false;  ///< whether each must come after the end of the one before
};

/// A constraint that the output contains all of the given phrases, each as tokens in a row.
///
/// Effect: forbids no token, but the output may not end before all phrases are there. Without an order phrases may
/// overlap and share tokens. Found by one automaton over all phrases, so a mismatch never loses a match that began
/// later: {1, 1, 2} is found in 1 1 1 2. As a ProgressConstraint it counts the tokens of the phrases that are there, of
/// the shortest alternative each, and those of the longest one begun. In beam_options::constraint this is lexically
/// constrained beam search, with a part of the beam for every stage.
/// A copy shares the automaton; accept is O(1) or so a token, a copy and rollback O(tokens accepted).
/// Errors: parameter_error for a choice without alternatives, for an empty phrase, and for more than 64 choices.
/// References: Anderson, Fernando, Johnson, Gould, "Guided open vocabulary image captioning with constrained beam
/// search", EMNLP 2017, arXiv 1612.00576; Post, Vilar, "Fast lexically constrained decoding with dynamic beam
/// allocation", NAACL 2018, arXiv 1804.06609; Aho, Corasick, "Efficient string matching", 1975 (the automaton).
class required_phrases : public made_or_error<required_phrases> {
 public:
  static constexpr std::string_view name = "required_phrases";
  static constexpr std::size_t most_choices = 64;

  explicit required_phrases(const std::vector<phrase_choice>& choices, const required_phrases_options& options = {})
      : ordered_(options.ordered) {
    detail::raise_if(validate(choices, options));
    automaton_ = std::make_shared<const automaton>(choices);
    states_.push_back({});
  }

  static std::optional<parameter_fault> validate(const std::vector<phrase_choice>& choices,
                                                 const required_phrases_options& = {}) {
    const auto fault = [](std::string_view parameter, std::size_t value, std::string_view rule) {
      return parameter_fault{name, parameter, static_cast<double>(value), rule};
    };
    if (choices.size() > most_choices) return fault("choices", choices.size(), "must be at most 64");
    for (const phrase_choice& choice : choices) {
      if (choice.alternatives.empty()) return fault("alternatives", 0, "must be at least 1");
      for (const std::vector<token_id>& phrase : choice.alternatives) {
        if (phrase.empty()) return fault("phrase length", 0, "must be at least 1");
      }
    }
    return {};
  }

  /// Every token may come next.
  void fill(std::span<std::uint64_t> mask) const { std::ranges::fill(mask, ~std::uint64_t{0}); }

  void accept(token_id token) { states_.push_back(after(states_.back(), token)); }

  void rollback(std::size_t count) {
    DECANT_ASSERT(count < states_.size(), "rollback of more tokens than were accepted");
    states_.resize(states_.size() - count);
  }

  /// Whether all phrases are there.
  [[nodiscard]] bool finished() const { return states_.back().met == automaton_->all(); }

  [[nodiscard]] std::size_t progress() const { return progress_of(states_.back()); }
  [[nodiscard]] std::size_t progress_after(token_id token) const { return progress_of(after(states_.back(), token)); }
  [[nodiscard]] std::size_t goal() const { return automaton_->goal(); }

  /// Appends every token that begins a phrase that is not there yet, or goes on with one. Some may stand there twice.
  void advancing(std::vector<token_id>& tokens) const {
    const state& now = states_.back();
    automaton_->each_suffix(now.node, [&](std::uint32_t node) {
      for (const auto& [token, child] : automaton_->at(node).children) {
        if ((automaton_->at(child).passing & wanted(now)) != 0) tokens.push_back(token);
      }
    });
  }

 private:
  using choice_set = std::uint64_t;  // bit i: choice i

  struct state {
    std::uint32_t node = 0;  // the longest end of the text that begins a phrase
    choice_set met = 0;
  };

  /// All alternatives of all choices, as a tree with links from every node to its longest proper suffix in the tree.
  class automaton {
   public:
    struct node_data {
      std::vector<std::pair<token_id, std::uint32_t>> children{};
      std::uint32_t suffix = 0;
      std::uint32_t depth = 0;
      choice_set passing = 0;  // choices with an alternative that begins with this
      choice_set ending = 0;   // choices with an alternative that ends here, or at a suffix of this
    };

    explicit automaton(const std::vector<phrase_choice>& choices) : nodes_(1) {
      for (std::size_t i = 0; i < choices.size(); ++i) {
        const choice_set bit = choice_set{1} << i;
        all_ |= bit;
        std::size_t shortest = choices[i].alternatives.front().size();
        for (const std::vector<token_id>& phrase : choices[i].alternatives) {
          shortest = std::min(shortest, phrase.size());
          insert(phrase, bit);
        }
        lengths_.push_back(shortest);
        goal_ += shortest;
      }
      link();
    }

    [[nodiscard]] const node_data& at(std::uint32_t node) const { return nodes_[node]; }
    [[nodiscard]] choice_set all() const { return all_; }
    [[nodiscard]] std::size_t goal() const { return goal_; }
    /// The length of a choice's shortest alternative.
    [[nodiscard]] std::size_t length(std::size_t choice) const { return lengths_[choice]; }

    [[nodiscard]] std::uint32_t next(std::uint32_t node, token_id token) const {
      for (;; node = nodes_[node].suffix) {
        if (const std::uint32_t child = child_of(node, token); child != 0) return child;
        if (node == 0) return 0;
      }
    }

    /// Calls f with a node and all its suffixes, the root last.
    template <class F>
    void each_suffix(std::uint32_t node, F f) const {
      for (;; node = nodes_[node].suffix) {
        f(node);
        if (node == 0) return;
      }
    }

   private:
    [[nodiscard]] std::uint32_t child_of(std::uint32_t node, token_id token) const {
      for (const auto& [label, child] : nodes_[node].children) {
        if (label == token) return child;
      }
      return 0;
    }

    void insert(const std::vector<token_id>& phrase, choice_set bit) {
      std::uint32_t node = 0;
      for (const token_id token : phrase) {
        std::uint32_t child = child_of(node, token);
        if (child == 0) {
          child = static_cast<std::uint32_t>(nodes_.size());
          nodes_[node].children.emplace_back(token, child);
          nodes_.push_back({.depth = nodes_[node].depth + 1});
        }
        node = child;
        nodes_[node].passing |= bit;
      }
      nodes_[node].ending |= bit;
    }

    /// Breadth first: a suffix is shorter, so it is complete when it is needed.
    void link() {
      std::vector<std::uint32_t> order{0};
      for (std::size_t i = 0; i < order.size(); ++i) {
        const std::uint32_t node = order[i];
        for (const auto& [token, child] : nodes_[node].children) {
          order.push_back(child);
          if (node != 0) nodes_[child].suffix = next(nodes_[node].suffix, token);
          nodes_[child].ending |= nodes_[nodes_[child].suffix].ending;
        }
      }
    }

    std::vector<node_data> nodes_;
    std::vector<std::size_t> lengths_;
    choice_set all_ = 0;
    std::size_t goal_ = 0;
  };

  /// What is missing, and can be begun.
  [[nodiscard]] choice_set wanted(const state& s) const {
    const choice_set missing = automaton_->all() & ~s.met;
    return ordered_ ? missing & (~missing + 1) : missing;
  }

  [[nodiscard]] state after(const state& before, token_id token) const {
    state now{automaton_->next(before.node, token), before.met};
    const choice_set found = automaton_->at(now.node).ending & wanted(before);
    now.met |= found;
    if (ordered_ && found != 0) now.node = 0;  // the next one begins after it
    return now;
  }

  [[nodiscard]] std::size_t progress_of(const state& s) const {
    std::size_t met = 0, begun = 0;
    each_choice(s.met, [&](std::size_t choice) { met += automaton_->length(choice); });
    automaton_->each_suffix(s.node, [&](std::uint32_t node) {
      const auto& here = automaton_->at(node);
      // An alternative that is not the shortest is never more than nearly there.
      each_choice(here.passing & wanted(s), [&](std::size_t choice) {
        begun = std::max(begun, std::min<std::size_t>(here.depth, automaton_->length(choice) - 1));
      });
    });
    return met + begun;
  }

  template <class F>
  static void each_choice(choice_set set, F f) {
    for (; set != 0; set &= set - 1) f(static_cast<std::size_t>(std::countr_zero(set)));
  }

  bool ordered_;
  std::shared_ptr<const automaton> automaton_;
  std::vector<state> states_;  // after every token accepted, the first before any
};

}  // namespace decant
