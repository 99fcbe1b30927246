// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <decant/chain/any.hpp>
#include <decant/chain/decoder.hpp>
#include <decant/core/law.hpp>
#include <decant/generate/generate.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/speculate.hpp>
#include <decant/testing/enumerate.hpp>
#include <decant/testing/markov_model.hpp>

// What tests of the driver share: small models, drafters that need no model, exact laws of whole generations.

namespace drivers {

using decant::draft;
using decant::draft_length;
using decant::draft_request;
using decant::no_parent;
using decant::proposal;
using decant::token_id;
using ids = std::vector<token_id>;
using markov = decant::testing::markov_model;
using run_time_decoder = decltype(decant::dynamic_chain{} | decant::any_sampler(decant::multinomial{}));

/// Drafts a tree by drawing children from the rows of a table, in any mode. The same chain may stand before it as
/// before the target.
class tree_drafter {
 public:
  tree_drafter(markov model, run_time_decoder decoder, std::vector<std::size_t> children, proposal mode)
      : model_(std::move(model)), decoder_(std::move(decoder)), children_(std::move(children)), mode_(mode) {}

  void propose(const draft_request& request, draft& out) {
    out.set_mode(mode_);
    text_.assign(request.context.tokens.begin(), request.context.tokens.end());
    grow(request, out, no_parent, 0);
  }

 private:
  void grow(const draft_request& request, draft& out, std::int32_t node, std::size_t depth) {
    if (depth == children_.size() || depth == request.max_depth) return;
    decant::law left;
    const auto context = decant::context_after(text_, request.context.prompt_size, request.context.draws);
    decoder_.law_of(model_.row_after(text_), context, left);
    out.children_law(node) = left;
    std::vector<std::int32_t> made;
    for (std::size_t i = 0; i < children_[depth] && !left.empty() && out.size() < request.max_nodes; ++i) {
      token_id token = 0;
      if (mode_ == proposal::deterministic) {
        token = left.ids[static_cast<std::size_t>(std::ranges::max_element(left.weights) - left.weights.begin())];
      } else {
        const auto key = static_cast<std::uint32_t>(out.size());
        token = decant::draw(left, request.draws.at(text_.size()), decant::purpose::draft, key);
      }
      made.push_back(out.add(token, node));
      if (mode_ != proposal::with_replacement) decant::remove_token(left, token);
    }
    for (const std::int32_t child : made) {
      text_.push_back(out.token(child));
      grow(request, out, child, depth + 1);
      text_.pop_back();
    }
  }

  markov model_;
  run_time_decoder decoder_;
  std::vector<std::size_t> children_;
  proposal mode_;
  ids text_;
};

/// Proposes the continuation of a script, wherever the text ends in it: position i of the text is followed by
/// script[i].
struct script_drafter {
  ids script;
  std::vector<std::size_t> rows_seen{};  ///< what observe was told: how many rows, each time
  std::vector<std::size_t> accepted{};   ///< what feedback was told
  std::size_t resets = 0;

  void propose(const draft_request& request, draft& out) {
    std::int32_t node = no_parent;
    for (std::size_t i = request.context.tokens.size(); i < script.size() && out.size() < request.max_depth; ++i) {
      node = out.add(script[i], node);
    }
  }
  template <class M>
  void observe(M&, std::span<const std::size_t> rows) {
    rows_seen.push_back(rows.size());
  }
  void feedback(const decant::round_outcome& outcome) { accepted.push_back(outcome.accepted()); }
  void reset() { ++resets; }
};

// Tests of the driver are compiled for one type of model, of drafter and of chain, not for one a case.

using row_function = std::function<std::vector<float>(std::span<const token_id>)>;
using function_model = decant::stateless<row_function>;
/// A drafter that is known at run time: refers to another.
class any_drafter {
 public:
  template <class S>
  any_drafter(S& drafter)
      : propose_([&](const draft_request& request, draft& out) { drafter.propose(request, out); }),
        observe_([&](function_model& model, std::span<const std::size_t> rows) {
          decant::detail::show_to(drafter, model, rows);
        }),
        feedback_([&](const decant::round_outcome& outcome) { decant::detail::feedback_to(drafter, outcome); }),
        reset_([&] { decant::detail::reset_drafter(drafter); }) {}

  void propose(const draft_request& request, draft& out) { propose_(request, out); }
  void observe(function_model& model, std::span<const std::size_t> rows) { observe_(model, rows); }
  void feedback(const decant::round_outcome& outcome) { feedback_(outcome); }
  void reset() { reset_(); }

 private:
  std::function<void(const draft_request&, draft&)> propose_;
  std::function<void(function_model&, std::span<const std::size_t>)> observe_;
  std::function<void(const decant::round_outcome&)> feedback_;
  std::function<void()> reset_;
};

/// A table as a model that scores trees.
inline function_model tree_model(markov table) {
  const std::size_t size = table.vocabulary_size();
  return function_model(
      [table = std::move(table)](std::span<const token_id> tokens) {
        const auto row = table.row_after(tokens);
        return std::vector<float>(row.begin(), row.end());
      },
      size);
}

/// The driver, with everything known at run time but the rule.
template <class Rule = decant::lossless_verification>
decant::speculation speculated(function_model& model, const ids& prompt, any_drafter drafter,
                               const run_time_decoder& decoder, const decant::generate_options& options,
                               const decant::speculation_options& how = {}, const Rule& rule = {}) {
  return decant::speculate(model, prompt, drafter, decoder, options, how, rule);
}

/// The exact law of what `speculate` puts out, of `length` tokens.
template <class Rule>
decant::testing::result_law<ids> speculated_law(function_model& model, const ids& prompt, const any_drafter& drafter,
                                                const run_time_decoder& decoder, std::size_t length,
                                                const decant::speculation_options& how, const Rule& rule) {
  return decant::testing::enumerate_law([&](decant::decision_hook& hook) {
    decant::generate_options options;
    options.max_new_tokens = length;
    options.seed = 0;
    options.hook = &hook;
    return speculated(model, prompt, drafter, decoder, options, how, rule).tokens;
  });
}

}  // namespace drivers
